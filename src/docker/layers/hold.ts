import { lstat, readdir } from "node:fs/promises";
import path from "node:path";
import { EXIT, errorCode, HarnessError } from "../../core/errors.ts";
import { lockWorkspace } from "../life/lock.ts";
import { refuseWithoutRoom, type Room } from "./quota.ts";
import { giveUpLayer, type Layer, layerOf, type LayerRecord, makeLayer } from "./record.ts";

export type HeldLayer = AsyncDisposable & { readonly layer: Layer };

type Wanted = Pick<LayerRecord, "session" | "workspace" | "isolation">;

/** The session's layer, or a new one where there is room, for one process alone. */
export async function holdLayer(stateDir: string, wanted: Wanted, room: Room): Promise<HeldLayer> {
  const held = await holdExisting(stateDir, wanted.session);
  if (held === undefined) {
    await refuseWithoutRoom(stateDir, room);
    await makeLayer(stateDir, { ...wanted, volume: null, made: Date.now() }).catch(unlessThere);
    return holdLayer(stateDir, wanted, room);
  }
  const { layer } = held;
  if (layer.workspace === wanted.workspace && layer.isolation === wanted.isolation) return held;
  if (await isEmpty(layer)) {
    await giveUpLayer(stateDir, wanted.session);
    await held[Symbol.asyncDispose]();
    return holdLayer(stateDir, wanted, room);
  }
  await held[Symbol.asyncDispose]();
  throw new HarnessError(
    EXIT.usage,
    `what this session has changed lies in ${layer.isolation === "copy" ? "a copy of" : "a layer over"} ${layer.workspace}, and is not applied`,
    `harness apply ${wanted.session}   (or go on with it: --isolation ${layer.isolation} --cwd ${layer.workspace})`,
  );
}

/** Undefined when the session has none. */
export async function holdExisting(stateDir: string, session: string): Promise<HeldLayer | undefined> {
  const before = await layerOf(stateDir, session);
  if (before === undefined) return undefined;
  const { dev, ino } = await lstat(before.folder, { bigint: true });
  const lock = await lockWorkspace({ path: before.folder, dev, ino, write: true, stateDir });
  // Whoever held it may have given it up.
  const layer = await layerOf(stateDir, session);
  if (layer !== undefined && (await lstat(layer.folder, { bigint: true })).ino === ino)
    return { layer, [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose]() };
  await lock[Symbol.asyncDispose]();
  return holdExisting(stateDir, session);
}

/** Nothing is in it that could be applied. */
async function isEmpty({ folder, isolation, volume }: Layer): Promise<boolean> {
  if (isolation === "copy") return volume === null;
  return (await readdir(path.join(folder, "upper"))).length === 0;
}

/** Another run of the session may have made it meanwhile. */
function unlessThere(thrown: unknown): void {
  const cause = thrown instanceof HarnessError ? thrown.cause : thrown;
  if (!["EEXIST", "ENOTEMPTY"].includes(errorCode(cause) ?? "")) throw thrown;
}
