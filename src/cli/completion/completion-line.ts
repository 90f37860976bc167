/** A command line up to the cursor, as a shell reads it; open quotes end with the line. */
export interface TypedLine {
  /** The words before the one that is being typed, without the program's name. */
  readonly before: readonly string[];
  readonly current: string;
  /** The current word as it was typed, with its quotes and backslashes. */
  readonly raw: string;
}

const ASSIGNMENT = /^[A-Za-z_]\w*=/;

/**
 * A piece of a word: in single quotes, in double quotes, a letter after a backslash, or plain; or blanks between words.
 */
const PIECE =
  /(?<blanks>\s+)|'(?<single>[^']*)'?|"(?<double>(?:\\.|[^"\\])*)(?:"|\\?$)|\\(?<escaped>.?)|(?<plain>[^\s'"\\]+)/gsy;

/** Expands nothing: a variable or a substitution stays text. */
export function typedLine(line: string): TypedLine {
  const words = [{ text: "", raw: "" }];
  for (const { 0: raw, groups = {} } of line.matchAll(PIECE)) {
    const last = words.at(-1);
    if (groups["blanks"] !== undefined || last === undefined) words.push({ text: "", raw: "" });
    else {
      last.text += textOf(groups);
      last.raw += raw;
    }
  }
  const typed = words.slice(0, -1).filter(({ raw }) => raw !== "");
  const program = typed.findIndex(({ text }) => !ASSIGNMENT.test(text));
  const { text = "", raw = "" } = words.at(-1) ?? {};
  return {
    before: program === -1 ? [] : typed.slice(program + 1).map((each) => each.text),
    current: text,
    raw,
  };
}

const textOf = (groups: Readonly<Record<string, string | undefined>>): string =>
  groups["double"]?.replaceAll(/\\(["\\$`])/g, "$1") ??
  groups["single"] ??
  groups["escaped"] ??
  groups["plain"] ??
  "";

/**
 * How much of the current word the shell keeps, since it also breaks words at these characters (bash: `=` and `:`).
 * Within open quotes it does not break words, and replaces what is in the quotes.
 */
export function keptLength({ current, raw }: TypedLine, breaks: string): number {
  const quote = /^[^'"\\]*(?=['"])/.exec(raw)?.[0];
  if (quote !== undefined) return quote.length;
  const letters = new Set(breaks.replaceAll(/[\s'"\\]/g, ""));
  for (let at = current.length; at > 0; at -= 1) if (letters.has(current.charAt(at - 1))) return at;
  return 0;
}
