import type { Arg, Found, Use } from "../model.ts";

/** What only bash knows; the small shells read other commands there. Looked for in the text, quoted or not. */
const ONLY_BASH =
  /\$'|&>|<<<|\|&|\(\(|<\(|>\(|\{[^\s{}]*(?:,|\.\.)|(?:^|[\s;&|({])(?:\[\[|function|select|time|coproc)(?=\s)/;
/** Before a command of the shell itself, the variable stays. */
const STAYS = /(?:^|[\s;&|({])\w+=[^\s;&|]*\s+[^\s;&|]/;

/** A text that is given to `sh`, which may be any of the small shells. */
export const onlyBash = (text: Arg, use: Use): readonly Found[] =>
  ONLY_BASH.test(text.value) || STAYS.test(text.value)
    ? [use.doubt("shell.unreadable", text, "only bash is known to read it so")]
    : [];
