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
  const note = (name: string, what: LayerChange["what"], stats: Stats): void => {
    const mode = stats.mode & 0o7777;
    changes.push({ path: textOfBytes(Buffer.from(name, "latin1")), what, kind: kindOf(stats), mode });
  };
  for (const name of [...new Set([...below.keys(), ...above.keys()])].toSorted()) {
    const [was, is] = [below.get(name), above.get(name)];
    const other = was !== undefined && is !== undefined && kindOf(was) !== kindOf(is);
    if (was !== undefined && (other || (is === undefined && wasCopied({ workspace, name, made }, was))))
      note(name, "deleted", was);
    if (is === undefined || (was !== undefined && !other && inGit(name) && is.mtimeMs < made - COARSE_MS))
      continue;
    if (was === undefined || other) note(name, "added", is);
    else if (was.mode !== is.mode || !(await same({ workspace, content, name }, is)))
      note(name, "modified", is);
  }
  return { changes, content, incomplete: false, since: made };
}

interface Lacked {
  readonly workspace: string;
  readonly name: string;
  readonly made: number;
}

/** What the copy has not and never had was not deleted in it: odd and closed things, and new objects of git's. */
function wasCopied({ workspace, name, made }: Lacked, was: Stats): boolean {
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

interface Compared {
  readonly workspace: string;
  readonly content: string;
  readonly name: string;
}

async function same({ workspace, content, name }: Compared, stats: Stats): Promise<boolean> {
  const at = (root: string): Buffer => Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, "latin1")]);
  if (stats.isFile()) return sameContent(at(workspace), at(content));
  if (!stats.isSymbolicLink()) return true;
  const target = (root: string): Buffer => readlinkSync(at(root), { encoding: "buffer" });
  return target(workspace).equals(target(content));
}
