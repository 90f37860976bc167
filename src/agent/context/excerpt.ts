/** Head and tail of a text that is too long, with a mark of what is left out between them; no character is parted. */
export function excerpt(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = wholeBefore(text, Math.ceil(most * 0.7));
  const tail = wholeFrom(text, text.length - Math.floor(most * 0.3));
  return `${text.slice(0, head)}\n[… ${tail - head} characters left out …]\n${text.slice(tail)}`;
}

/** The head of a text; where it is cut it says so. */
export const clipped = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, wholeBefore(text, most))}…`;

const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

const wholeBefore = (text: string, at: number): number => (isLow(text.charCodeAt(at)) ? at - 1 : at);
const wholeFrom = (text: string, at: number): number => (isLow(text.charCodeAt(at)) ? at + 1 : at);
