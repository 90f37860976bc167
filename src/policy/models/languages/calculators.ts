import type { Arg, Found, Model, Use } from "../model.ts";

const has = (use: Use, ...names: readonly string[]): boolean =>
  use.options.some(({ name }) => names.includes(name));

/** `!` runs a command unless it compares; `?` runs a line of stdin, and a number can become a character. */
const RUNS_IN_DC = /!(?![<>=])|[?a]/;

/** Programs of dc: given, from files, or from stdin. */
function dcEffects(use: Use): readonly Found[] {
  const given = use.options.filter(({ name }) => name === "-e" || name === "--expression");
  const files = has(use, "-f", "--file") || use.operands.length > 0;
  const { input } = use;
  const text: Arg | null =
    typeof input === "string" ? null : { kind: "literal", value: input.text, span: input.span };
  const programs = given.length > 0 || files ? given.flatMap(({ value }) => value ?? []) : [text];
  const doubts = programs.flatMap((program) => {
    if (program?.kind === "literal")
      return RUNS_IN_DC.test(program.value) ? [use.doubt("language.unknown", program)] : [];
    return program === null ? [fromInput(use)] : [use.doubt("word.dynamic", program)];
  });
  const inFiles = files ? [use.doubt("language.unknown", itself(use))] : [];
  return [...doubts, ...inFiles];
}

const itself = ({ program, span }: Use): Arg => ({ kind: "literal", value: program, span });

const fromInput = ({ input }: Use): Found => ({
  kind: "code",
  from: input === "network" ? "fetched" : "input",
  path: null,
});

/** A template whose variables are those of the environment. */
const printsEnvironment = (): readonly Found[] => [{ kind: "read", path: "/proc/self/environ" }];

export const CALCULATORS: Readonly<Record<string, Model>> = {
  bc: {
    options: `-chilqswv -e: -f:read --compile --interactive --mathlib --quiet --standard --warn --expression= --file=read
      --digit-clamp --no-digit-clamp --global-stacks --no-line-length --no-prompt --no-read-prompt --scale= --ibase= --obase=`,
    operands: "read*",
    tells: "--version --help -v -V -h",
  },
  dc: {
    options: "-e: -f:read --expression= --file=read -x --extended-register -i --interactive -P --no-prompt",
    operands: "read*",
    tells: "--version --help -V -h -v",
    also: dcEffects,
  },
  datamash: {
    options: `-fhiCsWzH -t: -g: -F: -R: -c: --full --header-in --header-out --headers --ignore-case --sort --skip-comments
      --field-separator= --group= --filler= --narm --round= --output-delimiter= --whitespace --zero-terminated --no-strict --format=
      --collapse-delimiter=`,
    operands: "data*",
    tells: "--version --help -V -h",
  },
  envsubst: {
    options: "-v --variables",
    operands: "data*",
    tells: "--version --help -V -h",
    also: printsEnvironment,
  },
  m4: {
    options: `-EPQeisg -D: -U: -I:loads -B: -F:write -R:loads -L: -H: -S: -T: -d? -o:write -t: -l: -W: --prefix-builtins
      --quiet --silent --define= --undefine= --include=loads --fatal-warnings --synclines --interactive`,
    operands: "project*",
    also: (use) => (use.operands.length === 0 ? [fromInput(use)] : []),
  },
};
