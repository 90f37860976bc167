import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { visibleLine } from "../../core/text/visible.ts";
import { hostProgram, safePath } from "../../platform/host-programs.ts";

/**
 * Programs that keep passwords for docker (`docker-credential-NAME get`). The user's own docker config alone names one; it has
 * the user's environment and is bounded in time and in what it answers. Nothing of a good answer is told.
 */
export type HelperAnswer =
  | { readonly kind: "login"; readonly username: string; readonly password: string }
  | { readonly kind: "token"; readonly token: string }
  /** It has none for this registry. */
  | { readonly kind: "none" }
  /** Why nothing was had of it. */
  | { readonly kind: "failed"; readonly why: string };

export interface HelperQuestion {
  /** As the config has it: pass, osxkeychain, ecr-login. */
  readonly helper: string;
  /** What the password is kept under. */
  readonly server: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** No program that lies in this folder is run. */
  readonly apart: string;
  readonly signal: AbortSignal;
  /** Left out: HELPER_MS. */
  readonly ms?: number;
}

/** A person may have to open a keychain meanwhile. */
const HELPER_MS = 60_000;
const MAX_BYTES = 64 * 1024;
const LONGEST_SAID = 200;

export async function askCredentialHelper(question: HelperQuestion): Promise<HelperAnswer> {
  const { helper, env, apart } = question;
  const name = `docker-credential-${helper}`;
  if (!/^[\w][\w.-]{0,100}$/.test(helper)) return failed("a helper of docker's config has no plain name");
  const file = await hostProgram(name, env, apart);
  if (file === null) return failed(`there is no program ${name}, which docker's config names`);
  const { stdout, ending } = await ran(file, question);
  question.signal.throwIfAborted();
  if (ending === "late") return failed(`${name} gave no answer in ${(question.ms ?? HELPER_MS) / 1000} s`);
  if (ending === "long") return failed(`${name} answers with more than ${MAX_BYTES} bytes`);
  if (ending === 0) return answerIn(stdout) ?? failed(`what ${name} answers is no login`);
  const said = visibleLine(stdout.trim().slice(0, LONGEST_SAID));
  // The word of docker's own library for helpers.
  if (/credentials not found in native keychain/i.test(said)) return { kind: "none" };
  return failed(
    `${name} ended with ${ending ?? "a signal"}${said === "" ? ", without a word" : `: ${said}`}`,
  );
}

const failed = (why: string): HelperAnswer => ({ kind: "failed", why });

interface HelperRan {
  readonly stdout: string;
  readonly ending: number | null | "late" | "long";
}

/** A group of its own, which has no terminal to ask on and of which nothing is left when it is late. */
async function ran(
  file: string,
  { server, env, apart, signal, ms = HELPER_MS }: HelperQuestion,
): Promise<HelperRan> {
  const child = spawn(file, ["get"], {
    env: { ...env, PATH: safePath(env, apart).join(path.delimiter) },
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
    // All of it has ended.
  }
}

/** Docker's library marks a token by a name that nobody has. */
const TOKEN_NAME = "<token>";

function answerIn(stdout: string): HelperAnswer | undefined {
  let told: unknown;
  try {
    told = JSON.parse(stdout);
  } catch {
    return undefined;
  }
  if (typeof told !== "object" || told === null) return undefined;
  const { Username: username, Secret: secret } = told as Readonly<Record<string, unknown>>;
  if (typeof username !== "string" || typeof secret !== "string") return undefined;
  // So older helpers say that they have none.
  if (secret === "") return username === "" ? { kind: "none" } : undefined;
  if (username === TOKEN_NAME) return { kind: "token", token: secret };
  return username === "" ? undefined : { kind: "login", username, password: secret };
}
