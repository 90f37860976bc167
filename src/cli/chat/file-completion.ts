/** What could stand there, and the part of the line that it would replace. */
export type Completion = readonly [hits: readonly string[], of: string];

const OPEN = /(?<!\S)@(?:"([^"]*)|([^\s"]*))$/;

/**
 * For the tab key behind an `@`: undefined where the line does not end with one. What is asked for later ends what was
 * asked for before, which then gives nothing.
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

/** What several have in common at their start must not take the place of what was typed: it stands among them then. */
const fitting = (hits: readonly string[], of: string): readonly string[] =>
  hits.length > 1 && hits.some((hit) => !hit.startsWith(of)) ? [of, ...hits] : hits;

export function commonStart(one: string, other: string): string {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return one.slice(0, length);
}
