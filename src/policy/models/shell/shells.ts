import type { Arg, Found, Model, Use } from "../model.ts";
import { fileEffects, inputEffects } from "./code.ts";
import { onlyBash } from "./small.ts";
import { isSwitch } from "./switches.ts";
import { escapes } from "./wrappers.ts";

const has = ({ options }: Use, name: string): boolean => options.some((option) => option.name === name);

const STDIN: ReadonlySet<string> = new Set(["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"]);

/** A text behind -c, a file, or stdin. A lone `-` in front of them ends the options, as `--` does. */
function run(use: Use): readonly Found[] {
  const [first, second] = use.operands[0]?.value === "-" ? use.operands.slice(1) : use.operands;
  if (has(use, "-c")) return first === undefined ? inputEffects(use) : use.shell(first);
  if (first === undefined || has(use, "-s") || STDIN.has(first.value)) return known(use);
  if (has(use, "-n") && second === undefined)
    return [{ kind: "read", path: use.place(first), span: first.span }];
  return [fileEffects(first, use)];
}

/** What comes in by stdin, and its commands where it stands in the command itself. */
function known(use: Use): readonly Found[] {
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
const switches = (use: Use): readonly Found[] =>
  use.options.flatMap(({ name, value }) =>
    name !== "-o" || value === null || (value.kind === "literal" && isSwitch(value.value))
      ? []
      : [use.doubt("option.unknown", value)],
  );

const SHELL: Model = {
  options: `-c -efhlmnprtuvxBCDsE -o: --login --noprofile --norc --restricted --verbose --noediting
    --init-file=loads --rcfile=loads`,
  operands: "data*",
  strict: true,
  also: (use) => [...switches(use), ...run(use)],
};

/** `sh` may be any of the small ones: what it is told has to mean the same to them as to bash. */
const SMALL: Model = {
  options: "-c -efhlnsuvx -o:",
  operands: "data*",
  strict: true,
  also: (use) => [...switches(use), ...run(use), ...foreign(use)],
};

/** Each with words and quotes of its own: what bash would do is looked at for dangers only. */
const OTHER: Model = {
  ...SMALL,
  also: (use) => [...run(use), ...(has(use, "-c") ? [escapes(use)] : [])],
};

function foreign(use: Use): readonly Found[] {
  const [text] = use.operands;
  return has(use, "-c") && text !== undefined ? onlyBash(text, use) : [];
}

export const SHELLS: Readonly<Record<string, Model>> = {
  bash: SHELL,
  sh: SMALL,
  rbash: SHELL,
  dash: SMALL,
  ash: SMALL,
  zsh: OTHER,
  ksh: OTHER,
  mksh: OTHER,
  yash: OTHER,
  posh: OTHER,
  fish: OTHER,
  csh: OTHER,
  tcsh: OTHER,
  busybox: { options: "--list --list-full", operands: "command*", strict: true },
  toybox: { operands: "command*", strict: true },
};
