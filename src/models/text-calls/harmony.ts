import { readArguments } from "./payloads.ts";
import { CUT, type Outcome } from "./call-reading.ts";
import { skipSpace } from "./literals.ts";

const HEADER =
  /(?:<\|start\|>)?(?:assistant)?\s{0,4}(?:to=([\w.:-]{1,90})\s{0,4})?<\|channel\|>\s{0,4}(analysis|commentary|final)?\s{0,4}(?:to=([\w.:-]{1,90})\s{0,4})?(?:<\|constrain\|>)?\s{0,4}(?:json|code)?\s{0,4}<\|message\|>/y;
const STRIPPED =
  /(?:assistant)?(?:commentary|analysis) {0,4}to=(functions\.[\w.:-]{1,90})\s{0,4}(?:<\|constrain\|>)?(?:json|code)?\s{0,4}(?:<\|message\|>)?/y;
const OPENING = /<\|start\|>|<\|channel\|>|(?:assistant)?(?:commentary|analysis) {0,4}to=functions\./y;
const BODY_END = /<\|(?:end|return|start|channel|call)\|>/g;
const RECIPIENT = /to=([\w.:-]{1,90})/;
const TURN = /assistant(?=commentary|final|analysis)/g;
/** A turn that only speaks. */
const SPOKEN = /assistant(?:final|commentary(?! {0,4}(?:to=|t?o?$)))/y;
const CUT_HEADER = /^\s*(?:<\|channel\|>\w*\s*)?(?:<\|[a-z]*(?:\|>?)?)?\s?[a-z]{0,4}\s?(?:<\|[a-z]*\|?)?$/;
const LONGEST_HEADER = 260;
const LONGEST_TURN = "assistantcommentary    to=".length;

/** A segment of the harmony format: calls, or a body that is shown or thought. */
export type Segment =
  | Outcome
  | {
      readonly kind: "body";
      readonly from: number;
      readonly to: number;
      readonly end: number;
      readonly shown: boolean;
    };

export function opensHarmony(text: string, at: number): boolean {
  OPENING.lastIndex = at;
  return OPENING.test(text);
}

export function readHarmony(text: string, start: number, final: boolean): Segment {
  HEADER.lastIndex = start;
  const header = HEADER.exec(text);
  if (header === null) return readStripped(text, start, final);
  const body = HEADER.lastIndex;
  const to = header[1] ?? header[3];
  if (to !== undefined) return readArguments(text, skipSpace(text, body), to);
  BODY_END.lastIndex = body;
  const over = BODY_END.exec(text);
  if (over === null && !final) return { kind: "more" };
  const end = over?.index ?? text.length;
  return { kind: "body", from: body, to: end, end, shown: header[2] !== "analysis" };
}

function readStripped(text: string, start: number, final: boolean): Segment {
  STRIPPED.lastIndex = start;
  const name = STRIPPED.exec(text)?.[1];
  const at = STRIPPED.lastIndex;
  if (name !== undefined && text[at] === "{") return readArguments(text, at, name);
  const rest = text.slice(start, start + LONGEST_HEADER);
  if (rest.length === LONGEST_HEADER) return { kind: "text", end: start + 1 };
  if (!final) return { kind: "more" };
  const to = cutRecipient(rest, at >= start + rest.length - 40);
  if (to === undefined) return { kind: "text", end: start + 1 };
  const found = [{ name: to, args: {}, repaired: false, broken: CUT }];
  return { kind: "calls", found, end: text.length, cut: true };
}

/** To whom a header speaks that the end of the text cuts. */
function cutRecipient(header: string, near: boolean): string | undefined {
  const recipient = RECIPIENT.exec(header);
  if (recipient === null) return undefined;
  const behind = header.slice(recipient.index + recipient[0].length);
  return near || header.length <= 40 || CUT_HEADER.test(behind) ? recipient[1] : undefined;
}

/**
 * The beginning of a reply that lost its tokens: `analysis…assistantcommentary to=…`. What is thought ends where
 * the next turn begins.
 */
export function strippedThought(text: string, final: boolean): Segment | undefined {
  if (!final && "analysis".startsWith(text)) return { kind: "more" };
  if (!/^analysis(?:[^\sa-z]|$)/.test(text.slice(0, 9))) return undefined;
  TURN.lastIndex = 0;
  const turn = TURN.exec(text);
  if (turn !== null) return afterThought(text, turn.index, final);
  return final ? undefined : { kind: "more" };
}

function afterThought(text: string, turn: number, final: boolean): Segment {
  if (!final && text.length < turn + LONGEST_TURN) return { kind: "more" };
  SPOKEN.lastIndex = turn;
  const end = SPOKEN.test(text) ? SPOKEN.lastIndex : turn;
  return { kind: "body", from: turn, to: turn, end, shown: false };
}
