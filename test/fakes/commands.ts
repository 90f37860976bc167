import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { rg } from "./rg.ts";
import type { FakeTree } from "./tree.ts";

/** The context of a scripted command; the command must stop when the signal fires. */
export interface FakeProcess {
  readonly words: readonly string[];
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly input: AsyncIterable<Uint8Array>;
  readonly files: FakeTree;
  readonly signal: AbortSignal;
  readonly out: (bytes: Uint8Array | string) => Promise<void>;
  readonly err: (bytes: Uint8Array | string) => Promise<void>;
}

/** An exit code, or the signal that ended the command and the number of processes it left behind. */
export type FakeEnd = number | FakeExit;

interface FakeExit {
  readonly signal?: number;
  readonly code?: number;
  readonly leftovers?: number;
  /** Why nothing was run. */
  readonly unstarted?: "folder" | "program";
}

export type FakeCommand = (process: FakeProcess) => Promise<FakeEnd> | FakeEnd;

const PIECE = 64 * 1024;

async function flood({ words, out, signal }: FakeProcess): Promise<number> {
  for (let left = Number(words[1]); left > 0 && !signal.aborted; left -= PIECE)
    await out(new Uint8Array(Math.min(left, PIECE)));
  return 0;
}

async function cat({ words, folder, input, files, out, err }: FakeProcess): Promise<number> {
  for (const name of words.slice(1)) {
    const result = files.read(path.resolve(folder, name));
    if (result.kind !== "ok") {
      await err(`cat: ${name}: ${result.code}\n`);
      return 1;
    }
    await out(result.value.content);
  }
  if (words.length === 1) for await (const bytes of input) await out(bytes);
  return 0;
}

type Change = (files: FakeTree, file: string, words: readonly string[]) => boolean;

/** For a program whose last word is the path that it changes. */
const changing =
  (change: Change): FakeCommand =>
  async ({ words, folder, files, err }) => {
    const file = path.resolve(folder, words.at(-1) ?? "");
    if (change(files, file, words)) return 0;
    await err(`${words[0]}: cannot change '${words.at(-1)}': Read-only file system\n`);
    return 1;
  };

export const COMMANDS: Readonly<Record<string, FakeCommand>> = {
  true: () => 0,
  false: () => 1,
  exit: ({ words }) => Number(words[1]),
  die: ({ words }) => ({ signal: Number(words[1]) }),
  leave: ({ words }) => ({ leftovers: Number(words[1]) }),
  echo: async ({ words, out }) => out(`${words.slice(1).join(" ")}\n`).then(() => 0),
  says: async ({ words, out, err }) => {
    await Promise.all([out(words[1] ?? ""), err(words[2] ?? "")]);
    return 0;
  },
  pwd: async ({ folder, out }) => out(`${folder}\n`).then(() => 0),
  printenv: async ({ words, env, out }) => {
    const value = env[words[1] ?? ""];
    if (value !== undefined) await out(`${value}\n`);
    return value === undefined ? 1 : 0;
  },
  sleep: ({ words, signal }) => sleep(Number(words[1]) * 1000, 0, { signal }).catch(() => 0),
  cat,
  flood,
  rg,
  touch: changing((files, file) => files.stat(file).kind === "ok" || files.make(file, "file")),
  mkdir: changing((files, file) => files.make(file, "folder")),
  mkfifo: changing((files, file) => files.make(file, "odd")),
  ln: changing((files, file) => files.make(file, "link")),
  rm: changing((files, file) => files.remove(file)),
  chmod: changing((files, file, words) => {
    files.chmod(file, Number.parseInt(words[1] ?? "", 8));
    return true;
  }),
};
