import { namedBy } from "../rank/name.ts";
import type { Tokenizer } from "../rank/tokens.ts";
import type { StoredFile } from "../store.ts";
import type { WrittenFile } from "./rows.ts";
import { type FileWords, IN_FOLDER, IN_NAME } from "./segment.ts";

export function wordsOfFile(file: StoredFile, written: WrittenFile, tokenizer: Tokenizer): FileWords {
  const { folder, name } = namedBy(file.path);
  const names = tokenizer.count(name);
  const path = new Map<string, number>();
  for (const word of tokenizer.count(folder).keys()) path.set(word, IN_FOLDER);
  for (const word of names.keys()) path.set(word, (path.get(word) ?? 0) | IN_NAME);
  return {
    number: written.number,
    role: file.chunks[0]?.role ?? "source",
    path,
    names: names.size,
    chunks: file.chunks.map(({ text, symbol }, place) => ({
      number: written.chunks[place] ?? 0,
      text: tokenizer.count(text),
      symbol: tokenizer.count(symbol ?? ""),
    })),
  };
}
