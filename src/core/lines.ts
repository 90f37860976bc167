/** A longer line is cut. */
export const LONGEST_LINE = 2 ** 20;
/** What a line that was cut ends with: no JSON does. */
const CUT = "\u2026";

/**
 * The lines of a text in UTF-8. Only a line feed ends one, as in JSON lines: U+2028 and its like may stand inside of one.
 * A mark of the byte order at the start is left out; what is kept of a line is bounded.
 */
export async function* linesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let held: string[] = [];
  let length = 0;
  const hold = (text: string): void => {
    if (text !== "" && length <= LONGEST_LINE) held.push(text);
    length += text.length;
  };
  const line = (): string => {
    const whole = held.join("");
    const cut = length > LONGEST_LINE;
    held = [];
    length = 0;
    return cut ? whole.slice(0, LONGEST_LINE) + CUT : whole;
  };
  for await (const chunk of chunks) {
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    hold(first);
    for (const next of others) {
      yield line();
      hold(next);
    }
  }
  hold(decoder.decode());
  if (length > 0) yield line();
}
