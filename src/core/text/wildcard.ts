/** Patterns in which `*` stands for any text. */

/** The literal parts between the `*` of a pattern. */
export type Wildcard = readonly string[];

export const readWildcard = (text: string): Wildcard => text.split("*");

/** Linear: between the first and the last part, the leftmost match of each part suffices. */
export function fitsWildcard([first = "", ...rest]: Wildcard, text: string): boolean {
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= end;
}
