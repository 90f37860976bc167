import type { Arg, Found, Use } from "../model.ts";
import { networkTo, part, reading, writing } from "./parts.ts";

/** Where one end of a copy lies on another machine: what stands for that machine, empty where that tells no host. Null: on this one. */
export type Elsewhere = (arg: Arg) => string | null;

/** `host:path`, `host::module`, `scheme://host/path`: a colon before the first slash. */
export function hostPart({ value }: Arg): string | null {
  if (/^[a-z][a-z0-9+]*:\/\//i.test(value)) return value;
  const [host] = /^(?:[^/@:]*@)?(?:\[[^\]/]*\]|[^/:[]+)(?=:)/.exec(value) ?? [];
  return host ?? null;
}

/** `bucket://…`, `remote:path`, `pod:path`: a name of the program's own, which tells no host. */
export const named = ({ value }: Arg): string | null =>
  /^(?:[a-z0-9]+:\/\/|[^/:]+:)/i.test(value) ? "" : null;

const reached = (arg: Arg, host: string): readonly Found[] =>
  host === "" ? [] : [networkTo(part(arg, host))];

/** All but the last operand are read, the last one is written; hosts are the network. */
export function copied(use: Use, elsewhere: Elsewhere): readonly Found[] {
  const sources = use.operands.length > 1 ? use.operands.slice(0, -1) : use.operands;
  const target = use.operands.length > 1 ? use.operands.at(-1) : undefined;
  const ends = sources.flatMap((arg): readonly Found[] => {
    const host = elsewhere(arg);
    return host === null ? [reading(arg, use)] : reached(arg, host);
  });
  if (target === undefined) return ends;
  const host = elsewhere(target);
  if (host !== null) return [...ends, ...reached(target, host)];
  return [...ends, writing(target, use), ...into(target, sources, use)];
}

/** In a folder the copies get the names that they had. */
function into(target: Arg, sources: readonly Arg[], use: Use): readonly Found[] {
  if (sources.length < 2 && !/(?:^|\/)\.{0,2}$/.test(target.value)) return [];
  return sources.flatMap((source) => {
    const name = source.value.slice(
      Math.max(source.value.lastIndexOf("/"), source.value.lastIndexOf(":")) + 1,
    );
    return /^\.{0,2}$/.test(name) ? [] : [writing(part(target, `${target.value}/${name}`), use)];
  });
}

/** The target loses what the source does not have. */
export function emptied(use: Use, elsewhere: Elsewhere): readonly Found[] {
  const target = use.operands.at(-1);
  if (target === undefined || use.operands.length < 2 || elsewhere(target) !== null) return [];
  return [{ kind: "delete", path: use.place(target), recursive: true, forced: true, span: target.span }];
}
