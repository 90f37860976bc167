import type { Arg, Found, Model, Use } from "../model.ts";

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

const ASKS: Model = { reads: sent };
const LISTS: Model = { options: "-h: --host=", operands: "data*" };
/** Keys of settings are words of a few kinds; what else is asked for may be a token. */
const tokens = (use: Use): readonly Found[] =>
  use.operands
    .filter(({ kind, value }) => kind !== "literal" || /token|oauth|password/i.test(value))
    .map((arg) => use.doubt("operand.unknown", arg));
const INSTALLS: Model = { operands: "data*", fixed: ["install"] };
/** Prints a token, or changes what later commands do. */
const KEEPS: Model = { operands: "data*", fixed: ["ask"] };

const GROUPS =
  `api attestation browse cache codespace gist gpg-key issue label org pr project release repo ruleset run search secret
  ssh-key status variable workflow agent-task preview`.split(/\s+/);
const GITLAB_GROUPS =
  `api changelog ci cluster deploy-key duo incident issue iteration job label milestone mr opentofu pipeline
  release repo schedule securefile snippet ssh-key stack token user variable work-items check-update`.split(
    /\s+/,
  );

const asking = (groups: readonly string[]): Readonly<Record<string, Model>> =>
  Object.fromEntries(groups.map((group) => [group, ASKS]));

/** Clients of services that keep repositories. */
export const FORGES: Readonly<Record<string, Model>> = {
  gh: {
    options: "-R: --repo=",
    tells: "--version --help version help",
    commands: {
      ...asking(GROUPS),
      auth: KEEPS,
      alias: { commands: { list: LISTS, set: KEEPS, delete: KEEPS, import: KEEPS } },
      config: {
        commands: { get: { ...LISTS, also: tokens }, list: LISTS, set: KEEPS, "clear-cache": KEEPS },
      },
      extension: {
        commands: {
          list: LISTS,
          search: ASKS,
          browse: ASKS,
          install: INSTALLS,
          upgrade: INSTALLS,
          remove: KEEPS,
        },
      },
      completion: { options: "-s: --shell=" },
      help: { operands: "data*" },
    },
  },
  glab: {
    options: "-R: --repo=",
    tells: "--version --help version help -v -h",
    commands: {
      ...asking(GITLAB_GROUPS),
      auth: KEEPS,
      alias: { commands: { list: LISTS, set: KEEPS, delete: KEEPS } },
      config: { commands: { get: KEEPS, set: KEEPS, edit: KEEPS } },
      completion: { options: "-s: --shell=" },
      help: { operands: "data*" },
    },
  },
};
