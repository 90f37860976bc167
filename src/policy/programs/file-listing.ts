import type { Arg, Found, Use, Reader } from "./program-model.ts";
const NUMBERS = new Set("bs ibs obs cbs count skip seek iseek oseek conv iflag oflag status".split(" "));

/** Any number of files whose names begin like this. */
function parts(use: Use, prefix: Arg | null | undefined, standard: string): readonly Found[] {
  const { kind, value, span } = prefix ?? { kind: "literal", value: standard, span: use.span };
  const pattern: Arg = { kind: kind === "dynamic" ? kind : "glob", value: `${value}*`, span };
  return [{ kind: "write", path: use.place(pattern), span }];
}

/** `name=value`, each of its own. */
function ddEffects(use: Use): readonly Found[] {
  return use.args.flatMap((arg) => {
    const equals = arg.value.indexOf("=");
    const name = arg.value.slice(0, Math.max(equals, 0));
    const value: Arg = { ...arg, value: arg.value.slice(equals + 1) };
    if (name === "if") return [{ kind: "read", path: use.place(value), span: arg.span } satisfies Found];
    if (name === "of") return [{ kind: "write", path: use.place(value), span: arg.span } satisfies Found];
    if (arg.loose === true) return [use.doubt("word.dynamic", arg)];
    return NUMBERS.has(name) ? [] : [use.doubt("option.unknown", arg)];
  });
}

const BUNDLE = /^-[^-]/;
const INNER_VALUE = /^-[^-]*?[LPIoHT](?!\d*$)./;

/** In a bundle of `tree` a letter takes the next word, never the rest of its own: `-Lo 2 out` writes `out`. */
const bundledValues = (use: Use): readonly Found[] =>
  use.args
    .filter(({ value }) => BUNDLE.test(value) && INNER_VALUE.test(value))
    .map((arg) => use.doubt("option.unknown", arg));
/** What rows ask of this file, by name. */
export const FILE_LISTING_READERS: Readonly<Record<string, Reader>> = {
  tree: bundledValues,
  split: (use) => parts(use, use.operands[1], "x"),
  csplit: (use) =>
    parts(use, use.options.findLast(({ name }) => name === "-f" || name === "--prefix")?.value, "xx"),
  dd: ddEffects,
};
