import { Buffer } from "node:buffer";
import { accessSync, constants, readlinkSync, type Stats } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { textOfBytes } from "../../core/byte-text.ts";
import type { LayerChange, LayerChanges } from "../../core/layer.ts";
import type { Engine } from "../engine.ts";
import { engineFailure } from "../failure.ts";
import { hold } from "../isolation/held.ts";
import { NO_COPY } from "../isolation/layers.ts";
import { kindOf } from "../isolation/upper.ts";
import { sameContent } from "../isolation/same-content.ts";
import { treeOf } from "../isolation/tree.ts";
import { removeTree } from "../life/folders.ts";
import type { Layer } from "./record.ts";
import { unpack } from "./unpack.ts";

const PLACE = "/harness-copy";

export interface Copied {
  readonly engine: Engine;
  readonly labels: Readonly<Record<string, string>>;
  /** Any image; nothing of it is run. */
  readonly image: string;
}

/** What a copy has other than the workspace has now: all of it is brought here, and looked at. */
export async function changesOfCopy(layer: Layer, from: Copied): Promise<LayerChanges> {
  const { folder, volume, workspace, made } = layer;
  const content = path.join(folder, "tree");
  await removeTree(content);
  await mkdir(content, { mode: 0o700 });
  if (volume !== null) await bring(from, volume, content);
  const [below, above] = [statsIn(workspace), statsIn(content)];
  const changes: LayerChange[] = [];
  for (const name of [...new Set([...below.keys(), ...above.keys()])].toSorted()) {
    const pair = { name, workspace, content, made, was: below.get(name), is: above.get(name) };
    for (const [what, stats] of await whatsOf(pair)) {
      const bytes = Buffer.from(name, "latin1");
      changes.push({ path: textOfBytes(bytes), what, kind: kindOf(stats), mode: stats.mode & 0o7777 });
    }
  }
  return { changes, content, incomplete: false, since: made };
}

interface Pair {
  /** Its bytes, as a text of single bytes. */
  readonly name: string;
  readonly workspace: string;
  readonly content: string;
  readonly made: number;
  readonly was: Stats | undefined;
  readonly is: Stats | undefined;
}

async function whatsOf(pair: Pair): Promise<readonly (readonly [LayerChange["what"], Stats])[]> {
  const { name, made, was, is } = pair;
  if (was === undefined) return is === undefined ? [] : [["added", is]];
  if (is === undefined) return wasCopied(pair, was) ? [["deleted", was]] : [];
  if (kindOf(was) !== kindOf(is))
    return [
      ["deleted", was],
      ["added", is],
    ];
  // What the box left as it was is older than the copy; the user's git may have gone on since.
  if (inGit(name) && is.mtimeMs < made - COARSE_MS) return [];
  return was.mode !== is.mode || !(await same(pair, is)) ? [["modified", is]] : [];
}

/** What the copy has not and never had was not deleted in it: odd and closed things, and new objects of git's. */
function wasCopied({ workspace, name, made }: Pair, was: Stats): boolean {
  if (kindOf(was) === "odd" || (inGit(name) && was.ctimeMs >= made)) return false;
  if (was.isSymbolicLink()) return true;
  try {
    accessSync(Buffer.concat([Buffer.from(`${workspace}/`), Buffer.from(name, "latin1")]), constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** Archives count whole seconds. */
const COARSE_MS = 1000;
const inGit = (name: string): boolean => name.split("/").includes(".git");

async function bring({ engine, labels, image }: Copied, volume: string, content: string): Promise<void> {
  try {
    const container = await engine.api.createContainer({
      Image: image,
      Entrypoint: ["none"],
      Labels: { ...labels },
      NetworkDisabled: true,
      HostConfig: {
        NetworkMode: "none",
        Mounts: [{ Type: "volume", Source: volume, Target: `${PLACE}/tree`, VolumeOptions: NO_COPY }],
      },
    });
    try {
      const archive = (await container.getArchive({ path: `${PLACE}/tree` })) as AsyncIterable<Buffer>;
      await unpack(archive, content);
    } finally {
      await container.remove({ force: true });
    }
  } catch (thrown) {
    throw engineFailure("reading the copy", thrown);
  }
}

/** By their bytes, which are kept as a text of single bytes. */
function statsIn(root: string): ReadonlyMap<string, Stats> {
  using folder = hold(root);
  return new Map([...treeOf(folder)].map(({ path: name, stats }) => [name.toString("latin1"), stats]));
}

async function same({ workspace, content, name }: Pair, stats: Stats): Promise<boolean> {
  const at = (root: string): Buffer => Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, "latin1")]);
  if (stats.isFile()) return sameContent(at(workspace), at(content));
  if (!stats.isSymbolicLink()) return true;
  const target = (root: string): Buffer => readlinkSync(at(root), { encoding: "buffer" });
  return target(workspace).equals(target(content));
}
