/** A text with `*` for any text, between its stars. */
export type Wildcard = readonly string[];

export const readWildcard = (text: string): Wildcard => text.split("*");

/** In linear time: between first and last part, the leftmost place of each part is as good as any. */
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
