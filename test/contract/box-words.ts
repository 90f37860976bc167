import type { ExecRequest, OwnedBox } from "../../src/core/ports.ts";

/**
 * How to tell a box of this kind to do what every box can do; `true`, `cat`, `sleep` and the like are the same in all.
 */
interface BoxWords {
  readonly exit: (code: number) => readonly string[];
  readonly die: (signal: number) => readonly string[];
  /** Exits with 0 and leaves this many processes behind. */
  readonly leave: (processes: number) => readonly string[];
  readonly says: (out: string, err: string) => readonly string[];
  readonly flood: (bytes: number) => readonly string[];
}

const sh = (line: string, ...words: readonly string[]): readonly string[] => [
  "sh",
  "-c",
  line,
  "sh",
  ...words,
];

/** The words of boxes that have a shell. */
export const SHELL_WORDS: BoxWords = {
  exit: (code: number) => sh('exit "$1"', String(code)),
  die: (signal: number) => sh('kill -"$1" $$', String(signal)),
  leave: (processes: number) => sh('for _ in $(seq "$1"); do sleep 60 & done; exit 0', String(processes)),
  says: (out: string, err: string) => sh('printf %s "$1"; printf %s "$2" >&2', out, err),
  flood: (bytes: number) => ["head", "-c", String(bytes), "/dev/zero"],
};

/** A box over a workspace with FILES, watched for changes. */
export interface Opened extends AsyncDisposable {
  readonly box: OwnedBox;
  readonly words: BoxWords;
  /** Ends the box as a crash would. */
  readonly lose: () => Promise<void> | void;
  /** The host's folder, for a box that works on a copy. */
  readonly folder?: string;
}

export type Open = () => Promise<Opened>;

export const FILES = {
  "old.txt": "old text\n",
  "gone.txt": "",
  "sub/deep.txt": "deep",
  ".git/config": "[core]\n",
};

export const KEEP = { head: 64 * 1024, tail: 64 * 1024 };
export const NEVER = new AbortController().signal;

export const asking = (words: readonly string[], more: Partial<ExecRequest> = {}): ExecRequest => ({
  words,
  timeoutMs: 20_000,
  keep: KEEP,
  ...more,
});

export async function* inputOf(...parts: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield await Promise.resolve(Buffer.from(part as Uint8Array));
}

export const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");
