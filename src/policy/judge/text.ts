import type { TextDoubt } from "../shell/read.ts";
import { ASKED, DENIED, type Ruling, type Worth } from "./ruling.ts";

const RULES: Readonly<Record<TextDoubt["id"], readonly [reason: (what: string) => string, worth: Worth]>> = {
  "text.empty": [() => "there is no command", DENIED],
  "text.control": [
    (what) => `the control character ${what}, which programs and people read differently`,
    DENIED,
  ],
  "text.syntax": [(what) => `this is no shell text: ${what}`, DENIED],
  "text.invalid": [(what) => `${what} stands for bytes that are no text`, ASKED],
  "text.invisible": [(what) => `${what} cannot be seen, or looks like another character`, ASKED],
  "text.limit": [(what) => `${what} are more than are looked at`, ASKED],
  "text.disagree": [(what) => `two readers of shell text disagree: ${what}`, ASKED],
};

export function textRuling({ id, what, span }: TextDoubt): Ruling {
  const [reason, worth] = RULES[id];
  return { id, reason: reason(what), span, ...worth };
}
