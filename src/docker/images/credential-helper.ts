import { spawn } from "node:child_process";
import { once } from "node:events";
import { visibleLine } from "../../core/text/visible.ts";
import { hostProgram, safeEnvironment } from "../../platform/host-programs.ts";

/**
 * Answers of programs that keep passwords for docker (`docker-credential-NAME get`). Only the user's own docker config
 * names such a program; the program gets the user's environment, and its time and its output are limited. Nothing of a
 * good answer is reported.
 */
export type HelperAnswer =
  | { readonly kind: "login"; readonly username: string; readonly password: string }
  | { readonly kind: "token"; readonly token: string }
  /** The helper has no login for this registry. */
  | { readonly kind: "none" }
  /** Why the helper gave no login. */
  | { readonly kind: "failed"; readonly why: string };

export interface HelperQuestion {
  /** As written in the config: pass, osxkeychain, ecr-login. */
  readonly helper: string;
  /** The name under which the password is kept. */
  readonly server: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** No program in this folder is run. */
  readonly apart: string;
  readonly signal: AbortSignal;
  /** HELPER_MS when left out. */
  readonly ms?: number;
}

/** A person may have to unlock a keychain meanwhile. */
const HELPER_MS = 60_000;
const MAX_BYTES = 64 * 1024;
const MAX_MESSAGE_LENGTH = 200;

export async function askCredentialHelper(question: HelperQuestion): Promise<HelperAnswer> {
  const { helper, env, apart } = question;
  const name = `docker-credential-${helper}`;
  if (!/^[\w][\w.-]{0,100}$/.test(helper)) return failed("a helper in docker's config has an invalid name");
  const file = await hostProgram(name, env, apart);
  if (file === null) return failed(`there is no program ${name}, which docker's config names`);
  const { stdout, ending } = await runHelper(file, question);
  question.signal.throwIfAborted();
  if (ending === "late") return failed(`${name} gave no answer in ${(question.ms ?? HELPER_MS) / 1000} s`);
  if (ending === "long") return failed(`${name} answers with more than ${MAX_BYTES} bytes`);
  if (ending === 0) return answerIn(stdout) ?? failed(`the answer of ${name} is not a login`);
  const message = visibleLine(stdout.trim().slice(0, MAX_MESSAGE_LENGTH));
  // The words of docker's own library for helpers.
  if (/credentials not found in native keychain/i.test(message)) return { kind: "none" };
  return failed(
    `${name} ended with ${ending ?? "a signal"}${message === "" ? ", without a message" : `: ${message}`}`,
  );
}

const failed = (why: string): HelperAnswer => ({ kind: "failed", why });

interface HelperRan {
  readonly stdout: string;
  readonly ending: number | null | "late" | "long";
}

/**
 * Runs the helper in a separate process group, which has no terminal to ask on and is killed as a whole when it is
 * late.
 */
async function runHelper(
  file: string,
  { server, env, apart, signal, ms = HELPER_MS }: HelperQuestion,
): Promise<HelperRan> {
  const child = spawn(file, ["get"], {
    env: safeEnvironment(env, apart),
    cwd: "/",
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const end = new AbortController();
  const stop = AbortSignal.any([signal, end.signal, AbortSignal.timeout(ms)]);
  const pieces: Buffer[] = [];
  let length = 0;
  child.stdin.on("error", () => undefined).end(`${server}\n`);
  child.stdout.on("data", (piece: Buffer) => {
    length += piece.length;
    if (length > MAX_BYTES) end.abort();
    else pieces.push(piece);
  });
  try {
    const [code] = (await once(child, "close", { signal: stop })) as [number | null];
    return { stdout: Buffer.concat(pieces).toString("utf8"), ending: length > MAX_BYTES ? "long" : code };
  } catch (thrown) {
    if (stop.aborted) return { stdout: "", ending: end.signal.aborted ? "long" : "late" };
    return { stdout: thrown instanceof Error ? thrown.message : "", ending: null };
  } finally {
    child.stdout.destroy();
    endGroup(child.pid);
  }
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // The whole group has ended.
  }
}

/** Docker's library marks a token by a user name that nobody has. */
const TOKEN_NAME = "<token>";

function answerIn(stdout: string): HelperAnswer | undefined {
  let answer: unknown;
  try {
    answer = JSON.parse(stdout);
  } catch {
    return undefined;
  }
  if (typeof answer !== "object" || answer === null) return undefined;
  const { Username: username, Secret: secret } = answer as Readonly<Record<string, unknown>>;
  if (typeof username !== "string" || typeof secret !== "string") return undefined;
  // This is how older helpers say that they have none.
  if (secret === "") return username === "" ? { kind: "none" } : undefined;
  if (username === TOKEN_NAME) return { kind: "token", token: secret };
  return username === "" ? undefined : { kind: "login", username, password: secret };
}
