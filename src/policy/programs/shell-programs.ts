import { fileEffects, inputEffects, isStdin } from "./argument-roles.ts";
import type { Arg, Found, Use, Reader } from "./program-model.ts";
import { isSwitch, onlyBash } from "./shell-builtins.ts";
import { escapes } from "./wrapper-programs.ts";

const has = ({ options }: Use, name: string): boolean => options.some((option) => option.name === name);

/** A text after -c, a file, or stdin. A single `-` before them ends the options, as `--` does. */
function shellEffects(use: Use): readonly Found[] {
  const [first, second] = use.operands[0]?.value === "-" ? use.operands.slice(1) : use.operands;
  if (has(use, "-c")) return first === undefined ? inputEffects(use) : use.shell(first);
  if (first === undefined || has(use, "-s") || isStdin(first)) return stdinCommands(use);
  if (has(use, "-n") && second === undefined)
    return [{ kind: "read", path: use.place(first), span: first.span }];
  return [fileEffects(first, use)];
}

/** Commands from stdin; judged where the text of stdin is known. */
function stdinCommands(use: Use): readonly Found[] {
  const { input } = use;
  if (typeof input === "string") return inputEffects(use);
  const text: Arg = { kind: "literal", value: input.text, span: input.span };
  const code: Found = { kind: "code", from: "input", path: null };
  const follows =
    input.rough !== true &&
    (use.program === "bash" || (use.program === "sh" && onlyBash(text, use).length === 0));
  return [follows ? { ...code, followed: true } : code, ...use.shell(text)];
}

/** `-o name`: one of the usual switches. */
const switchDoubts = (use: Use): readonly Found[] =>
  use.options.flatMap(({ name, value }) =>
    name !== "-o" || value === null || (value.kind === "literal" && isSwitch(value.value))
      ? []
      : [use.doubt("option.unknown", value)],
  );

function smallShellDoubts(use: Use): readonly Found[] {
  const [text] = use.operands;
  return has(use, "-c") && text !== undefined ? onlyBash(text, use) : [];
}

/** The readers of this file, by the names that rows use. */
export const SHELL_READERS: Readonly<Record<string, Reader>> = {
  "shell switches": switchDoubts,
  "shell text, file or stdin": shellEffects,
  "shell of its own kind": smallShellDoubts,
  "another shell": (use) => [...shellEffects(use), ...(has(use, "-c") ? [escapes(use)] : [])],
};
