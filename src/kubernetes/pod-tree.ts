import { existsSync } from "node:fs";
import { mkdir, rmdir } from "node:fs/promises";
import path from "node:path";
import { PassThrough } from "node:stream";
import { startCommand } from "../boxes/box-command.ts";
import { removeTree } from "../boxes/box-record.ts";
import type { RunnerClient } from "../boxes/runner-client.ts";
import { newChangesIn } from "../boxes/runner-files.ts";
import { type Layer, noteApart, noteLeftOut, noteMissing } from "../boxes/workspace/layer-record.ts";
import {
  dropFromPiece,
  dropPieces,
  foldersAbove,
  isPath,
  keepPiece,
  returnedTree,
  returnTree,
} from "../boxes/workspace/session-layer.ts";
import { archiveOf, unpack } from "../boxes/workspace/workspace-archive.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { isInside } from "../core/file-names.ts";
import { addChanges, type Change } from "../core/ports.ts";
import { bytesOfText } from "../core/raw-data.ts";
import { formatSize } from "../core/wording.ts";
import type { PodPlan } from "./pod-spec.ts";

/** How the tree gets into a pod, and how its changes come back. */

type TreePlan = Pick<PodPlan, "workspace" | "brought">;

interface Filling {
  readonly plan: TreePlan;
  /** The real path of the workspace. */
  readonly workspace: string;
  readonly layer: Layer | null;
  readonly warn: (text: string) => void;
}

/** Sends the tree that the session kept, or the workspace as it is; then adds the folders from the image. */
export async function fill(client: RunnerClient, filling: Filling): Promise<void> {
  await sendTree(filling, client);
  for (const folder of filling.plan.brought) await copyIntoPod(folder, client);
}

async function sendTree({ plan, workspace, layer, warn }: Filling, client: RunnerClient): Promise<void> {
  const kept = layer === null ? undefined : await returnedTree(layer.folder);
  const from = kept ?? workspace;
  const missing: string[] = [];
  const input = archiveOf(
    from,
    "tree",
    ({ path: file, why }) => {
      missing.push(file);
      warn(`not in the copy: ${file}: ${why}`);
    },
    pathsFromImage(plan.brought, workspace),
  );
  const words = [
    "tar",
    "--extract",
    "--no-same-owner",
    "--preserve-permissions",
    "--no-overwrite-dir",
    "--strip-components=1",
    "--file=-",
  ];
  const command = { words, folder: plan.workspace, timeoutMs: HOUR_MS, keep: { head: 2000, tail: 0 }, input };
  const { exit_code, stderr, reason } = await startCommand(client, command, { workspace: plan.workspace })
    .ended;
  if (exit_code === 0) {
    if (layer !== null && kept === undefined) await noteMissing(layer, missing);
    return;
  }
  const message = Buffer.from(stderr.head).toString("utf8").trim();
  throw new HarnessError(
    EXIT.sandbox,
    `the workspace could not be copied into the pod: ${message === "" ? reason : message}`,
    "if there was no room, raise kubernetes.disk, or --memory for files in /tmp",
  );
}

/** Copies the folder: what a box writes there is lost with the box. */
async function copyIntoPod({ from, to }: PodPlan["brought"][number], client: RunnerClient): Promise<void> {
  const words = ["sh", "-c", BRING, from, to];
  const command = { words, folder: "/", timeoutMs: HOUR_MS, keep: { head: 0, tail: 2000 } };
  const { exit_code, stderr, reason } = await startCommand(client, command, { workspace: "/" }).ended;
  if (exit_code === 0) return;
  const message = Buffer.from(stderr.tail).toString("utf8").trim();
  throw new HarnessError(
    EXIT.sandbox,
    `${to} could not be copied from the image: ${message === "" ? reason : message}`,
    "if the disk was full, raise kubernetes.disk; harness env build --rebuild builds it again; --env none leaves it out",
  );
}

const BRING = `mkdir -p -- "$1" && exec find "$0" -mindepth 1 -maxdepth 1 -exec cp -a --no-preserve=ownership -t "$1" -- {} +`;

/** Paths in the workspace that come from the image in the box: those of the host are neither sent nor changed. */
export const pathsFromImage = (brought: PodPlan["brought"], workspace: string): readonly string[] =>
  brought.filter(({ to }) => isInside(workspace, to)).map(({ to }) => path.relative(workspace, to));

const HOUR_MS = 3_600_000;

