import { createHash } from "node:crypto";
import type { Chunk, StoredFile } from "../../../src/search/search-store.ts";

export const IDENTITY = { index: "a1b2", vectors: null } as const;
export const NEVER: AbortSignal = new AbortController().signal;

const sha = (text: string): string => createHash("sha256").update(text).digest("hex");

export function chunk(path: string, text: string, more: Partial<Chunk> = {}): Chunk {
  const hash = sha(text);
  const start = more.start ?? 1;
  const hex = sha(`${path}:${start}:${hash}`);
  const id = [8, 4, 4, 4, 12].map((length, at, all) =>
    hex.slice(sum(all.slice(0, at)), sum(all.slice(0, at)) + length),
  );
  return {
    id: id.join("-"),
    path,
    start,
    end: start + text.split("\n").length - 1,
    kind: "code",
    symbol: null,
    text,
    language: "typescript",
    role: "source",
    hash,
    trust: "trusted",
    ...more,
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** A file with one chunk per text. */
export function file(path: string, ...texts: readonly string[]): StoredFile {
  let start = 1;
  const chunks = texts.map((text) => {
    const made = chunk(path, text, { start });
    start = made.end + 1;
    return made;
  });
  return { path, hash: sha(texts.join("\n")), chunks };
}
