import { ENVIRONMENT } from "../../effects/environment.ts";
import type { Arg, Found, Use } from "../model.ts";

/** Letters, the last of which may take the next word. */
const UNIX = /^-[AadeNfFHjlLMmPTcwyZ]*[CGgOopqstUu]?$/;
/** A list behind its letter: `-p1,2`, `-opid,cmd`. */
const UNIX_LIST = /^-[AadeNfFHjlLMmPTcwy]*(?:p[\d,]+|[oO][a-z%,=]+)$/;
/** `-aux` is read as `aux` when there is no user x. */
const UNIX_AS_BSD = /^-[aTrfjlcwmux]*$/;
const BSD = /^[aTgrxtXjlsuvcfhSwnmHZLM]*[oOpkUqt]?$/;
const BSD_ENVIRONMENT = /^[a-zA-Z]*e[a-zA-Z]*$/;
const NUMBERS = /^[\d,]+$/;
const LONG =
  /^--(?:(?:forest|deselect|headers?|no-?headers?|cumulative|info|help|version|context)$|(?:sort|pid|ppid|user|User|group|Group|format|cols|columns|width|rows|lines|tty|sid|quick-pid|cmdlines?)(?:=|$))/;
const LONG_NEXT =
  /^--(?:sort|pid|ppid|user|User|group|Group|format|cols|columns|width|rows|lines|tty|sid|quick-pid)$/;
const TAKES_NEXT = /^-[A-Za-z]*[CGgOopqstUu]$|^[A-Za-z]*[oOpkUqt]$/;

const EVERY = /^-[A-Za-z]*e/;
const OWNER = /^-[A-Za-z]*[GgstuU]$/;

/**
 * Its three kinds of options. Without a dash `e` shows the variables of every process; and all that has a dash is read
 * again as if it had none when there is no such user, group or terminal.
 */
export function psEffects(use: Use): readonly Found[] {
  const found: Found[] = [];
  const has = (form: RegExp): boolean => use.args.some(({ value }) => form.test(value));
  if (has(EVERY) && has(OWNER)) found.push({ kind: "read", path: ENVIRONMENT });
  for (let at = 0; at < use.args.length; at += 1) {
    const arg = use.args[at] as Arg;
    found.push(...optionEffects(arg, use));
    if (!TAKES_NEXT.test(arg.value) && !LONG_NEXT.test(arg.value)) continue;
    at += 1;
    const value = use.args[at];
    if (value !== undefined) found.push(...valueEffects(value, use));
  }
  return found;
}

function optionEffects(arg: Arg, use: Use): readonly Found[] {
  const { kind, value, span } = arg;
  if (kind !== "literal") return [use.doubt("word.dynamic", arg)];
  if (value.includes("environ")) return [{ kind: "read", path: ENVIRONMENT, span }];
  if ([UNIX, UNIX_LIST, UNIX_AS_BSD, BSD, NUMBERS, LONG].some((form) => form.test(value))) return [];
  return BSD_ENVIRONMENT.test(value)
    ? [{ kind: "read", path: ENVIRONMENT, span }]
    : [use.doubt("option.unknown", arg)];
}

function valueEffects(arg: Arg, use: Use): readonly Found[] {
  if (arg.loose === true) return [use.doubt("word.dynamic", arg)];
  return arg.value.includes("environ") ? [{ kind: "read", path: ENVIRONMENT, span: arg.span }] : [];
}
