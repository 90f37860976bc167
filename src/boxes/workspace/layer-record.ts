import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Change } from "../../core/ports.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { makeFolder } from "../../platform/folders.ts";
import { replaceFile } from "../../platform/safe-files.ts";
import { removeTree } from "../box-record.ts";
import type { RunnerClient } from "../runner-client.ts";

/** How a box sees its workspace. */
export type Isolation = "bind" | "overlay" | "copy";

/** Where a box's workspace really lies while the box exists. */
export interface WorkspaceLocation {
  /** The volume to mount instead of the planned one. */
  readonly volume?: string;
  /** A folder of the file system that the commands fill; undefined if the host cannot see that file system. */
  readonly disk: string | undefined;
  /** Whether the runner must record the tree first, because `changes` depends on the record. */
  readonly snapshot: boolean;
  readonly changes: (client: RunnerClient) => Promise<Changed>;
  /** How the box's own mount table deviates from this place, one line for each deviation. */
  readonly faults: (mountinfo: string) => readonly string[];
  /** Called after the container is gone. */
  readonly remove: () => Promise<void>;
}

/** Only a layer reports folders among the changes. */
export interface Changed {
  /** Ordered by path; each iteration reads the changes anew. */
  readonly changes: Iterable<Change>;
  /** A part could not be read, or a limit was reached. */
  readonly incomplete: boolean;
}

/**
 * `<state>/layers/<session>/` holds the changes of a session that nobody has applied. The file `layer` in it says what
 * was changed. An overlay's layers lie beside that file; a copy is a volume of the engine, or `tree` if its boxes are
 * pods. A name that begins with a dot is a layer that is being made or was given up. Any other file in the folder
 * belongs to the code that put it there and is deleted with the folder.
 */
export interface LayerRecord {
  readonly session: string;
  /** Absolute, with links resolved. */
  readonly workspace: string;
  readonly isolation: "overlay" | "copy";
  /** The copy's volume, once the copy is complete. */
  readonly volume: string | null;
  /** Address of the engine with the copy, as it was dialled, or the cluster of its pods; unknown for older records. */
  readonly at?: string | undefined;
  /** The docker context that named the engine; it may have certificates. */
  readonly context?: string | undefined;
  /** Set if the boxes are pods: the copy's tree is returned into the folder as a whole. Left out for an engine's. */
  readonly engine?: "kubernetes" | undefined;
  /** Paths below the workspace that are not part of the copy: its boxes have something else there. */
  readonly apart?: readonly string[] | undefined;
  /** Paths that could not be read when the copy was made: neither they nor what is in them were ever in it. */
  readonly missing?: readonly string[] | undefined;
  /** When the layer was begun, in milliseconds since 1970. */
  readonly made: number;
}

export interface Layer extends LayerRecord {
  readonly folder: string;
}

const recordForm: z.ZodType<LayerRecord> = z.object({
  session: z.string(),
  workspace: z.string(),
  isolation: z.enum(["overlay", "copy"]),
  volume: z.string().nullable(),
  at: z.string().optional(),
  context: z.string().optional(),
  engine: z.literal("kubernetes").optional(),
  apart: z.array(z.string()).optional(),
  missing: z.array(z.string()).optional(),
  made: z.number(),
});

export const layersIn = (stateDir: string): string => path.join(stateDir, "layers");

const NEW = ".new.";
const GONE = ".gone.";

const folderOf = (stateDir: string, session: string): string => {
  if (!/^\w[\w.-]{0,63}$/.test(session))
    throw new TypeError(`${JSON.stringify(session)} is not a session id`);
  return path.join(layersIn(stateDir), session);
};

export async function layerOf(stateDir: string, session: string): Promise<Layer | undefined> {
  const folder = folderOf(stateDir, session);
  try {
    return { ...recordForm.parse(JSON.parse(await readFile(path.join(folder, "layer"), "utf8"))), folder };
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    const message = `the changes of the session ${session} cannot be read: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.failed, message, `ls -l ${folder}`, thrown);
  }
}

/** Makes the layer as a whole or not at all. */
export async function makeLayer(stateDir: string, record: LayerRecord): Promise<Layer> {
  const folder = folderOf(stateDir, record.session);
  const aside = await newAsideFolder(stateDir, record.session, NEW);
  try {
    await mkdir(aside, { mode: 0o700 });
    if (record.isolation === "overlay")
      for (const part of ["upper", "work"]) await mkdir(path.join(aside, part));
    await writeFile(path.join(aside, "layer"), JSON.stringify(record), { mode: 0o600 });
    await rename(aside, folder);
    return { ...record, folder };
  } catch (thrown) {
    await rm(aside, { recursive: true, force: true }).catch(() => undefined);
    const message = `the session's changes cannot be stored in ${layersIn(stateDir)}: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.sandbox, message, `df -h ${stateDir}; ls -ld ${stateDir}`, thrown);
  }
}

