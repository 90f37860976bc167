/** How many there are, and the first of many, as people are told them. */

/** The first so many characters, and a mark where there were more. */
export const clipped = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most)}…` : text;

/** `1 file`, `2 files`; `many` where an s is not enough. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

/** The first so many, each as it is written, and behind them how many more there are. */
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
