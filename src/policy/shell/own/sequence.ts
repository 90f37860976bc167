const INTEGER = /^-?\d{1,9}$/;
const PADDED = /^-?0\d/;
const LOWER = /^[a-z]$/;
const UPPER = /^[A-Z]$/;

/** The items of `first..last` or `first..last..step`, or why they are not made. */
export function sequence(text: string, most: number): string[] | string {
  const [first = "", last = "", step = "1", ...more] = text.split("..");
  const letters = (LOWER.test(first) && LOWER.test(last)) || (UPPER.test(first) && UPPER.test(last));
  const numbers = INTEGER.test(first) && INTEGER.test(last);
  if (more.length > 0 || !INTEGER.test(step) || !(letters || numbers)) return "this sequence";
  const from = letters ? first.charCodeAt(0) : Number(first);
  const to = letters ? last.charCodeAt(0) : Number(last);
  const by = Math.abs(Number(step)) || 1;
  if (Math.abs(to - from) / by >= most) return "too many words made by braces";
  const width = PADDED.test(first) || PADDED.test(last) ? Math.max(first.length, last.length) : 0;
  const items: string[] = [];
  for (let at = from; from <= to ? at <= to : at >= to; at += from <= to ? by : -by)
    items.push(letters ? String.fromCharCode(at) : padded(at, width));
  return items;
}

function padded(value: number, width: number): string {
  const digits = String(Math.abs(value));
  return value < 0 ? `-${digits.padStart(width - 1, "0")}` : digits.padStart(width, "0");
}
