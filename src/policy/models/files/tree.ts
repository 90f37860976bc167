import type { Found, Use } from "../model.ts";

const BUNDLE = /^-[^-]/;
const INNER_VALUE = /^-[^-]*?[LPIoHT](?!\d*$)./;

/** In a bundle of `tree` a letter takes the next word, never the rest of its own: `-Lo 2 out` writes `out`. */
export const bundledValues = (use: Use): readonly Found[] =>
  use.args
    .filter(({ value }) => BUNDLE.test(value) && INNER_VALUE.test(value))
    .map((arg) => use.doubt("option.unknown", arg));
