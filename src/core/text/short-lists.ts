/** Counts and shortened lists, as shown to people. */

/** The first characters, with a mark when there were more. */
export const clipped = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most)}…` : text;

/** `1 file`, `2 files`; `many` is needed when adding an s is not enough. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

/** The first entries, each formatted by `write`, followed by how many more there are. */
export const firstLines = <T>(
  all: readonly T[],
  most: number,
  write: (each: T) => string = String,
): readonly string[] => [
  ...all.slice(0, most).map((each) => write(each)),
  ...(all.length > most ? [`and ${all.length - most} more`] : []),
];

/** The same in one line: `a, b and 3 more`. */
export const firstOf = <T>(all: readonly T[], most: number, write: (each: T) => string = String): string =>
  all
    .slice(0, most)
    .map((each) => write(each))
    .join(", ") + (all.length > most ? ` and ${all.length - most} more` : "");
