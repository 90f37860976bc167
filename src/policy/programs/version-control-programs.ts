import type { Arg, Found, Reader, Use } from "./program-model.ts";

/** Requests to a forge go over the network; a file among the arguments may be sent. */
function forgeRequest(use: Use): readonly Found[] {
  const files = use.operands.flatMap((arg: Arg) => {
    const value = arg.value.slice(arg.value.lastIndexOf("=") + 1).replace(/^@/, "");
    return /^(?:\.|\/(?!\/))/.test(value)
      ? [{ kind: "read", path: use.place({ ...arg, value }), span: arg.span } as const]
      : [];
  });
  return [{ kind: "network", hosts: [] }, ...files];
}

/** Settings whose key names a token or a password may show it. */
const tokens = (use: Use): readonly Found[] =>
  use.operands
    .filter(({ kind, value }) => kind !== "literal" || /token|oauth|password/i.test(value))
    .map((arg) => use.doubt("operand.unknown", arg));
/** The program installs its own scripts as git hooks. */
const installedHooks = ({ folder }: Use): readonly Found[] => [
  { kind: "write", path: folder === null ? null : `${folder}/.git/hooks` },
];
const lfsAttributes = ({ operands, folder }: Use): readonly Found[] =>
  operands.length === 0 ? [] : [{ kind: "write", path: folder === null ? null : `${folder}/.gitattributes` }];
/** The readers of this file, by the names that rows use. */
export const FORGE_READERS: Readonly<Record<string, Reader>> = {
  "lfs attributes": lfsAttributes,
  "writes hooks": installedHooks,
  "gh api": forgeRequest,
  "gh tokens": tokens,
};

/** `^/trunk`: from the root of the repository on its server. */
const svnAddresses = ({ operands }: Use): readonly Found[] =>
  operands
    .filter(({ value }) => value.startsWith("^/"))
    .map(({ span }) => ({ kind: "network", hosts: [], span }));
/** Another repository by its address, which may stand in any argument and in values of options. */
const otherRepositories = (use: Use): readonly Found[] => [
  ...[...use.operands, ...[...use.globals, ...use.options].flatMap(({ value }) => value ?? [])]
    .filter(({ value }) => /^[a-z][a-z0-9+.-]*:\/\//i.test(value))
    .map(({ span }): Found => ({ kind: "network", hosts: [], span })),
  ...use.options.flatMap(({ value, span }) =>
    value !== null && value.span !== span && /^-\D/.test(value.value)
      ? [use.doubt("option.unknown", value)]
      : [],
  ),
];
/** The readers of this file, by the names that rows use. */
export const VCS_READERS: Readonly<Record<string, Reader>> = {
  "hg settings": otherRepositories,
  "svn address": svnAddresses,
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

/** `show NAME` contacts the remote, unless an option forbids it. */
const shownRemote = ({ options, operands }: Use): readonly Found[] =>
  operands.length === 0 || options.some(({ name }) => name === "-n") ? [] : [{ kind: "network", hosts: [] }];

const removedTree = ({ program, options }: Use): readonly Found[] => [
  {
    kind: "repository",
    change: options.some(({ name }) => name === "-f" || name === "--force") ? "lost" : "local",
    what: program,
  },
];
/** The readers of this file, by the names that rows use. */
export const GIT_NESTED_READERS: Readonly<Record<string, Reader>> = {
  "git remote show": shownRemote,
  "git worktree remove": removedTree,
  "git submodule foreach": foreachModule,
};
