import { type Arg, type Found, UNKNOWN, type Use } from "../model.ts";

/**
 * A command with what will be found in place of its marks. One command stands for all that will run: a word that is a
 * mark becomes all there is to find, a word that contains one becomes unknown where there is more than one thing.
 */
export function filled(
  words: readonly Arg[],
  marks: readonly string[],
  found: readonly Arg[],
): readonly Arg[] {
  const [only] = found;
  const single = only !== undefined && found.length === 1 ? only : unknownOf(found);
  return words.flatMap((word) => {
    if (word.kind === "literal" && marks.includes(word.value)) return found;
    const mark = marks.find((each) => word.value.includes(each));
    return mark === undefined ? [word] : [replaced(word, mark, single)];
  });
}

function unknownOf(found: readonly Arg[]): Arg {
  const feed = found.find((arg) => arg.feed === "network")?.feed ?? "unknown";
  return { kind: "dynamic", value: UNKNOWN, span: [0, 0], feed };
}

function replaced(word: Arg, mark: string, by: Arg): Arg {
  const kind = word.kind === "dynamic" ? word.kind : by.kind;
  const feed = by.feed === undefined ? {} : { feed: by.feed };
  return { ...word, ...feed, kind, value: word.value.replaceAll(mark, () => by.value) };
}

const MOST_FINDS = 64;

/** As many finds as are looked at, and a doubt where there are more. */
export function mostOf(found: readonly Arg[], { span }: Use): readonly [readonly Arg[], readonly Found[]] {
  if (found.length <= MOST_FINDS) return [found, []];
  const what = `more than ${MOST_FINDS} places to search`;
  return [found.slice(0, MOST_FINDS), [{ kind: "unknown", doubt: "shell.limit", what, span }]];
}
