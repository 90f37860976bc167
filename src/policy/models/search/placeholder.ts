import type { Arg } from "../model.ts";

/** A word with all occurrences of a mark replaced by what will stand there. */
export function replaced(word: Arg, mark: string, by: Arg): Arg {
  if (mark === "" || !word.value.includes(mark)) return word;
  const kind = word.kind === "dynamic" ? word.kind : by.kind;
  const feed = by.feed === undefined ? {} : { feed: by.feed };
  return { ...word, ...feed, kind, value: word.value.replaceAll(mark, () => by.value) };
}
