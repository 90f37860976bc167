import type { Tokenizer } from "../rank/tokens.ts";
import type { StoredFile } from "../store.ts";
import type { WrittenFile } from "./rows.ts";
import type { FileWords } from "./segment.ts";

export function wordsOfFile(file: StoredFile, written: WrittenFile, tokenizer: Tokenizer): FileWords {
  return {
    number: written.number,
    role: file.chunks[0]?.role ?? "source",
    path: tokenizer.count(file.path),
    chunks: file.chunks.map(({ text, symbol }, place) => ({
      number: written.chunks[place] ?? 0,
      text: tokenizer.count(text),
      symbol: tokenizer.count(symbol ?? ""),
    })),
  };
}
