import type { Arg, Found, Use } from "../model.ts";
import { given } from "../plain.ts";

const MODE_LETTERS = "rwxXstugoa";

/** The first operand is a mode, unless an option is one or names a file to take it from. */
export function chmodEffects(use: Use): readonly Found[] {
  const modeGiven = use.options.some(
    ({ name }) => name === "--reference" || MODE_LETTERS.includes(name.slice(1)),
  );
  return changed(use, modeGiven ? use.operands : use.operands.slice(1), given(use, "-R", "--recursive"));
}

const FLAGS = /^[+=]/;

export const chattrEffects = (use: Use): readonly Found[] =>
  changed(
    use,
    use.operands.filter(({ value }) => !FLAGS.test(value)),
    given(use, "-R"),
  );

const changed = (use: Use, files: readonly Arg[], recursive: boolean): readonly Found[] =>
  files.map((file) => ({ kind: "permissions", path: use.place(file), recursive, span: file.span }));
