import type { Stats } from "node:fs";
import { lstat } from "node:fs/promises";
import path from "node:path";
import { HarnessError, reasonOf } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import { followPointer, isGitDir } from "./git-pointer.ts";
import { outermost } from "./protected-mounts.ts";
import { type Protection, reachedIn } from "./scan.ts";
import { look } from "./solid.ts";

/** The repository around a workspace, as git finds it when it searches upwards. */
export type Enclosing =
  /** The workspace is the top of a repository itself, or lies in none. */
  | { readonly kind: "none" }
  /** `mounts` is all that git needs: the top, and a git directory elsewhere if the top's .git leads to one. */
  | { readonly kind: "found"; readonly top: string; readonly mounts: readonly string[] }
  /** No box may see the repository. */
  | { readonly kind: "refused"; readonly top: string; readonly why: string };

const NONE: Enclosing = { kind: "none" };

interface Root {
  /** With all links resolved. */
  readonly path: string;
  readonly uid: number;
}

/** `refusal` says why no box may see a folder; undefined if a box may. */
export async function enclosingOf(
  { path: root, uid }: Root,
  refusal: (top: string) => string | undefined,
): Promise<Enclosing> {
  if ((await lookQuietly(path.join(root, ".git"))) !== undefined) return NONE;
  const { dev } = await lstat(root);
  for (let top = root; top !== path.dirname(top);) {
    top = path.dirname(top);
    const folder = await lookQuietly(top);
    // Git does not cross file systems either.
    if (folder?.dev !== dev) return NONE;
    const dotGit = await repositoryIn(top, root);
    if (dotGit === undefined) continue;
    const why = refusal(top) ?? unfitReason([folder, dotGit], uid);
    if (why !== undefined) return { kind: "refused", top, why };
    return followedFrom(top, dotGit.isFile(), { path: root, uid });
  }
  return NONE;
}

/** The .git entry that git would use there, followed or not; undefined for a workspace inside that git directory. */
async function repositoryIn(top: string, root: string): Promise<Stats | undefined> {
  const file = path.join(top, ".git");
  const dotGit = await lookQuietly(file);
  if (dotGit === undefined || isInside(file, root)) return undefined;
  return dotGit.isDirectory() && !(await isGitDir(file)) ? undefined : dotGit;
}

function unfitReason(stats: readonly [Stats, Stats], uid: number): string | undefined {
  if (stats.some((each) => each.uid !== uid)) return "it belongs to somebody else";
  const [, dotGit] = stats;
  return dotGit.isDirectory() || dotGit.isFile() ? undefined : "its .git is neither a folder nor a file";
}

const lookQuietly = (file: string): ReturnType<typeof look> => look(file).catch(() => undefined);

async function followedFrom(top: string, pointed: boolean, { path: root, uid }: Root): Promise<Enclosing> {
  if (!pointed) return { kind: "found", top, mounts: [top] };
  try {
    const lead = await followPointer(path.join(top, ".git"), top, uid);
    if (lead.kind === "unsafe") return { kind: "refused", top, why: lead.why };
    if (isInside(lead.gitDir, root)) return NONE;
    return { kind: "found", top, mounts: lead.kind === "inside" ? [top] : [top, lead.mount] };
  } catch (thrown) {
    return { kind: "refused", top, why: reasonOf(thrown) };
  }
}

/**
 * Extends the protection of a workspace by the repository around it: read-only in every mode, sockets and FIFOs
 * covered. If that is impossible, git does not work, but the box still starts.
 */
export async function withEnclosing(
  enclosing: Enclosing,
  protection: Protection,
  { root, user, signal }: EnclosingContext,
): Promise<Protection> {
  if (enclosing.kind === "none") return protection;
  const { top } = enclosing;
  const without = (why: string): Protection => ({
    ...protection,
    warnings: [
      ...protection.warnings,
      `git does not work in the box: the repository ${top} is not mounted: ${why}`,
    ],
  });
  if (enclosing.kind === "refused") return without(enclosing.why);
  try {
    const above = enclosing.mounts;
    const { covered } = await reachedIn(top, [], { away: outermost(above), top: user, signal });
    const fresh = covered.filter((file) => !isInside(root, file) && !protection.covered.includes(file));
    return {
      ...protection,
      above,
      outside: protection.outside.filter((folder) => !above.some((one) => isInside(one, folder))),
      covered: [...protection.covered, ...fresh],
    };
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    return without(thrown.message);
  }
}

interface EnclosingContext {
  /** The workspace. */
  readonly root: string;
  readonly user: { readonly uid: number; readonly gid: number };
  readonly signal: AbortSignal | undefined;
}
