import type { GitEntry } from "../../core/box-log.ts";
import { type Handoff, TIERS } from "../../core/handoff.ts";
import { fold, protectedName } from "../../core/protected-names.ts";
import { type ChangedPath, handoffOf } from "./handoff.ts";

/** Paths that a commit or the index holds, and that the host would run or obey once git brings them into the folder. */
export function commitHandoff(entries: readonly GitEntry[], workspace: string): readonly Handoff[] {
  const found = handoffOf(entries.flatMap(asChanged), workspace);
  const odd = entries.flatMap(oddIn);
  const told = new Set(odd.map(({ path }) => path));
  return [...odd, ...found.filter(({ path }) => !told.has(path))];
}

/** Of several about one path the gravest, and of those the first. */
export function mergedHandoff(...lists: readonly (readonly Handoff[])[]): readonly Handoff[] {
  const found = new Map<string, Handoff>();
  for (const one of lists.flat()) {
    const known = found.get(one.path);
    if (known === undefined || rank(one) < rank(known)) found.set(one.path, one);
  }
  return [...found.values()].toSorted((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1));
}

const rank = ({ tier }: Handoff): number => TIERS.indexOf(tier);

function asChanged({ kind, path, what, mode, oldMode, target }: GitEntry): readonly ChangedPath[] {
  if (kind === "repository") return [];
  return [{ path, what, kind, mode, oldMode, ...(target === undefined ? {} : { target }) }];
}

/** What is dangerous in a commit, whatever it would be in a folder. */
function oddIn({ kind, path, what, target }: GitEntry): readonly Handoff[] {
  const dangerous = (reason: string): readonly Handoff[] => [{ path, tier: "dangerous", reason }];
  if (what === "deleted") return [];
  if (path.split("/").some((name) => fold(name) === ".git"))
    return dangerous(protectedName(".git", true)?.why ?? "git");
  if (kind === "repository") return dangerous("a repository of its own (a submodule): hooks and settings");
  if (kind === "link" && target === undefined) return dangerous("a link, and where it leads was not read");
  return [];
}
