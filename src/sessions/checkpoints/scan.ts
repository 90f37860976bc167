import { closeSync, lstatSync, openSync, type Stats } from "node:fs";
import { setImmediate as breath } from "node:timers/promises";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import type { ContentReader } from "./content.ts";
import { isBelow, type UnkeptEntry } from "./entry.ts";
import { isLeftOut, namesIn } from "./folder-names.ts";
import { hostPath, liesAt, tooLong } from "./host-path.ts";
import {
  entryAt,
  type EntryReader,
  type Seen,
  sameStats,
  seen,
  type Sight,
  statsAt,
  unlooked,
} from "./seen.ts";

export interface ScanRequest {
  readonly root: string;
  readonly reader: ContentReader;
  readonly before: Sight;
  /** An absolute path that is not looked into: where all this is kept. */
  readonly except: string;
  readonly signal?: AbortSignal | undefined;
}

/** For so long nobody else is let work. */
const SLICE_MS = 8;

/** Looks at a whole workspace; reads only files that are not as they were `before`. Follows no link. */
export async function scan(request: ScanRequest): Promise<Sight> {
  const { root, reader, before, except } = request;
  refuseOtherName(root);
  const now = Date.now();
  const found = new Map<string, Seen>();
  const top = lstatSync(root);
  const how: EntryReader = { root, reader, owner: `${top.uid}:${top.gid}` };
  const folders: string[] = [""];
  found.set("", seen(entryAt("", top, how), top, now));
  let slice = performance.now();
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const name of listed(folder, request, found)) {
      const path = folder === "" ? name : `${folder}/${name}`;
      const stats = isLeftOut(name) ? undefined : statsAt(root, path);
      if (stats === undefined) continue;
      const known = before.get(path);
      const same = known !== undefined && isSame(known, stats);
      found.set(path, same ? known : seen(entryAt(path, stats, how), stats, now));
      if (stats.isDirectory() && `${root}/${path}` !== except) folders.push(path);
      if (performance.now() - slice < SLICE_MS) continue;
      await breath();
      request.signal?.throwIfAborted();
      slice = performance.now();
    }
  }
  return found;
}

const isSame = (known: Seen, stats: Stats): boolean => known.settled && sameStats(known, stats);

/** Files are known to lie where they are looked for by their real path, so that has to be the one that is used. */
function refuseOtherName(root: string): void {
  const descriptor = openSync(root, "r");
  try {
    if (liesAt(descriptor, hostPath(root, ""))) return;
  } finally {
    closeSync(descriptor);
  }
  const why = `${root} is not the real path of the folder: a link leads there, or its name is written differently`;
  throw new HarnessError(EXIT.usage, why, `realpath ${root}`);
}

function listed(folder: string, { root, before }: ScanRequest, found: Map<string, Seen>): readonly string[] {
  try {
    if (!tooLong(root, folder)) return namesIn(hostPath(root, folder));
    notLooked(folder, "deep", before, found);
  } catch (thrown) {
    if (folder === "") throw thrown;
    if (errorCode(thrown) !== "ENOENT") notLooked(folder, "unreadable", before, found);
  }
  return [];
}

/** What is below a folder that cannot be looked into counts as unchanged. */
function notLooked(folder: string, why: UnkeptEntry["why"], before: Sight, found: Map<string, Seen>): void {
  const there = found.get(folder);
  if (there?.entry.kind !== "folder") return;
  for (const [path, earlier] of before) if (isBelow(path, folder)) found.set(path, earlier);
  if (why === "deep" || !before.has(folder)) found.set(folder, unlooked(there, why));
}
