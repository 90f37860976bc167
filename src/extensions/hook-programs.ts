/** How a hook's program is run, the user's on the host, a project's only in the box; and how its answer is read. */
import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import type { ProgramCommand, HookEvent } from "../core/added-programs.ts";
import type { Box } from "../core/ports.ts";
import { isWithin, safePath, withoutHeldPipes } from "../platform/host-programs.ts";
import { headWithin, isDeeper } from "../core/raw-data.ts";
import type { MatchedRule, Verdict } from "../core/decision.ts";
import { visible, visibleLine } from "../core/visible.ts";

export interface HookRun {
  /** The program's stdin. No part of it is ever passed as an argument or variable. */
  readonly input: string;
  /** Bytes of the answer. */
  readonly limit: number;
  readonly timeoutMs: number;
}

export interface HostPlace {
  /** The user's own environment; only a few variables are passed on. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The working folder, to which names with a slash are relative. */
  readonly cwd: string;
  readonly home: string;
  /** The folder that the model may have written to: no program in it is started. */
  readonly apart: string;
}

/** Variables that a person's program needs to be found, to use their language, and to find its own files. No keys. */
const PASSED_VARIABLES = [
  "HOME",
  "USER",
  "LOGNAME",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "TZ",
  "TMPDIR",
  "XDG_CONFIG_HOME",
  "XDG_STATE_HOME",
  "XDG_CACHE_HOME",
  "XDG_DATA_HOME",
  "XDG_RUNTIME_DIR",
];

/** How much of stderr is kept for the reason. */
const MAX_STDERR = 8 * 1024;

const wordsOf = (command: ProgramCommand, shell: string): readonly string[] =>
  typeof command === "string" ? [shell, "-c", command] : command;

const lateAnswer = (ms: number): HookRan => ({
  kind: "broken",
  why: `it gave no answer within ${ms / 1000} s`,
});
const tooLongAnswer = (limit: number): HookRan => ({
  kind: "broken",
  why: `it printed more than ${limit} bytes`,
});

/**
 * Runs the user's own program. It is not started if its file, or a file among its arguments, is in the workspace. Of a
 * text for the shell, these are the names that are written out; the shell may put together others.
 */
export async function runOnHost(
  command: ProgramCommand,
  place: HostPlace,
  run: HookRun,
  signal: AbortSignal,
): Promise<HookRan> {
  const folders = safePath({ PATH: USUAL_PATH, ...place.env }, place.apart);
  const [program = "", ...words] = wordsOf(command, "/bin/sh");
  const file = await programOf(program, place, folders);
  if (typeof file !== "string") return file;
  const inside = await fileWithin(typeof command === "string" ? wordsIn(command) : words, place);
  if (inside !== undefined)
    return { kind: "broken", why: `${inside} lies in the workspace, where the model may have written it` };
  const env = Object.fromEntries(PASSED_VARIABLES.map((name) => [name, place.env[name]]));
  return endOf([file, ...words], { ...place, env: { ...env, PATH: folders.join(":") } }, run, signal);
}

function endOf(
  [file = "", ...words]: readonly string[],
  { env, cwd }: Pick<HostPlace, "env" | "cwd">,
  { input, limit, timeoutMs }: HookRun,
  signal: AbortSignal,
): Promise<HookRan> {
  const { promise, resolve } = Promise.withResolvers<HookRan>();
  // A process group of its own, so that everything it starts ends with it.
  const child = spawn(file, words, { env, cwd, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  const kill = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // All processes of the group have ended.
    }
  };
  const output: { why?: HookRan; stderr: string; stdout: Buffer[]; bytes: number } = {
    stderr: "",
    stdout: [],
    bytes: 0,
  };
  const stop = (why: HookRan): void => {
    output.why ??= why;
    kill();
    child.stdout.destroy();
    child.stderr.destroy();
  };
  const cancel = (): void => stop({ kind: "broken", why: "it was cancelled" });
  const timer = setTimeout(() => stop(lateAnswer(timeoutMs)), timeoutMs);
  signal.addEventListener("abort", cancel, { once: true });
  if (signal.aborted) cancel();
  child.stdout.on("data", (chunk: Buffer) => {
    output.bytes += chunk.length;
    if (output.bytes > limit) stop(tooLongAnswer(limit));
    else output.stdout.push(chunk);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    if (output.stderr.length < MAX_STDERR) output.stderr += chunk.toString();
  });
  // The program may answer without reading its input.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  child.once("error", (error) => {
    output.why ??= { kind: "broken", why: `it could not be started: ${reasonOf(error)}` };
    done(null, null);
  });
  child.once("exit", kill);
  withoutHeldPipes(child);
  const done = (code: number | null, by: NodeJS.Signals | null): void => {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
    const stdout = Buffer.concat(output.stdout);
    const { stderr } = output;
    const unless: HookRan =
      code === null
        ? { kind: "broken", why: `it was killed by ${by ?? "a signal"}` }
        : { kind: "ended", exitCode: code, stdout, stderr };
    resolve(output.why ?? unless);
  };
  child.once("close", done);
  return promise;
}

