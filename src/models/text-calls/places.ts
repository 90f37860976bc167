const BACK = 160;

/** Whether a call may stand here: at a line's start, behind another item, or after the end of a sentence. */
export function mayBegin(text: string, at: number, edge: number): boolean {
  const before = text.slice(Math.max(edge, at - BACK), at).trimEnd();
  if (before === "") return at - edge < BACK;
  if (at - before.length > edge && before.length === BACK) return endsSentence(before);
  return endsSentence(before);
}

const SENTENCE = /[.!?…。！？]["”’')*_]{0,2}$/;
const NO_SENTENCE = /(?:^|\s)(?:e\.g|i\.e|etc|vs|cf|\d{1,3})\.$/i;
const ANNOUNCED =
  /(?:^|[.!?]\s+)(?:I'll|I will|I’ll|Let me|Let's|I am going to|I'm going to|First,|Now)\b[^.!?"`]*:$/;

const endsSentence = (before: string): boolean =>
  (SENTENCE.test(before) && !NO_SENTENCE.test(before)) || ANNOUNCED.test(before);

/** Inside JSON or code that goes on over lines, nothing begins. */
export function insideCode(text: string, at: number, from: number): boolean {
  const before = text.slice(Math.max(from, at - BACK), at).trimEnd();
  return /[[{(,=]$|["'\]]\s*:$/.test(before);
}

/** The last line with something on it before a place. */
export function lineBefore(text: string, at: number): string {
  const before = text.slice(Math.max(0, at - 400), at).trimEnd();
  return before.slice(before.lastIndexOf("\n") + 1);
}
