import type { Box, ExecRequest, ExecResult } from "../../core/ports.ts";
import type { ToolContext, Exported, ShellState } from "../tool-context.ts";

/** One call of a shell whose folder and exported variables persist. */
interface KeptCall {
  /** Standard input of the wrapper, and the file that it writes. */
  readonly request: Pick<ExecRequest, "input" | "keepFile">;
  /** Takes over the state that the shell left, and returns remarks about it. */
  readonly take: (result: Pick<ExecResult, "keptFile" | "killed">) => Promise<readonly string[]>;
}

/** State that is kept for a box. */
interface BoxState {
  /**
   * Every call writes this file. No call removes it, because that would cost as much as a call. Another process in the
   * box may change it before it is read, and so set the folder and exported variables of later commands. This is no
   * breach: those commands are judged with exactly that state, and any command can set the same with `cd` and `export`.
   */
  readonly file: string;
  /** What a shell starts with here when nothing was exported. */
  own: Exported | undefined;
}

export type Keeper = (box: Box) => KeptCall;

export function keeperOf(context: Pick<ToolContext, "shell" | "refused">): Keeper {
  const places = new WeakMap<Box, BoxState>();
  const told = new Set<string>();
  return (box) => {
    const place = places.get(box) ?? { file: `/run/.harness-${crypto.randomUUID()}`, own: undefined };
    places.set(box, place);
    const token = crypto.randomUUID();
    return {
      request: {
        input: lineOf(`${place.file} ${token}\n`),
        keepFile: { path: place.file, limit: MAX_COUNT },
      },
      take: async ({ keptFile, killed }) => {
        // The file of a killed shell may be incomplete.
        if (killed || keptFile === undefined) return [];
        const refused = await takeState(context, { box, place, token, keptFile });
        if (typeof refused === "string")
          return [`[folder and exported variables stay as before the call: ${refused}]`];
        const fresh = refused.filter((name) => !told.has(name));
        for (const name of fresh) told.add(name);
        return fresh.map(
          (name) => `[${name} is not kept for later calls: set it in the command that needs it]`,
        );
      },
    };
  };
}

async function* lineOf(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text);
}

interface ShellResult {
  readonly box: Box;
  readonly place: BoxState;
  readonly token: string;
  readonly keptFile: NonNullable<ExecResult["keptFile"]>;
}

/** Names that were not kept, or why nothing was. */
async function takeState(
  context: Pick<ToolContext, "shell" | "refused">,
  { box, place, token, keptFile }: ShellResult,
): Promise<readonly string[] | string> {
  if (keptFile.kind !== "ok") return whyUnread(keptFile);
  const left = stateIn(keptFile.value, token);
  if (left === undefined) return [];
  if (typeof left === "string") return left;
  place.own ??= await ownOf(box);
  if (place.own === undefined) return "the box did not report its own variables";
  const own = new Map([...place.own, ...Object.entries(box.networkEnv?.() ?? {})]);
  const { env, refused } = await envOver(own, left.exported, context);
  context.shell.move(left.folder, env);
  return refused;
}

/** A shell that was replaced by another program (`exec`) has written no state. */
function whyUnread({
  code,
  reason,
}: {
  readonly code: string;
  readonly reason: string;
}): readonly [] | string {
  if (code === "ENOENT") return [];
  return code === "EFBIG" ? "they are larger than 64 KiB" : reason;
}

async function ownOf(box: Box): Promise<Exported | undefined> {
  const request = {
    words: ["env", "-0"],
    folder: "/",
    timeoutMs: 10_000,
    keep: { head: MAX_COUNT, tail: 0 },
  };
  const { exit_code, stdout } = await box.exec(request, new AbortController().signal);
  const text = exit_code === 0 && stdout.lost === 0 ? decoded(stdout.head) : undefined;
  return text === undefined ? undefined : exportedIn(text.split("\0"));
}

/** Bytes of state that a shell may leave, the box's own variables included. */
const MAX_COUNT = 64 * 1024;
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Variables that bash sets itself, or reads before the first command and so before anything is judged. */
const OWN = /^(?:PWD|OLDPWD|SHLVL|_|SHELLOPTS|BASHOPTS|BASH|BASH_.*|__h_.*)$/;

type State = Pick<ShellState, "folder" | "env">;