const USUAL_PATH = "/usr/local/bin:/usr/bin:/bin";

const resolvedIn = (place: HostPlace, name: string): string =>
  path.resolve(place.cwd, name.startsWith("~/") ? path.join(place.home, name.slice(2)) : name);

async function programOf(
  name: string,
  place: HostPlace,
  folders: readonly string[],
): Promise<string | HookRan> {
  const files = name.includes("/")
    ? [resolvedIn(place, name)]
    : folders.map((folder) => path.join(folder, name));
  for (const file of files) {
    const real = await realpath(file).catch(() => undefined);
    if (real === undefined) continue;
    if (isWithin(place.apart, real)) {
      if (name.includes("/"))
        return { kind: "broken", why: `${name} lies in the workspace, where the model may have written it` };
      continue;
    }
    const runs = await access(real, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs && (await stat(real)).isFile()) return file;
  }
  return { kind: "broken", why: `there is no program ${name}` };
}

/** What is quoted, and every word, also of what is quoted: a text may be given to another shell. */
const wordsIn = (text: string): readonly string[] =>
  [
    ...[...text.matchAll(/"([^"]*)"|'([^']*)'/g)].map(([, double, single]) => double ?? single ?? ""),
    ...text.split(/[\s"'`;|&<>()]+/).filter((word) => word !== ""),
  ].map((word) => word.replace(/(?<=^|=)\$(?:HOME|\{HOME\})(?=\/)/, "~"));

/** The first argument, or value of `--option=`, that is a file in the workspace: an interpreter would run it. */
async function fileWithin(words: readonly string[], place: HostPlace): Promise<string | undefined> {
  for (const argument of words) {
    const word = argument.replace(/^[\w-]+=/, "");
    if (word === "" || word.startsWith("-") || word.includes("\n")) continue;
    const real = await realpath(resolvedIn(place, word)).catch(() => undefined);
    if (real === undefined || !isWithin(place.apart, real)) continue;
    if ((await stat(real).catch(() => undefined))?.isFile() === true) return word;
  }
  return undefined;
}

/** Runs a project's program in the box. Rejects only if the box is lost. */
export async function runInBox(
  command: ProgramCommand,
  { box, folder }: { readonly box: () => Promise<Box>; readonly folder: string },
  { input, limit, timeoutMs }: HookRun,
  signal: AbortSignal,
): Promise<HookRan> {
  const words = wordsOf(command, "sh");
  try {
    const { exit_code, timed_out, cause, stdout, stderr } = await (
      await box()
    ).exec(
      { words, folder, timeoutMs, keep: { head: limit, tail: 0 }, input: pieces(Buffer.from(input)) },
      signal,
    );
    if (signal.aborted) return { kind: "broken", why: "it was cancelled" };
    if (timed_out) return lateAnswer(timeoutMs);
    if (stdout.lost > 0) return tooLongAnswer(limit);
    const errorText = new TextDecoder().decode(stderr.head.subarray(0, MAX_STDERR));
    if (exit_code === 127 || exit_code === 126)
      return {
        kind: "broken",
        why: errorText.trim().split("\n", 1)[0] || `there is no program ${words[0] ?? ""}`,
      };
    if (cause !== null && cause !== "program") return { kind: "broken", why: `the box ended it: ${cause}` };
    return { kind: "ended", exitCode: exit_code, stdout: stdout.head, stderr: errorText };
  } catch (thrown) {
    if (thrown instanceof HarnessError && thrown.exit === EXIT.sandbox) throw thrown;
    return { kind: "broken", why: signal.aborted ? "it was cancelled" : reasonOf(thrown) };
  }
}

const PIECE_BYTES = 64 * 1024;

async function* pieces(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    yield await Promise.resolve(bytes.subarray(at, at + PIECE_BYTES));
}

/** The answer, treated purely as data. */

export type HookRan = { readonly verdict?: HookVerdict } & (
  | {
      readonly kind: "ended";
      readonly exitCode: number;
      readonly stdout: Uint8Array;
      readonly stderr: string;
    }
  /** The program gave no readable answer: it could not be started, hung, or wrote too much. */
  | { readonly kind: "broken"; readonly why: string }
);

/** The policy's verdict on the command of a project's hook; the user's own hooks are not judged. */
export interface HookVerdict {
  readonly decision: Verdict;
  readonly rules: readonly MatchedRule[];
}

/** Values to store; null removes one. */
type StateChanges = Readonly<Record<string, unknown>>;

/** Everything a hook can say; for each event, only the relevant parts are used. */
export type HookAnswer =
  | {
      readonly kind: "answered";
      /** The call must not run, for this reason. */
      readonly skip?: string;
      readonly args?: Readonly<Record<string, unknown>>;
      readonly text?: string;
      readonly continue?: string;
      readonly state?: StateChanges;
    }
  | { readonly kind: "broken"; readonly why: string };

/** The exit code that many tools use for a veto without output on stdout. */
const VETO_EXIT_CODE = 2;

/** Whatever shows, records or compares an answer walks through it. */
const MAX_DEPTH = 100;
const MAX_REASON = 1000;
/** Bytes that one hook may add to a conversation. Text that replaces a result is limited like any result. */
const MAX_TEXT: Readonly<Record<HookEvent, number>> = {
  PreToolUse: 0,
  PostToolUse: Number.POSITIVE_INFINITY,
  Stop: 64 * 1024,
  SessionStart: 16 * 1024,
  PreCompact: 4 * 1024,
};

const state = z.record(z.string(), z.unknown()).optional();
const args = z.record(z.string(), z.unknown());

const FORMS = {
  PreToolUse: z
    .strictObject({
      decision: z.literal("skip").optional(),
      reason: z.string().optional(),
      args: args.optional(),
      state,
    })
    .refine((answer) => answer.args === undefined || answer.decision === undefined, {
      error: "decision and args cannot both be given",
    })
    .refine((answer) => answer.reason === undefined || answer.decision !== undefined, {
      error: "reason needs a decision",
    }),
  PostToolUse: z.strictObject({ text: z.string().optional(), state }),
  Stop: z
    .strictObject({ text: z.string().optional(), continue: z.string().min(1).optional(), state })
    .refine((answer) => answer.text === undefined || answer.continue === undefined, {
      error: "text and continue cannot both be given",
    }),
  SessionStart: z.strictObject({ text: z.string().optional(), state }),
  PreCompact: z.strictObject({ text: z.string().optional(), state }),
} as const satisfies Readonly<Record<HookEvent, z.ZodType>>;

interface ParsedAnswer {
  readonly decision?: "skip" | undefined;
  readonly reason?: string | undefined;
  readonly args?: Readonly<Record<string, unknown>> | undefined;
  readonly text?: string | undefined;
  readonly continue?: string | undefined;
  readonly state?: StateChanges | undefined;
}

export function readAnswer(event: HookEvent, ran: HookRan): HookAnswer {
  if (ran.kind === "broken") return brokenAnswer(ran.why);
  const { exitCode, stdout, stderr } = ran;
  if (exitCode === VETO_EXIT_CODE && event === "PreToolUse")
    return { kind: "answered", skip: reasonIn(stderr) };
  if (exitCode !== 0)
    return brokenAnswer(`it exited with ${exitCode}${stderr.trim() === "" ? "" : `: ${lineOf(stderr)}`}`);
  const text = decoded(stdout);
  if (text === undefined) return brokenAnswer("its output is not UTF-8");
  if (text.trim() === "") return { kind: "answered" };
  return answerIn(event, text);
}

function answerIn(event: HookEvent, text: string): HookAnswer {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return brokenAnswer(`its output is not JSON: ${lineOf(text)}`);
  }
  if (isDeeper(value, MAX_DEPTH))
    return brokenAnswer(`its output is nested more than ${MAX_DEPTH} levels deep`);
  const read = FORMS[event].safeParse(value);
  if (!read.success) return brokenAnswer(`its output does not fit ${event}: ${issueIn(read.error)}`);
  const parsed: ParsedAnswer = read.data;
  return {
    kind: "answered",
    ...(parsed.decision === undefined ? {} : { skip: reasonIn(parsed.reason ?? "") }),
    ...(parsed.args === undefined ? {} : { args: parsed.args }),
    ...(parsed.text === undefined ? {} : { text: shownWithin(parsed.text, MAX_TEXT[event]) }),
    ...(parsed.continue === undefined ? {} : { continue: shownWithin(parsed.continue, MAX_TEXT[event]) }),
    ...(parsed.state === undefined ? {} : { state: parsed.state }),
  };
}

const brokenAnswer = (why: string): HookAnswer => ({ kind: "broken", why });

/** Makes sure that nothing in the text acts on a terminal. */
function shownWithin(text: string, most: number): string {
  const clean = visible(text.toWellFormed());
  return most === Number.POSITIVE_INFINITY ? clean : headWithin(clean, most);
}

const reasonIn = (text: string): string =>
  visible(text.toWellFormed()).trim().slice(0, MAX_REASON) || "it gave no reason";

const lineOf = (text: string): string =>
  visibleLine(text.toWellFormed().trim().split("\n", 1)[0] ?? "").slice(0, 200);

function issueIn({ issues: [issue] }: z.ZodError): string {
  const at = (issue?.path ?? []).map(String).join(".");
  return `${at === "" ? "" : `${at}: `}${issue?.message ?? "unexpected value"}`.slice(0, 300);
}

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
