import { randomBytes } from "node:crypto";
import { chmod, mkdir, readdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import type { Owner } from "../box-labels.ts";
import { makeFolder } from "../../platform/folders.ts";

/**
 * `<state>/boxes/<id>/` holds what a box needs on the host: sockets, generated files, the upper layer of an overlay.
 * Its marker files are `owner` (who made it), `keep` (never remove) and `finished` (the overlay's changes were applied
 * or given up). A name that begins with a dot is a folder that is being made or removed.
 */
export interface BoxFolder {
  readonly path: string;
  readonly id: string;
  readonly owner: Owner | undefined;
  /** When the folder was last changed; used for folders without an owner. */
  readonly changed: number;
  /** Why the folder must stay even if its owner is dead. */
  readonly kept: string | undefined;
}

const record: z.ZodType<Owner> = z.object({ pid: z.number(), start: z.string(), boot: z.string() });

const boxesIn = (stateDir: string): string => path.join(stateDir, "boxes");

/** Makes the folder together with its owner's record: a kill never leaves one without the other. */
export async function makeBoxFolder(stateDir: string, id: string, owner: Owner): Promise<string> {
  if (!/^\w[\w.-]{0,63}$/.test(id)) throw new TypeError(`${JSON.stringify(id)} is not a box id`);
  const [aside, folder] = [
    path.join(boxesIn(stateDir), `.${id}.${nonce()}`),
    path.join(boxesIn(stateDir), id),
  ];
  try {
    makeFolder(boxesIn(stateDir));
    await mkdir(aside, { mode: 0o700 });
    await writeFile(path.join(aside, "owner"), JSON.stringify(owner), { mode: 0o600 });
    await rename(aside, folder);
    return folder;
  } catch (thrown) {
    await rm(aside, { recursive: true, force: true }).catch(() => undefined);
    const message = `cannot make a folder for the box in ${boxesIn(stateDir)}: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.sandbox, message, `df -h ${stateDir}; ls -ld ${stateDir}`, thrown);
  }
}

export async function boxFolders(stateDir: string): Promise<readonly BoxFolder[]> {
  const root = await realpath(boxesIn(stateDir)).catch(() => undefined);
  if (root === undefined) return [];
  const entries = (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  if (entries.length === 0) return [];
  const mounts = await mountPoints();
  return Promise.all(entries.map(({ name }) => describe(path.join(root, name), mounts)));
}

async function describe(folder: string, mounts: readonly string[]): Promise<BoxFolder> {
  const id = path.basename(folder).replace(/^\.(.*)\.[0-9a-f]{16}$/, "$1");
  const changed = (await stat(folder).catch(() => undefined))?.ctimeMs ?? Date.now();
  return {
    path: folder,
    id,
    changed,
    owner: await ownerOf(folder),
    kept: await reasonToKeep(folder, mounts),
  };
}

/** The folder's contents need not outlive its owner. */
export const markFinished = (folder: string): Promise<void> => writeFile(path.join(folder, "finished"), "");

/** Moves the folder aside first, so that a kill halfway leaves nothing that looks like unapplied changes. */
export async function removeBoxFolder(folder: Pick<BoxFolder, "path" | "id">): Promise<void> {
  const gone = path.join(path.dirname(folder.path), `.${folder.id}.${nonce()}`);
  await markFinished(folder.path).catch(() => undefined);
  await rename(folder.path, gone).catch((thrown: unknown) => {
    if (errorCode(thrown) !== "ENOENT") throw thrown;
  });
  await removeTree(gone);
}

export async function removeTree(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true }).catch(async () => {
    await openUp(folder);
    await rm(folder, { recursive: true, force: true });
  });
}

/** A command may have locked folders of an upper layer against their own owner. No command runs there any more. */
async function openUp(folder: string | Buffer): Promise<void> {
  const encoding = "buffer" as const;
  await chmod(folder, 0o700).catch(() => undefined);
  const entries = await readdir(folder, { encoding, withFileTypes: true }).catch(() => []);
  for (const entry of entries)
    if (entry.isDirectory()) await openUp(Buffer.concat([Buffer.from(folder), Buffer.from("/"), entry.name]));
}

async function ownerOf(folder: string): Promise<Owner | undefined> {
  const text = await readFile(path.join(folder, "owner"), "utf8").catch(() => "");
  try {
    return record.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

async function reasonToKeep(folder: string, mounts: readonly string[]): Promise<string | undefined> {
  const mount = mounts.find((point) => isInside(folder, point));
  if (mount !== undefined) return `something is mounted on ${mount}`;
  const entries = await readdir(folder).catch(() => ["keep"]);
  if (entries.includes("keep")) return "it is marked as kept";
  if (entries.includes("finished") || path.basename(folder).startsWith(".")) return undefined;
  const upper = entries.includes("upper") ? await readdir(path.join(folder, "upper")).catch(() => ["?"]) : [];
  return upper.length > 0 ? "it holds changes that were not applied" : undefined;
}

/** Removing a folder across a mount would empty the mounted files. The kernel writes a space in a path as \040. */
async function mountPoints(): Promise<readonly string[]> {
  const table = await readFile("/proc/self/mountinfo", "utf8").catch(() => "");
  return table
    .split("\n")
    .map((line) =>
      (line.split(" ")[4] ?? "").replaceAll(/\\([0-7]{3})/g, (_, code: string) =>
        String.fromCodePoint(Number.parseInt(code, 8)),
      ),
    );
}

const nonce = (): string => randomBytes(8).toString("hex");