interface MadeCopy extends Required<Pick<LayerRecord, "missing">> {
  readonly volume: string;
  readonly endpoint: { readonly host: string; readonly context?: string };
}

/** Records the engine as its endpoint names it. */
export const noteVolume = (
  layer: Layer,
  { volume, missing, endpoint: { host: at, context } }: MadeCopy,
): Promise<void> => rewrite(layer, { volume, missing, at, context }, "never");

/** Only the first copy counts: a tree that came back from pods is sent again without what was never in it. */
export async function noteMissing(layer: Layer, missing: readonly string[]): Promise<void> {
  if (missing.length > 0) await rewrite(layer, { missing }, "never");
}

/** A path that was apart once stays apart: nothing of it was ever in the copy. */
export async function noteApart(layer: Layer, paths: readonly string[]): Promise<void> {
  const before = layer.apart ?? [];
  const apart = [...new Set([...before, ...paths])];
  if (apart.length > before.length) await rewrite(layer, { apart }, "content");
}

/** The rest of the record stays, also what was noted since the layer was read. */
async function rewrite(
  { folder }: Layer,
  changed: Partial<LayerRecord>,
  lasts: "never" | "content",
): Promise<void> {
  const file = path.join(folder, "layer");
  const record = recordForm.parse(JSON.parse(await readFile(file, "utf8")));
  await replaceFile(file, JSON.stringify({ ...record, ...changed }), { aside: `${file}.new`, lasts });
}

/** From here on the layer no longer exists; `clearGivenUp` deletes its contents later. */
export async function giveUpLayer(stateDir: string, session: string): Promise<void> {
  await rename(folderOf(stateDir, session), await newAsideFolder(stateDir, session, GONE)).catch(
    (thrown: unknown) => {
      if (errorCode(thrown) !== "ENOENT") throw thrown;
    },
  );
}

async function newAsideFolder(stateDir: string, session: string, mark: string): Promise<string> {
  makeFolder(layersIn(stateDir));
  return path.join(layersIn(stateDir), `${mark}${session}.${randomBytes(8).toString("hex")}`);
}

/** An entry of a copy that no tree on this machine has: a FIFO or the like. The path is a byte text. */
export interface LeftOut {
  readonly path: string;
  readonly mode: number;
}

const leftOutForm: z.ZodType<readonly LeftOut[]> = z.array(z.object({ path: z.string(), mode: z.number() }));

/** Lies beside the tree that came without these entries. */
const leftOutIn = (folder: string): string => path.join(folder, "left-out");

export const noteLeftOut = (folder: string, entries: readonly LeftOut[]): Promise<void> =>
  entries.length === 0
    ? rm(leftOutIn(folder), { force: true })
    : writeFile(leftOutIn(folder), JSON.stringify(entries), { mode: 0o600 });

export async function leftOutOf(folder: string): Promise<readonly LeftOut[]> {
  const text = await readFile(leftOutIn(folder), "utf8").catch(() => "[]");
  return leftOutForm.safeParse(parsedJson(text)).data ?? [];
}

/** Deletes given-up layers of boxes in a cluster; all of such a layer lies in its folder. */
export async function clearReturned(stateDir: string): Promise<void> {
  for (const { folder, state, engine } of await allLayers(stateDir).catch(() => []))
    if (state === "given-up" && engine !== undefined) await removeTree(folder).catch(() => undefined);
}

/** A layer that is being made may have no record yet. */
export interface FoundLayer {
  readonly folder: string;
  readonly state: "kept" | "given-up" | "begun";
  readonly volume: string | null;
  readonly at?: LayerRecord["at"];
  readonly engine?: LayerRecord["engine"];
  /** When the layer was last changed, in milliseconds. */
  readonly changed: number;
}

export async function allLayers(stateDir: string): Promise<readonly FoundLayer[]> {
  const root = layersIn(stateDir);
  const entries = await readdir(root, { withFileTypes: true }).catch((thrown: unknown) => {
    if (errorCode(thrown) === "ENOENT") return [];
    throw thrown;
  });
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  return Promise.all(
    folders.map(async (name) => {
      const folder = path.join(root, name);
      const text = await readFile(path.join(folder, "layer"), "utf8").catch(() => "{}");
      const read = recordForm.safeParse(parsedJson(text));
      const changed = (await stat(folder).catch(() => undefined))?.ctimeMs ?? Date.now();
      return {
        folder,
        state: stateOf(name),
        volume: read.success ? read.data.volume : null,
        at: read.data?.at,
        engine: read.data?.engine,
        changed,
      };
    }),
  );
}

const stateOf = (name: string): FoundLayer["state"] =>
  name.startsWith(GONE) ? "given-up" : name.startsWith(".") ? "begun" : "kept";
