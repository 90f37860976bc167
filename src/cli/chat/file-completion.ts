/** Candidates, and the part of the line that they would replace. */
export type Completion = readonly [hits: readonly string[], of: string];

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

export function commonStart(one: string, other: string): string {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return one.slice(0, length);
}
