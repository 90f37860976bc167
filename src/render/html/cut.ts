/** A page is read on a phone; all of a text is in the JSON of the same report. */
const LONGEST_TEXT = 12_000;

/** Its beginning and its end, and how much was between. */
export function cutText(text: string, longest = LONGEST_TEXT): string {
  if (text.length <= longest) return text;
  const half = Math.floor(longest / 2);
  const head = text.slice(0, half).toWellFormed();
  const tail = text.slice(-half).toWellFormed();
  return `${head}\n… ${text.length - 2 * half} characters are left out; harness report --json has them …\n${tail}`;
}
