/** Texts measured and cut by their bytes in UTF-8. No character is ever parted. */

export function fits(text: string, bytes: number): boolean {
  if (text.length > bytes) return false;
  return text.length * 3 <= bytes || new TextEncoder().encode(text).length <= bytes;
}

/** The longest beginning of so many bytes. */
export function headWithin(text: string, bytes: number): string {
  let end = 0;
  for (let left = bytes; end < text.length;) {
    const { size, units } = character(text.codePointAt(end));
    left -= size;
    if (left < 0) break;
    end += units;
  }
  return text.slice(0, end);
}

/** The longest end of so many bytes. */
export function tailWithin(text: string, bytes: number): string {
  let start = text.length;
  for (let left = bytes; start > 0;) {
    const { size, units } = character(pointBefore(text, start));
    left -= size;
    if (left < 0) break;
    start -= units;
  }
  return text.slice(start);
}

function pointBefore(text: string, end: number): number | undefined {
  const point = end > 1 ? text.codePointAt(end - 2) : undefined;
  return point !== undefined && point > 0xffff ? point : text.codePointAt(end - 1);
}

/** A lone half of a character counts as what takes its place. */
function character(point = 0): { readonly size: number; readonly units: number } {
  if (point < 0x80) return { size: 1, units: 1 };
  if (point < 0x800) return { size: 2, units: 1 };
  return point < 0x1_0000 ? { size: 3, units: 1 } : { size: 4, units: 2 };
}
