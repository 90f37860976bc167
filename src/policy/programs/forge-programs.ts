import type { Arg, Found, Use, Reader } from "./program-model.ts";

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
