import type { Model } from "../model.ts";
import { JAVASCRIPT_LINTS } from "./javascript-lints.ts";
import { JAVASCRIPT_TESTS } from "./javascript-tests.ts";
import { TYPESCRIPT } from "./typescript.ts";

/** Tools of a JavaScript project that check it; package managers start them by the same names. */
export const CHECKERS: Readonly<Record<string, Model>> = {
  ...JAVASCRIPT_TESTS,
  ...JAVASCRIPT_LINTS,
  ...TYPESCRIPT,
};