/** The state that this call's shell left; undefined for another call's; otherwise why it cannot be read. */
export function stateIn(
  content: Uint8Array,
  token: string,
): { readonly folder: string; readonly exported: Exported } | string | undefined {
  const text = decoded(content);
  if (text === undefined) return "they are not UTF-8";
  const fields = text.split("\0");
  if (fields.at(-1) !== "" || fields.at(-2) !== END || fields.length < 4)
    return "they were not completely written";
  const [first, folder = "", ...variables] = fields.slice(0, -2);
  if (first !== token) return undefined;
  return isPlace(folder) ? { folder, exported: exportedIn(variables) } : "the folder is not a path";
}

/** Variables from `NAME=value` items; other items and bash's own variables are left out. */
export function exportedIn(variables: readonly string[]): Exported {
  const pairs = variables.map((text) => {
    const at = text.indexOf("=");
    return [text.slice(0, Math.max(at, 0)), text.slice(at + 1)] as const;
  });
  return new Map(pairs.filter(([name]) => IDENTIFIER.test(name) && !OWN.test(name)));
}

/**
 * Variables exported in addition to the box's own, without those that may not be kept. A variable of the box that a
 * call unsets or no longer exports is there again in the next call.
 */
export async function envOver(
  own: Exported,
  exported: Exported,
  { shell, refused }: Pick<ToolContext, "shell" | "refused">,
): Promise<{ readonly env: State["env"]; readonly refused: readonly string[] }> {
  const over = [...exported].filter(([name, value]) => own.get(name) !== value);
  const changed = over.filter(([name, value]) => shell.env[name] !== value);
  const out = changed.length === 0 ? undefined : await refused?.(new Map(changed));
  const kept = over.filter(([name]) => out?.has(name) !== true);
  return { env: Object.fromEntries(kept), refused: [...(out ?? [])] };
}

/** A path in the form of `pwd -P`. */
const isPlace = (folder: string): boolean =>
  folder.startsWith("/") &&
  folder.length <= 4096 &&
  !folder.includes("//") &&
  !/(?:^|\/)\.\.?(?:\/|$)/.test(folder);

function decoded(content: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return undefined;
  }
}

/**
 * Wraps bash around one command, which stays on the first line, so that bash counts its lines from one. The path of the
 * state file and the token of the call come on standard input, where nothing that the command starts can read them;
 * only a shell that reaches its end writes the file.
 *
 * Format of the file: the token, the folder, `NAME=value` for each exported variable (including the box's own), then
 * END; each item ends with a NUL.
 *
 * A fork would cost more than all of this, so there is none: the names go through the file itself, and the umask, which
 * a trap of the command may still need, goes through a pipe of the shell.
 */

const LEAVE = [
  "__h_leave() { [[ $__h_file ]] || return 0; local -; set +aefux; local __h_n __h_fd; local -a __h_all=() __h_left=();",
  'exec {__h_fd}<<<\'\'; builtin umask >/proc/self/fd/"$__h_fd"; builtin mapfile -t -u "$__h_fd" __h_all; exec {__h_fd}<&-;',
  'local __h_mask=${__h_all[1]-}; builtin umask 077; __h_write; builtin umask "$__h_mask"; __h_file=; };',
  '__h_write() { builtin compgen -e >|"$__h_file" || return; builtin mapfile -t __h_all <"$__h_file";',
  'for __h_n in "${__h_all[@]}"; do __h_left+=("$__h_n=${!__h_n}"); done; builtin cd -P .;',
  'builtin printf "%s\\0" "$__h_token" "${PWD%/.}" "${__h_left[@]}" END >|"$__h_file"; };',
].join(" ");

const ENTER = [
  "IFS=' ' read -r __h_file __h_token; exec </dev/null; __h_text=$1; shift;",
  "trap '{ set +x; __h_leave; } 2>/dev/null' EXIT;",
].join(" ");

const WRAPPER = `${LEAVE} ${ENTER} eval -- "$__h_text"
{ __h_code=$?; set +x; __h_leave; } 2>/dev/null; exit "$__h_code"`;

const END = "END";

export const wrapped = (command: string): readonly string[] => ["bash", "-c", WRAPPER, "bash", command];

/** Runs a command in a shell that keeps no state. */
export const plain = (command: string): readonly string[] => ["bash", "-c", command];
