import { lstatSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { replaceFileSync } from "../../platform/safe-files.ts";
import { indexFailure } from "../index-failure.ts";
import { waitForWriter } from "./catalog-file.ts";
import { makeFolder } from "../../platform/folders.ts";

/** Identifies a folder after it was moved: a copy has another inode, a replacement has another birth time. */
interface RootIdentity {
  readonly dev: string;
  readonly ino: string;
  readonly born: string;
}

interface IndexRecord extends RootIdentity {
  /** Letters and digits; the name of the index's folder. */
  readonly id: string;
  readonly workspace: string;
}

/** The folder of one index. */
export interface IndexPlace {
  readonly id: string;
  readonly folder: string;
  /** Absolute and resolved. */
  readonly workspace: string;
  /** Where the workspace was when it was last indexed, if it has moved. */
  readonly movedFrom: string | null;
}

const RECORD = "workspace.json";

/** Finds the index of a workspace, by its path or by the identity of a folder that was moved there. */
export function findIndex(root: string, workspace: string): IndexPlace | undefined {
  const identity = identityOf(workspace);
  if (identity === undefined) return undefined;
  const records = indexesIn(root);
  const place = ({ id }: IndexRecord, movedFrom: string | null): IndexPlace => ({
    id,
    folder: path.join(root, id),
    workspace,
    movedFrom,
  });
  const same = records.find((each) => isSame(each, identity));
  if (same?.workspace === workspace) return place(same, null);
  if (same !== undefined && hasLeft(same)) return place(same, same.workspace);
  const here = records.find((each) => each.workspace === workspace);
  // Another folder has replaced this one: its index is compared file by file.
  return here === undefined ? undefined : place(here, null);
}

/** Like `findIndex`, but creates a missing index and records the present path of the workspace. */
export function claimIndex(root: string, workspace: string): IndexPlace {
  try {
    return claimUnderLock(root, workspace);
  } catch (thrown) {
    throw indexFailure(thrown, root);
  }
}

function claimUnderLock(root: string, workspace: string): IndexPlace {
  makeFolder(root);
  // Two processes that begin at the same time make one index.
  using _ = waitForWriter(() => root);
  const found = findIndex(root, workspace);
  const id = found?.id ?? process.getBuiltinModule("node:crypto").randomBytes(12).toString("hex");
  const folder = path.join(root, id);
  makeFolder(folder);
  const identity = identityOf(workspace) ?? { dev: "", ino: "", born: "" };
  writeRecord(folder, { id, workspace, ...identity });
  return { id, folder, workspace, movedFrom: found?.movedFrom ?? null };
}

/** All indexes; a folder without a readable record is none. */
export function indexesIn(root: string): readonly IndexRecord[] {
  return namesIn(root).flatMap((name) => {
    const record = readRecord(path.join(root, name));
    return record?.id === name ? [record] : [];
  });
}

/** Whether its workspace no longer exists. */
export const isOrphan = (record: IndexRecord): boolean => identityOf(record.workspace) === undefined;

/** Whether the recorded folder is gone or has been replaced by another. */
function hasLeft(record: IndexRecord): boolean {
  const now = identityOf(record.workspace);
  return now === undefined || !isSame(record, now);
}

const isSame = (a: RootIdentity, b: RootIdentity): boolean =>
  a.dev === b.dev && a.ino === b.ino && a.born === b.born;

function identityOf(folder: string): RootIdentity | undefined {
  try {
    const stats = lstatSync(folder, { bigint: true });
    if (!stats.isDirectory()) return undefined;
    return { dev: String(stats.dev), ino: String(stats.ino), born: String(stats.birthtimeNs) };
  } catch {
    return undefined;
  }
}

function writeRecord(folder: string, record: IndexRecord): void {
  const file = path.join(folder, RECORD);
  const text = JSON.stringify(record);
  if (textOf(file) === text) return;
  replaceFileSync(file, text, { aside: `${file}.new`, lasts: "content" });
}

function readRecord(folder: string): IndexRecord | undefined {
  try {
    const value = JSON.parse(textOf(path.join(folder, RECORD)) ?? "") as Partial<Record<string, unknown>>;
    const texts = [value["id"], value["workspace"], value["dev"], value["ino"], value["born"]];
    return texts.every((each) => typeof each === "string") ? (value as unknown as IndexRecord) : undefined;
  } catch {
    return undefined;
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** Names of the entries of a folder; none if the folder does not exist. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
