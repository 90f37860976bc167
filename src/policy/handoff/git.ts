import type { Handoff } from "../../core/handoff.ts";
import { fold } from "../../core/protected-names.ts";

/** What a commit writes: data that git reads, and runs nothing of. */
const DATA = new Set([
  "objects",
  "refs",
  "logs",
  "index",
  "head",
  "orig_head",
  "fetch_head",
  "merge_head",
  "merge_msg",
  "merge_mode",
  "auto_merge",
  "packed-refs",
  "commit_editmsg",
  "description",
  "shallow",
  "gc.log",
]);

/** A path in a git directory: the directory, and what of it. */
export interface InGit {
  readonly directory: string;
  readonly inner: readonly string[];
}

export function inGit(names: readonly string[]): InGit | undefined {
  const at = names.findIndex((name) => fold(name) === ".git");
  return at === -1 ? undefined : { directory: names.slice(0, at + 1).join("/"), inner: names.slice(at + 1) };
}

/** `made`: git directories that were not there before. One that was made is told of as one. */
export function gitHandoff(path: string, { directory, inner }: InGit, made: ReadonlySet<string>): Handoff {
  if (made.has(directory))
    return {
      path: directory,
      tier: "dangerous",
      reason: "a git repository that was made: its hooks and settings",
    };
  const [first = ""] = inner;
  if (inner.length > 0 && DATA.has(fold(first).replace(/\.lock$/, "")))
    return { path: directory, tier: "look", reason: "git: commits, branches or the index were changed" };
  return {
    path,
    tier: "dangerous",
    reason: "git: hooks, filters, fsmonitor and aliases of its configuration",
  };
}

/** A folder that git takes for a repository without being called one. */
export function bareRepositories(added: readonly string[]): readonly Handoff[] {
  const all = new Set(added.map((path) => path.toLowerCase()));
  return added.flatMap((path): readonly Handoff[] => {
    if (!/(^|\/)head$/i.test(path) || inGit(path.split("/")) !== undefined) return [];
    const folder = path.slice(0, -"head".length);
    const has = (name: string): boolean => all.has(`${folder}${name}`.toLowerCase());
    if (!has("config") && !(has("objects") && has("refs"))) return [];
    const reason = "a folder that git takes for a repository: its hooks and settings";
    return [{ path: folder === "" ? "HEAD" : folder.slice(0, -1), tier: "dangerous", reason }];
  });
}
