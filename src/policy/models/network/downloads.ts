import type { Arg, Found, Use } from "../model.ts";
import { part, writing } from "./parts.ts";

/** The last name in the path of an address; none where the other side chooses it. */
const NAME = /^[^/?#]+\/(?:[^?#]*\/)?([^/?#]+)/;
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/** Files that get the names which their addresses end with, in the folder or where the program works. */
export function downloads(use: Use, addresses: readonly Arg[], folder?: Arg): readonly Found[] {
  const here: Arg = folder ?? { kind: "literal", value: ".", span: use.span };
  const names = addresses.flatMap((address) => {
    const name = address.kind === "dynamic" ? undefined : NAME.exec(address.value.replace(SCHEME, ""))?.[1];
    return name === undefined
      ? []
      : [writing(part({ ...here, span: address.span }, `${here.value}/${name}`), use)];
  });
  return names.length === addresses.length && names.length > 0 ? names : [writing(here, use), ...names];
}
