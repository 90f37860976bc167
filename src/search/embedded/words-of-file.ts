import type { Tokenizer } from "../rank/tokens.ts";
import type { StoredFile } from "../store.ts";
import type { WrittenFile } from "./rows.ts";
import { type FileWords, IN_FOLDER, IN_NAME } from "./segment.ts";

/** Names that say nothing: such a file is called as its folder is. */
const NAMELESS = new Set(["index", "mod", "__init__", "main", "lib", "init"]);

export function wordsOfFile(file: StoredFile, written: WrittenFile, tokenizer: Tokenizer): FileWords {
  const { folder, name } = named(file.path);
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

function named(path: string): { readonly folder: string; readonly name: string } {
  const cut = path.lastIndexOf("/");
  const folder = path.slice(0, Math.max(0, cut));
  const name = path.slice(cut + 1).replace(/(.)\.[^.]*$/, "$1");
  return {
    folder,
    name: NAMELESS.has(name) && folder !== "" ? folder.slice(folder.lastIndexOf("/") + 1) : name,
  };
}
