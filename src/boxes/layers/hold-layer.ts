import { lstat, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { formatSize } from "../../core/wording.ts";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { lockWorkspace } from "../life/workspace-lock.ts";
import { returnedTree } from "./copy-changes.ts";
import { hasPieces } from "./layer-pieces.ts";
import {
  allLayers,
  type FoundLayer,
  giveUpLayer,
  type Layer,
  layerOf,
  type LayerRecord,
  makeLayer,
} from "./layer-record.ts";

/** Limit for all layers and copies of a state folder together. */
const QUOTA_BYTES = 20 * 2 ** 30;
/** Above this share of the limit there is a warning. */
const WARN_SHARE = 0.8;
const MOST_NAMED = 3;

interface QuotaOptions {
  readonly warn: (text: string) => void;
  /** In bytes; the default when left out. */
  readonly quota?: number;
}

interface UsedSpace {
  readonly session: string;
  readonly bytes: number;
}

/**
 * Called before a new layer is made. Only a person may apply or give up kept changes, so nothing is deleted: without
 * room no new layer begins, and existing layers continue.
 */
async function refuseWithoutRoom(
  stateDir: string,
  { warn, quota = QUOTA_BYTES }: QuotaOptions,
): Promise<void> {
  const kept = (await allLayers(stateDir)).filter(({ state }) => state === "kept");
  const all = await Promise.all(kept.map(usedSpaceOf));
  const bytes = all.reduce((sum, each) => sum + each.bytes, 0);
  if (bytes <= quota * WARN_SHARE) return;
  const largest = all.toSorted((a, b) => b.bytes - a.bytes).slice(0, MOST_NAMED);
  const named = largest.map((each) => `${each.session} (${formatSize(each.bytes)})`).join(", ");
  const usage = `unapplied changes of sessions take up ${formatSize(bytes)} of ${formatSize(quota)}: ${named}`;
  if (bytes <= quota) return warn(usage);
  const { session = "ID" } = largest[0] ?? {};
  throw new HarnessError(
    EXIT.sandbox,
    `${usage}; there is no room for another`,
    `harness apply ${session}   (or discard it: harness sessions rm ${session})`,
  );
}

/** Records the size of a copy when it is made: later only its engine can see the copy. */
export const noteBytes = (folder: string, bytes: number): Promise<void> =>
  writeFile(path.join(folder, "bytes"), String(bytes), { mode: 0o600 });

async function usedSpaceOf({ folder, volume, engine }: FoundLayer): Promise<UsedSpace> {
  const session = path.basename(folder);
  if (volume === null) {
    const parts = engine === undefined ? ["upper"] : ["tree", "pieces"];
    const sizes = await Promise.all(parts.map((part) => bytesIn(path.join(folder, part))));
    return { session, bytes: sizes.reduce((sum, each) => sum + each, 0) };
  }
  const noted = Number(await readFile(path.join(folder, "bytes"), "utf8").catch(() => "0"));
  return { session, bytes: Number.isFinite(noted) ? noted : 0 };
}

const BLOCK = 512;
const SLASH = Buffer.from("/");

/** Bytes on the disk. Entries that cannot be read or that vanish meanwhile are not counted. */
async function bytesIn(folder: string | Buffer): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, encoding: "buffer" }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) {
    const at = Buffer.concat([Buffer.from(folder), SLASH, entry.name]);
    const stats = await lstat(at).catch(() => undefined);
    bytes += (stats?.blocks ?? 0) * BLOCK;
    if (entry.isDirectory()) bytes += await bytesIn(at);
  }
  return bytes;
}

type HeldLayer = AsyncDisposable & { readonly layer: Layer };

type WantedLayer = Pick<LayerRecord, "session" | "workspace" | "isolation" | "engine" | "at">;

/** Holds the session's layer, or a new one if there is room, for this process alone. */
export async function holdLayer(
  stateDir: string,
  wanted: WantedLayer,
  room: QuotaOptions,
): Promise<HeldLayer> {
  const existing = await holdExisting(stateDir, wanted.session);
  if (existing === undefined) {
    await refuseWithoutRoom(stateDir, room);
    await makeLayer(stateDir, { ...wanted, volume: null, made: Date.now() }).catch(ignoreExisting);
    return holdLayer(stateDir, wanted, room);
  }
  const { layer } = existing;
  const { workspace, isolation, engine } = layer;
  if (workspace === wanted.workspace && isolation === wanted.isolation && engine === wanted.engine)
    return existing;
  if (await isEmpty(layer)) {
    await giveUpLayer(stateDir, wanted.session);
    await existing[Symbol.asyncDispose]();
    return holdLayer(stateDir, wanted, room);
  }
  await existing[Symbol.asyncDispose]();
  throw new HarnessError(
    EXIT.usage,
    `this session's changes are in ${isolation === "copy" ? "a copy of" : "a layer over"} ${workspace}${engine === undefined ? "" : " that pods work on"}, and have not been applied`,
    `harness apply ${wanted.session}   (or continue with it: --isolation ${isolation} --cwd ${workspace}${engineFlag(layer)})`,
  );
}

/** An engine on this machine is the default and needs no flag. */
function engineFlag({ engine, at, context }: Layer): string {
  if (engine !== undefined) return ` --engine ${at ?? "kubernetes:"}`;
  return at === undefined || at.startsWith("unix:") ? "" : ` --engine ${context ?? at}`;
}

/** Undefined if the session has no layer. */
export async function holdExisting(stateDir: string, session: string): Promise<HeldLayer | undefined> {
  const before = await layerOf(stateDir, session);
  if (before === undefined) return undefined;
  const { dev, ino } = await lstat(before.folder, { bigint: true });
  const lock = await lockWorkspace({ path: before.folder, dev, ino, write: true, stateDir });
  // The previous holder may have given the layer up.
  const layer = await layerOf(stateDir, session);
  if (layer !== undefined && (await lstat(layer.folder, { bigint: true })).ino === ino)
    return { layer, [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose]() };
  await lock[Symbol.asyncDispose]();
  return holdExisting(stateDir, session);
}

/** Whether the layer has nothing to apply. */
export async function isEmpty({ folder, isolation, volume, engine }: Layer): Promise<boolean> {
  if (engine !== undefined) return (await returnedTree(folder)) === undefined && !(await hasPieces(folder));
  if (isolation === "copy") return volume === null;
  return (await readdir(path.join(folder, "upper"))).length === 0;
}

/** Another run of the session may have made it meanwhile. */
function ignoreExisting(thrown: unknown): void {
  const cause = thrown instanceof HarnessError ? thrown.cause : thrown;
  if (!["EEXIST", "ENOTEMPTY"].includes(errorCode(cause) ?? "")) throw thrown;
}
