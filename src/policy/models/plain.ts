import type { Fixed, Found, Model, Use } from "./model.ts";
import { fixedEffect } from "./roles.ts";

/** A program of the GNU kind: long options may be shortened, and all that do more than read are listed. The options come last, as they are long. */
export const gnu = (operands: string, options: string, also?: (use: Use) => readonly Found[]): Model => ({
  options,
  operands,
  abbreviates: true,
  complete: true,
  ...(also === undefined ? {} : { also }),
});

/** Whatever its arguments are, it does nothing but print. */
export const PRINTS: Model = { reads: () => [] };

/** Whatever its arguments are, it does this. */
export const always = (fixed: Fixed, tells = "--version --help"): Model => ({
  tells,
  reads: (use) => [fixedEffect(fixed, use.folder, use.program)],
});

/** Harmless with these arguments only, in any number and order, or without any; otherwise it does this. */
export function unless(words: string, fixed: Fixed): Model {
  const harmless = new Set(words.split(/\s+/));
  return { reads: (use) => outside(use, (word) => harmless.has(word), fixed) };
}

/** What is not known may be harmless too: that is a doubt, and not yet the effect. */
export function outside(use: Use, isHarmless: (word: string) => boolean, fixed: Fixed): readonly Found[] {
  if (use.args.some(({ kind, value }) => kind === "literal" && !isHarmless(value)))
    return [fixedEffect(fixed, use.folder, use.program)];
  return use.args.filter(({ kind }) => kind !== "literal").map((arg) => use.doubt("word.dynamic", arg));
}

export const given = ({ options }: Use, ...names: readonly string[]): boolean =>
  options.some(({ name }) => names.includes(name));
