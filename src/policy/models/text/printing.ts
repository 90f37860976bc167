import type { Found, Model, Use } from "../model.ts";
import { gnu, PRINTS } from "../plain.ts";
import { testEffects } from "./conditions.ts";

/** Programs that print what they are told, or only end. */
export const PRINTING: Readonly<Record<string, Model>> = {
  printf: { reads: printfEffects, tells: "--version --help" },
  true: PRINTS,
  false: PRINTS,
  test: { reads: testEffects, tells: "" },
  "[": { reads: testEffects, tells: "" },
  sleep: PRINTS,
  clear: PRINTS,
  tput: PRINTS,
  cal: PRINTS,
  ncal: PRINTS,
  // It never ends by itself.
  yes: { fixed: ["ask"], operands: "data*" },
  date: gnu(
    "data?",
    `-Ru -d: -f:read -I? -r:read -s:!system --date= --debug --file=read --iso-8601=? --resolution --rfc-email --rfc-3339=
    --reference=read --set=!system --utc --universal`,
    setsDate,
  ),
};

/** Any operand that is no format sets the clock. */
function setsDate(use: Use): readonly Found[] {
  return use.operands
    .filter(({ kind, value }) => kind === "literal" && !value.startsWith("+"))
    .map(({ span }) => ({ kind: "system", what: use.program, span }));
}

const COUNTS = /(?:^|[^%])(?:%%)*%[-+ #'*.\dhjlLqtz]*n/;

/** `-v name` and `%n` set variables of the shell, and a name may hold a subscript, which is calculated. */
function printfEffects(use: Use): readonly Found[] {
  const at = use.args[0]?.value === "--" ? 1 : 0;
  const format = use.args[at];
  if (format === undefined) return [];
  if (at === 0 && format.value.startsWith("-") && format.value !== "-")
    return [use.doubt("shell.expansion", format)];
  if (format.kind !== "literal" && (format.loose === true || use.args.length > at + 1))
    return [use.doubt("word.dynamic", format)];
  return COUNTS.test(format.value) ? [use.doubt("shell.expansion", format)] : [];
}
