import type { Box } from "../../core/ports.ts";
import type { ShellState } from "../desk.ts";
import { END } from "./wrapper.ts";

/** Bytes that one call may leave. */
const MOST = 64 * 1024;
/** Of the names and values that a call begins with: with the box's own they fit into a pipe. */
const MOST_KEPT = MOST - 4096;
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** What bash sets by itself, or reads before the first command and so before anything was judged. */
const OWN = /^(?:PWD|OLDPWD|SHLVL|_|SHELLOPTS|BASHOPTS|BASH|BASH_.*|__h_.*)$/;

type State = Pick<ShellState, "folder" | "env">;

/** In the box's own /tmp; the name must not be guessed, as whoever writes there says where later commands start. */
export const stateFile = (): string => `/tmp/.harness-${crypto.randomUUID()}`;

export async function* asInput(file: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(`${file}\n`);
}

/** Takes over what a shell left in its file, which is gone then. Says why nothing was kept, if that is so. */
export async function takeState(box: Box, file: string, shell: ShellState): Promise<string | undefined> {
  const read = await box.read(file, { offset: 0, limit: MOST + 1 });
  if (read.kind !== "ok") return read.code === "ENOENT" ? undefined : notKept(read.reason);
  await dropState(box, file);
  const state = read.value.size > MOST ? "it is more than 64 KiB" : stateIn(read.value.content, shell);
  if (typeof state === "string") return notKept(state);
  shell.move(state.folder, state.env);
  return undefined;
}

/** Of a shell that was killed, maybe while it wrote. */
export async function dropState(box: Box, file: string): Promise<void> {
  const keep = { head: 0, tail: 0 };
  const request = { words: ["rm", "-f", file], folder: "/", timeoutMs: 10_000, keep };
  await box.exec(request, new AbortController().signal);
}

const notKept = (why: string): string => `folder and exported variables stay as before the call: ${why}`;

/** What a shell left, over what was there before; or why it cannot be kept. Nothing of it is trusted. */
export function stateIn(content: Uint8Array, before: State): State | string {
  const text = decoded(content);
  if (text === undefined) return "it is no UTF-8";
  const fields = text.split("\0");
  const [folder = "", ...changes] = fields.slice(0, -2);
  if (fields.at(-1) !== "" || fields.at(-2) !== END || fields.length < 3) return "it was not written whole";
  if (!isPlace(folder)) return "its folder is no path";
  const env = new Map(Object.entries(before.env));
  for (const change of changes) apply(change, env);
  const size = [...env].reduce((sum, [name, value]) => sum + bytesOf(name) + bytesOf(value) + 2, 0);
  return size > MOST_KEPT ? "it is more than 64 KiB" : { folder, env: Object.fromEntries(env) };
}

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

function apply(change: string, env: Map<string, string>): void {
  const at = change.indexOf("=");
  const name = at < 0 ? change : change.slice(0, at);
  if (!IDENTIFIER.test(name) || OWN.test(name)) return;
  if (at < 0) env.delete(name);
  else env.set(name, change.slice(at + 1));
}

/** As `pwd -P` writes one. */
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
