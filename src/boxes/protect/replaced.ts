import { lstat } from "node:fs/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { outermost } from "./protected-mounts.ts";

/**
 * The file or folder at a path of the host. A mount covers this file and not its name: once the name is given to
 * something else, nothing protects the new file. An inode number can be reused, but not with the same birth time.
 */
export interface HostFile {
  readonly path: string;
  readonly dev: string;
  readonly ino: string;
  /** Nanoseconds since 1970, 0 if the file system does not know. */
  readonly born: string;
}

export async function hostFile(path: string): Promise<HostFile> {
  const { dev, ino, birthtimeNs } = await lstat(path, { bigint: true });
  return { path, dev: String(dev), ino: String(ino), born: String(birthtimeNs) };
}

/** The outermost of the files that are gone or were replaced. */
export async function replacedAmong(files: readonly HostFile[]): Promise<readonly string[]> {
  const now = await Promise.all(files.map(({ path }) => hostFile(path).catch(() => undefined)));
  const differs = ({ dev, ino, born }: HostFile, at: number): boolean =>
    now[at]?.dev !== dev || now[at]?.ino !== ino || now[at]?.born !== born;
  return outermost(files.filter(differs).map(({ path }) => path));
}

export const MAY_HOLD = "may contain what commands in the box wrote: check it before you use it";

/** For a person, at the end of a box. If `workspace` itself was moved, the box stayed with the folder it was given. */
export const replacedNote = (path: string, workspace: string): string =>
  path === workspace
    ? `${path} was moved or replaced while the box was open: commands kept running in the folder that was there before`
    : `${path} was replaced from outside while the box was open: it lost its protection, and ${MAY_HOLD}`;

/** Another folder with the workspace's name is not ours: nothing is taken out of it. */
export const isMoved = async (workspace: string, files: readonly HostFile[]): Promise<boolean> =>
  (await replacedAmong(files.filter(({ path }) => path === workspace))).length > 0;

/** It is not known where the folder of the box went. */
export const workspaceMoved = (workspace: string): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `${workspace} was moved or replaced while the box was open, so the folder that it wrote to was not searched for files that your programs obey`,
    "find the folder that was moved, and do not run git or an editor there until you have checked it",
  );