/** Replaces the layer's tree with the pod's tree, completely or not at all. */
async function copyTreeBack(plan: TreePlan, layer: Layer, client: RunnerClient): Promise<void> {
  const { folder } = layer;
  const apart = pathsFromImage(plan.brought, plan.workspace);
  const aside = path.join(folder, "tree.new");
  await removeTree(aside);
  await mkdir(aside, { mode: 0o700 });
  const words = ["--anchored", "--no-wildcards", ...apart.map((name) => `--exclude=./${name}`), "."];
  await unpackedFrom(client, { folder: plan.workspace, words }, async (archive) => {
    await noteLeftOut(folder, await unpack(archive, aside));
  });
  await dropEmptyParents(apart, { aside, workspace: plan.workspace });
  await noteApart(layer, apart);
  await returnTree(folder, aside);
  await dropPieces(folder);
}

/** Removes folders that were made only to hold what the image brings. */
async function dropEmptyParents(
  apart: readonly string[],
  { aside, workspace }: { readonly aside: string; readonly workspace: string },
): Promise<void> {
  for (const name of apart)
    for (let at = path.dirname(name); at !== "."; at = path.dirname(at)) {
      if (existsSync(path.join(workspace, at))) break;
      const isGone = await rmdir(path.join(aside, at)).then(
        () => true,
        () => false,
      );
      if (!isGone) break;
    }
}

interface Packing {
  /** A folder in the box. */
  readonly folder: string;
  /** Arguments for tar: what to pack. */
  readonly words: readonly string[];
  /** The highest exit code of tar that is no failure. */
  readonly bears?: number;
  readonly input?: AsyncIterable<Uint8Array>;
}

/**
 * Streams a tar archive of a folder in the box, below one top folder, to `take`; resolves only if the whole archive
 * arrived.
 */
async function unpackedFrom(
  client: RunnerClient,
  { folder, words, bears = 0, input }: Packing,
  take: (archive: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  const archive = new PassThrough();
  const command = {
    words: ["tar", "--create", "--format=gnu", "--file=-", "--transform=s,^\\./,tree/,S", ...words],
    folder,
    timeoutMs: HOUR_MS,
    keep: { head: Number.MAX_SAFE_INTEGER, tail: 0 },
    ...(input === undefined ? {} : { input }),
    onOutput: (stream: "stdout" | "stderr", bytes: Uint8Array): Promise<void> | void => {
      if (stream === "stdout" && !archive.write(bytes)) return awaitDrain(archive);
    },
  };
  const taken = take(archive as AsyncIterable<Buffer>);
  taken.catch(() => archive.resume());
  try {
    const { exit_code } = await startCommand(client, command, { workspace: folder }).ended;
    if (exit_code > bears) throw new HarnessError(EXIT.sandbox, `tar in the box ended with ${exit_code}`, "");
    archive.end();
  } catch (thrown) {
    archive.destroy(thrown as Error);
    await taken.catch(() => undefined);
    throw thrown;
  }
  await taken;
}

/** Resolves when the archive accepts more data, or is closed. */
function awaitDrain(archive: PassThrough): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      archive.off("drain", done).off("close", done);
      resolve();
    };
    archive.on("drain", done).on("close", done);
  });
}

interface HomeParts {
  readonly client: RunnerClient;
  readonly plan: TreePlan;
  readonly layer: Layer;
  readonly warn: (text: string) => void;
}

/**
 * Brings home what commands change in a pod's tree, after each command, as pieces of the layer: a lost pod takes only
 * unfinished work with it. If nothing has changed, this costs one look of the runner at its tree.
 */
export class PodHome {
  readonly #client: RunnerClient;
  readonly #plan: TreePlan;
  readonly #layer: Layer;
  readonly #warn: (text: string) => void;
  /** All changes since the box began. */
  readonly #all = new Map<string, Change>();
  /** Changed files that are not home yet: too large, or they could not be stored. */
  readonly #late = new Set<string>();
  /** The piece that holds a file. */
  readonly #pieceOf = new Map<string, number>();
  #pieces = 0;
  #turn: Promise<void> = Promise.resolve();
  #unseen = false;
  #isReported = false;

  constructor({ client, plan, layer, warn }: HomeParts) {
    this.#client = client;
    this.#plan = plan;
    this.#layer = layer;
    this.#warn = warn;
  }

  /** The changes up to the last look. */
  get seen(): ReadonlyMap<string, Change> {
    return this.#all;
  }

