import type { Arg, Found, Use, Reader } from "./program-model.ts";

/** `foreach`: its words are one text for a shell. */
function foreachModule(use: Use): readonly Found[] {
  const [first] = use.operands;
  if (first === undefined) return [];
  const known = use.operands.every(({ kind }) => kind === "literal");
  const text: Arg = {
    ...first,
    kind: known ? "literal" : "dynamic",
    value: use.operands.map(({ value }) => value).join(" "),
  };
  return [use.doubt("operand.unknown", first), ...use.shell(text)];
}

/** `show NAME` asks the other side, unless told not to. */
const shownRemote = ({ options, operands }: Use): readonly Found[] =>
  operands.length === 0 || options.some(({ name }) => name === "-n") ? [] : [{ kind: "network", hosts: [] }];

const removedTree = ({ program, options }: Use): readonly Found[] => [
  {
    kind: "repository",
    change: options.some(({ name }) => name === "-f" || name === "--force") ? "lost" : "local",
    what: program,
  },
];
/** What rows ask of this file, by name. */
export const GIT_NESTED_READERS: Readonly<Record<string, Reader>> = {
  "git remote show": shownRemote,
  "git worktree remove": removedTree,
  "git submodule foreach": foreachModule,
};
