import type { Arg, Found, Use } from "../model.ts";
import { networkTo, part, reading, writing } from "./parts.ts";

/** Where one end of a copy lies on another machine: what stands for that machine. Null: on this one. */
export type Elsewhere = (arg: Arg) => string | null;

/** `host:path`, `host::module`, `scheme://host/path`: a colon before the first slash. */
export function hostPart({ value }: Arg): string | null {
  if (/^[a-z][a-z0-9+]*:\/\//i.test(value)) return value;
  const [host] = /^(?:[^/@:]*@)?(?:\[[^\]/]*\]|[^/:[]*)(?=:)/.exec(value) ?? [];
  return host ?? null;
}

/** `bucket://…`, `remote:path`, `pod:path`: a name of the program's own, which tells no host. */
export const named = ({ value }: Arg): string | null =>
  /^(?:[a-z0-9]+:\/\/|[^/:]+:)/i.test(value) ? "" : null;

/** All but the last operand are read, the last one is written; what lies elsewhere is the network. */
export function copied(use: Use, elsewhere: Elsewhere): readonly Found[] {
  const last = use.operands.length - 1;
  return use.operands.flatMap((arg, index): readonly Found[] => {
    const host = elsewhere(arg);
    if (host !== null) return [networkTo(part(arg, host))];
    return [index === last && last > 0 ? writing(arg, use) : reading(arg, use)];
  });
}

/** The target loses what the source does not have. */
export function emptied(use: Use, elsewhere: Elsewhere): readonly Found[] {
  const target = use.operands.at(-1);
  if (target === undefined || use.operands.length < 2 || elsewhere(target) !== null) return [];
  return [{ kind: "delete", path: use.place(target), recursive: true, forced: true, span: target.span }];
}
