import type { Arg, Found, Model, Use } from "./model.ts";

/** What a shell gets on stdin, when nothing else tells it what to run. */
export function inputEffects(use: Use): readonly Found[] {
  const { input } = use;
  if (input === "network") return [{ kind: "code", from: "fetched", path: null }];
  const code: Found = { kind: "code", from: "input", path: null };
  if (typeof input === "string") return [code];
  const text: Arg = { kind: "literal", value: input.text, span: input.span };
  return [code, ...use.shell(text)];
}

const SHELL: Model = {
  options: `-c -aefhklmnprtuvxBCDHiPsE -o: -O: --login --noprofile --norc --posix --restricted --verbose --debugger
    --init-file=loads --rcfile=loads --noediting`,
  tells: "--version --help",
  strict: true,
  also: (use) => {
    const { options, operands } = use;
    const [first] = operands;
    if (options.some(({ name }) => name === "-c")) return first === undefined ? [] : use.shell(first);
    if (first === undefined || options.some(({ name }) => name === "-s")) return inputEffects(use);
    if (first.feed === "network") return [{ kind: "code", from: "fetched", path: null }];
    return [{ kind: "code", from: "project", path: use.place(first), span: first.span }];
  },
  operands: "data*",
};

/** Shells, and what of the shell runs text. */
export const SHELLS: Readonly<Record<string, Model>> = {
  bash: SHELL,
  cd: { options: "-LPe@", operands: "data" },
  sh: SHELL,
};
