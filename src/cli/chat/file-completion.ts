import type { Completion } from "../terminal-input.ts";

const OPEN = /(?<!\S)@(?:"([^"]*)|([^\s"]*))$/;

/**
 * Completion for the tab key after an `@`; undefined if the line does not end with a mention. A later request ends the
 * earlier one, which then gives nothing.
 */
export function fileCompletion(
  find: (typed: string, signal: AbortSignal) => Promise<readonly string[]>,
): (line: string) => Promise<Completion> | undefined {
  const last = { asked: new AbortController() };
  return (line) => {
    last.asked.abort();
    const open = OPEN.exec(line);
    if (open === null) return undefined;
    last.asked = new AbortController();
    const of = open[0];
    return find(open[1] ?? open[2] ?? "", last.asked.signal).then(
      (files) => [fitting(files.map(mention), of), of],
      () => [[], of],
    );
  };
}

const mention = (file: string): string => (/\s/.test(file) ? `@"${file}"` : `@${file}`);

/** Prevents the common start of several candidates from replacing the typed text, by adding that text to them. */
const fitting = (hits: readonly string[], of: string): readonly string[] =>
  hits.length > 1 && hits.some((hit) => !hit.startsWith(of)) ? [of, ...hits] : hits;

/** The characters with which all candidates begin. */
export function commonStart([first = "", ...rest]: readonly string[]): string {
  let length = 0;
  while (length < first.length && rest.every((hit) => hit[length] === first[length])) length += 1;
  return first.slice(0, length);
}
