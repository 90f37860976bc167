import type { Arg, Found, Reader, Use } from "./program-model.ts";

/** All that is asked of a forge goes over the network; what looks like a file may be sent there. */
function sent(use: Use): readonly Found[] {
  const files = use.operands.flatMap((arg: Arg) => {
    const value = arg.value.slice(arg.value.lastIndexOf("=") + 1).replace(/^@/, "");
    return /^(?:\.|\/(?!\/))/.test(value)
      ? [{ kind: "read", path: use.place({ ...arg, value }), span: arg.span } as const]
      : [];
  });
  return [{ kind: "network", hosts: [] }, ...files];
}

/** Keys of settings are words of a few kinds; what else is asked for may be a token. */
const tokens = (use: Use): readonly Found[] =>
  use.operands
    .filter(({ kind, value }) => kind !== "literal" || /token|oauth|password/i.test(value))
    .map((arg) => use.doubt("operand.unknown", arg));
/** It puts scripts of its own where git runs them. */
const hooked = ({ folder }: Use): readonly Found[] => [
  { kind: "write", path: folder === null ? null : `${folder}/.git/hooks` },
];
const attributed = ({ operands, folder }: Use): readonly Found[] =>
  operands.length === 0 ? [] : [{ kind: "write", path: folder === null ? null : `${folder}/.gitattributes` }];
/** What rows ask of this file, by name. */
export const FORGE_READERS: Readonly<Record<string, Reader>> = {
  "lfs attributes": attributed,
  "writes hooks": hooked,
  "gh api": sent,
  "gh tokens": tokens,
};

/** `^/trunk`: from the root of the repository on its server. */
const upstream = ({ operands }: Use): readonly Found[] =>
  operands
    .filter(({ value }) => value.startsWith("^/"))
    .map(({ span }) => ({ kind: "network", hosts: [], span }));
/** Another repository by its address; and of some options even a value is looked for wherever it stands. */
const strayed = (use: Use): readonly Found[] => [
  ...[...use.operands, ...[...use.globals, ...use.options].flatMap(({ value }) => value ?? [])]
    .filter(({ value }) => /^[a-z][a-z0-9+.-]*:\/\//i.test(value))
    .map(({ span }): Found => ({ kind: "network", hosts: [], span })),
  ...use.options.flatMap(({ value, span }) =>
    value !== null && value.span !== span && /^-\D/.test(value.value)
      ? [use.doubt("option.unknown", value)]
      : [],
  ),
];
/** What rows ask of this file, by name. */
export const VCS_READERS: Readonly<Record<string, Reader>> = {
  "hg settings": strayed,
  "svn address": upstream,
};

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