  /** The changes that are home. */
  *changes(): Generator<Change> {
    for (const change of this.#all.values()) if (!this.#late.has(change.path)) yield change;
  }

  /** Describes what would be lost with the pod; empty if that is only unfinished work. */
  get missing(): string {
    if (this.#unseen) return "changes beyond its first half a million files";
    const named = [...this.#late].slice(0, MAX_NAMED).join(", ");
    return this.#late.size === 0 ? "" : `${this.#late.size} changed files (${named})`;
  }

  /** Calls run one after the other. Rejects only if the box is lost. */
  bring(): Promise<void> {
    const turn = this.#turn.then(() => this.#bring());
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #bring(): Promise<void> {
    if (this.#client.lost !== undefined) throw this.#client.lost;
    if (this.#unseen) return;
    const { changes, incomplete, bytes } = await newChangesIn(this.#client);
    const fresh = [...changes].filter((each) => isPath(each.path));
    addChanges(this.#all, fresh);
    if (incomplete) {
      this.#unseen = true;
      this.#warn(
        "the folder in the box is too large to be searched completely: its changes are copied back only when the box ends, and are lost if the pod is lost first",
      );
    } else if (fresh.length > MAX_FILES || bytes > MAX_BYTES) {
      this.#later(
        fresh,
        `${fresh.length} files of ${formatSize(bytes)} are more than is copied back after one call`,
      );
    } else if (fresh.length > 0) await this.#keep(fresh);
  }

  async #keep(fresh: readonly Change[]): Promise<void> {
    const number = this.#pieces + 1;
    const deleted = fresh.filter(({ what }) => what === "deleted").map((each) => each.path);
    const there = fresh.filter(({ what }) => what !== "deleted").map((each) => each.path);
    try {
      if (number === 1)
        await noteApart(this.#layer, pathsFromImage(this.#plan.brought, this.#plan.workspace));
      const packing = {
        folder: this.#plan.workspace,
        words: NAMED_FILES,
        bears: CHANGED_EXIT_CODE,
        input: listOf(fresh),
      };
      await unpackedFrom(this.#client, packing, (archive) =>
        keepPiece(this.#layer.folder, { number, deleted, archive }),
      );
    } catch (thrown) {
      if (this.#client.lost !== undefined) throw this.#client.lost;
      return this.#later(fresh, reasonOf(thrown));
    }
    this.#pieces = number;
    for (const { path: file } of fresh) {
      this.#late.delete(file);
      const before = this.#pieceOf.get(file);
      if (before !== undefined) await dropFromPiece(this.#layer.folder, before, file);
      this.#pieceOf.delete(file);
    }
    for (const file of there) this.#pieceOf.set(file, number);
  }

  #later(fresh: readonly Change[], why: string): void {
    for (const { path: file } of fresh) this.#late.add(file);
    if (this.#isReported) return;
    this.#isReported = true;
    this.#warn(
      `what a call changed in the box is copied back only when the box ends, and is lost if the pod is lost first: ${why}`,
    );
  }
}

/** Limits per call: larger changes wait for the end of the box. */
const MAX_BYTES = 64 * 2 ** 20;

const MAX_FILES = 50_000;

const MAX_NAMED = 3;

/** A file that vanished meanwhile is no failure: the next look reports it. */
const NAMED_FILES = [
  "--no-recursion",
  "--ignore-failed-read",
  "--null",
  "--verbatim-files-from",
  "--files-from=-",
] as const;

/** tar's exit code for a file that changed while it was read: the next look reports that too. */
const CHANGED_EXIT_CODE = 1;

/** Folders before their contents; the folders above a deleted file show whether they still exist. */
async function* listOf(changes: readonly Change[]): AsyncGenerator<Uint8Array> {
  const listed = new Set<string>();
  let piece: Buffer[] = [];
  for (const { what, path: file } of changes) {
    for (const name of [...foldersAbove(file), ...(what === "deleted" ? [] : [file])]) {
      if (listed.has(name)) continue;
      listed.add(name);
      piece.push(bytesOfText(`./${name}\0`));
    }
    if (piece.length < 1000) continue;
    yield await Promise.resolve(Buffer.concat(piece));
    piece = [];
  }
  yield Buffer.concat(piece);
}

/** Brings everything home at the end of the box. If the pod is lost, what has come home stays. */
export async function allBrought(
  { client, plan, layer, warn }: HomeParts,
  home: PodHome | undefined,
): Promise<void> {
  try {
    await copyTreeBack(plan, layer, client);
  } catch (thrown) {
    const missing = home?.missing ?? "";
    const since =
      home === undefined || home.seen.size === 0 ? "it began" : "its changes were last copied back";
    const what = missing === "" ? `what the box changed since ${since}` : `${missing} and what was under way`;
    warn(`lost with the pod: ${what}: ${reasonOf(thrown)}`);
  }
}
