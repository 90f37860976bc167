import { lineBefore } from "./places.ts";

const EXAMPLE =
  /\b(?:examples?|formats?|such as|e\.g\.|for instance|like (?:so|this)|looks? like|sample|syntax|would (?:be|look|write|send|have)|(?:you|user|client|model|assistant|it|they|he|she) (?:wrote|writes|sent|sends|emits|emitted|produced|produces|answered|logged)|instead of|template|illustrat\w+|hypothetical\w*|the (?:log|transcript|fixture) (?:shows?|says|contains))\b/i;
const REFUSED =
  /\b(?:do not|don['’]t|never|won['’]t|will not|should not|shouldn['’]t|cannot|can['’]t|must not|would not) (?:ever )?(?:run|call|send|execute|use|write|emit)\b/i;
const ASKED = /\b(?:would like to (?:run|call|do)|may I|shall I|should I|want me to)\b/i;
const INTENT = /^(?:I['’]ll|I will|Let me|Let['’]s|I am going|I['’]m going|First|Now|Next)\b/i;
const SHOWING = /\b(?:show|give|illustrate|demonstrate|explain|here is|here's|write|quote)\b/i;

/** Whether the line before says that what follows is only shown. */
export function announcedAsShown(text: string, at: number, weak: boolean): boolean {
  const line = lineBefore(text, at);
  const sentence = line.split(/(?<=[.!?])\s+(?=[A-Z])/).at(-1) ?? line;
  if (REFUSED.test(sentence)) return true;
  if (weak) return EXAMPLE.test(line) || ASKED.test(sentence);
  if (!/:\s*\**$/.test(line)) return false;
  if (INTENT.test(sentence) && !SHOWING.test(sentence)) return false;
  return EXAMPLE.test(sentence) || ASKED.test(sentence);
}

/** How much of the text behind a call is looked at. */
export const LOOK_AFTER = 240;
const GOES_ON = /^(?:[,.;:)\]}'"`”’»|]|[a-z][a-z'’]*[\s,.])/;
const COMMENTED =
  /^(?:This|That|These|Those|The above|Above|It)\b[^.!?]{0,100}\b(?:example|format|syntax|how|would|sample|what|wrote|only|just|illustrat\w+)\b/;
const ASKS =
  /\b(?:shall I|should I|may I|is (?:that|this) (?:ok|okay|all right|alright|fine)|do you want|ok to)\b[^.!]*\?/i;

/** Whether the text behind goes on in the same sentence, or speaks about the call. */
export function commentedAsShown(after: string): boolean {
  const text = after.trimStart().slice(0, LOOK_AFTER);
  return GOES_ON.test(text) || COMMENTED.test(text) || ASKS.test(text);
}
