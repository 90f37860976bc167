import { type Handoff, TIERS } from "../../core/handoff.ts";
import { isDependencies, protectedName } from "../../core/protected-names.ts";
import { bareRepositories, gitHandoff, inGit } from "./git.ts";
import { knownName } from "./names.ts";
import { packageReason } from "./package-file.ts";

/** One changed path, with what is known of it. */
export interface ChangedPath {
  /** Below the workspace. */
  readonly path: string;
  readonly what: "added" | "modified" | "deleted";
  readonly kind: "file" | "folder" | "link" | "odd";
  /** The lower twelve bits as they are now, and as they were; undefined where that is not known. */
  readonly mode?: number | undefined;
  readonly oldMode?: number | undefined;
  /** Of a link, as it is written. */
  readonly target?: string | undefined;
  /** Of a `package.json`; undefined where it is not known. */
  readonly text?: { readonly before: string | undefined; readonly after: string | undefined } | undefined;
}

/** Changed paths that the host would later run or obey: the dangerous ones first, then by path. */
export function handoffOf(changes: readonly ChangedPath[], workspace: string): readonly Handoff[] {
  const added = changes.filter(({ what }) => what === "added").map(({ path }) => path);
  const made = new Set(added.flatMap((path) => GIT.exec(path)?.[1] ?? []));
  const found = new Map<string, Handoff>();
  const note = (one: Handoff): void => {
    const known = found.get(one.path);
    if (known === undefined || rank(one) < rank(known)) found.set(one.path, one);
  };
  for (const change of changes) for (const one of ofPath(change, made, workspace)) note(one);
  for (const one of bareRepositories(added)) note(one);
  return [...found.values()].toSorted(
    (a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0),
  );
}

/** A git directory, or the file without which there is none: folders are not always told of. */
const GIT = /^((?:.*\/)?\.git)(?:\/HEAD)?$/is;

const rank = ({ tier }: Handoff): number => TIERS.indexOf(tier);

function ofPath(change: ChangedPath, made: ReadonlySet<string>, workspace: string): readonly Handoff[] {
  const { path, what, kind } = change;
  const names = path.split("/");
  const dangerous = (reason: string): Handoff => ({ path, tier: "dangerous", reason });
  const git = inGit(names);
  if (git !== undefined) return what === "deleted" ? [] : [gitHandoff(path, git, made)];
  const installed = names.findIndex(isDependencies);
  if (what === "deleted") return gone(path, names);
  const odd = oddReason(change, workspace);
  if (odd !== undefined) return [dangerous(odd)];
  if (installed !== -1) {
    const folder = names.slice(0, installed + 1).join("/");
    return [
      { path: folder, tier: "look", reason: "installed packages: their code runs at the next build or test" },
    ];
  }
  const guarded = names.map((name, at) => protectedName(name, at === 0)).find((entry) => entry !== undefined);
  if (guarded !== undefined) return kind === "folder" ? [] : [dangerous(guarded.why)];
  return kind === "folder" ? [] : byName(change, names);
}

/** What is gone is not run; but what held something back may be. */
function gone(path: string, names: readonly string[]): readonly Handoff[] {
  const [first = ""] = names;
  const entry = protectedName(first, true);
  if (entry === undefined || !/^\.harness/i.test(first)) return [];
  return [{ path, tier: "dangerous", reason: `${entry.why}: it was removed` }];
}

const SPECIAL = 0o6000;
const RUNS = 0o111;

function oddReason({ kind, mode = 0, path, target }: ChangedPath, workspace: string): string | undefined {
  if (kind === "odd") return "neither file, folder nor link: who opens it waits, or speaks with what made it";
  if (kind === "file" && (mode & SPECIAL) !== 0) return "it runs with the rights of its owner or group";
  if (kind !== "link" || target === undefined) return undefined;
  const leads = ledTo(path, target, workspace);
  if (leads === undefined) return "a link that leads out of the workspace";
  const guarded = leads.some((name, at) => protectedName(name, at === 0) !== undefined);
  return guarded ? "a link to what the host obeys" : undefined;
}

/** The names below the workspace that a link leads to, links on the way left aside; undefined when it leads out. */
function ledTo(path: string, target: string, workspace: string): readonly string[] | undefined {
  if (target.startsWith("/") && target !== workspace && !target.startsWith(`${workspace}/`)) return undefined;
  const way = target.startsWith("/") ? [] : path.split("/").slice(0, -1);
  const words = target.startsWith("/") ? target.slice(workspace.length) : target;
  for (const name of words.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") way.push(name);
    else if (way.pop() === undefined) return undefined;
  }
  return way;
}

function byName(change: ChangedPath, names: readonly string[]): readonly Handoff[] {
  const { path, what, kind, mode, oldMode, text } = change;
  const known = names
    .map(knownName)
    .find((each, at) => each !== undefined && (each.folder || at === names.length - 1));
  if (known !== undefined) return [{ path, tier: known.tier, reason: known.reason }];
  if (names.at(-1)?.toLowerCase() === "package.json") {
    const reason =
      text === undefined
        ? "npm runs its scripts, and what it depends on"
        : packageReason(text.before, text.after);
    if (reason !== undefined) return [{ path, tier: "look", reason }];
  }
  const runs = kind === "file" && mode !== undefined && (mode & RUNS) !== 0;
  const ran = what === "modified" && (oldMode === undefined || (oldMode & RUNS) !== 0);
  return runs && !ran ? [{ path, tier: "look", reason: "it can be run as a program now" }] : [];
}
