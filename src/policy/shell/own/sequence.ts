const INTEGER = /^-?\d{1,9}$/;
const PADDED = /^-?0\d/;
const LOWER = /^[a-z]$/;
const UPPER = /^[A-Z]$/;

/** The items of `first..last` or `first..last..step`, or why they are not made. */
export function sequence(text: string, most: number): string[] | string {
  const [first = "", last = "", step = "1", ...more] = text.split("..");
  if (more.length > 0 || !INTEGER.test(step)) return "this sequence";
  const by = Math.abs(Number(step)) || 1;
  if (both(LOWER, first, last) || both(UPPER, first, last)) {
    const codes = range(first.charCodeAt(0), last.charCodeAt(0), by, most);
    return codes.map((code) => String.fromCharCode(code));
  }
  return both(INTEGER, first, last) ? integers(first, last, by, most) : "this sequence";
}

function integers(first: string, last: string, by: number, most: number): string[] | string {
  const values = range(Number(first), Number(last), by, most + 1);
  const padding = PADDED.test(first) || PADDED.test(last);
  const width = padding ? Math.max(first.length, last.length) : 0;
  return values.length > most ? "too many words made by braces" : values.map((value) => padded(value, width));
}

const both = (pattern: RegExp, first: string, last: string): boolean =>
  pattern.test(first) && pattern.test(last);

/** At most `most` numbers. */
function range(from: number, to: number, by: number, most: number): number[] {
  const length = Math.floor(Math.abs(to - from) / by) + 1;
  const step = from <= to ? by : -by;
  return Array.from({ length: Math.min(length, most) }, (_, index) => from + index * step);
}

function padded(value: number, width: number): string {
  const digits = String(Math.abs(value));
  return value < 0 ? `-${digits.padStart(width - 1, "0")}` : digits.padStart(width, "0");
}
