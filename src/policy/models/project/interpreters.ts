import type { Arg, Found, Use } from "../model.ts";
import { fileEffects, inputEffects } from "../shell/code.ts";

/** An interpreter with a file, or with none: then it runs what it gets on stdin. */
export const programEffects = (file: Arg | undefined, use: Use): readonly Found[] =>
  file === undefined || file.value === "-" ? inputEffects(use) : [fileEffects(file, use)];
