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

/** Folders that are looked into; what is beyond them is told of without a look. */
const MOST = 10_000;

/** What a git directory has beside its HEAD. */
const BESIDE = /(?<=^|\/)(?:config|objects|refs)(?=\/|$)/g;

/** Folders that git takes for repositories without being called so: first `head` gets all that was added, then `beside`. */
export class BareRepositories {
  /** By their paths in small letters: the path as it is, and what lies there. */
  readonly #folders = new Map<string, { readonly folder: string; readonly has: Set<string> }>();
  readonly #others: string[] = [];

  head(added: string): void {
    if (!/(?:^|\/)head$/i.test(added) || inGit(added.split("/")) !== undefined) return;
    const folder = own(added.slice(0, -"head".length));
    if (this.#folders.size < MOST) this.#folders.set(folder.toLowerCase(), { folder, has: new Set() });
    else if (this.#others.length < MOST) this.#others.push(folder);
  }

  /** Folders are not always told of, but what lies in them is. */
  beside(added: string): void {
    if (this.#folders.size === 0) return;
    const path = added.toLowerCase();
    for (const { 0: name, index } of path.matchAll(BESIDE))
      this.#folders.get(path.slice(0, index))?.has.add(name);
  }

  found(): readonly Handoff[] {
    const sure = [...this.#folders.values()].filter(
      ({ has }) => has.has("config") || (has.has("objects") && has.has("refs")),
    );
    const reason = "a folder that git takes for a repository: its hooks and settings";
    return [...sure.map(({ folder }) => folder), ...this.#others].map((folder) => ({
      path: folder === "" ? "HEAD" : folder.slice(0, -1),
      tier: "dangerous",
      reason,
    }));
  }
}

/** A text of its own: a part of a longer one would keep the whole of that in memory. */
export const own = (text: string): string => JSON.parse(JSON.stringify(text)) as string;
