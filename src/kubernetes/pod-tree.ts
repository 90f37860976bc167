import { existsSync } from "node:fs";
import { mkdir, rmdir } from "node:fs/promises";
import path from "node:path";
import { PassThrough } from "node:stream";
import { startCommand } from "../boxes/box-command.ts";
import { returnedTree, returnTree, unpack } from "../boxes/layers/copy-changes.ts";
import { dropPieces } from "../boxes/layers/layer-pieces.ts";
import { type Layer, noteApart } from "../boxes/layers/layer-record.ts";
import { archiveOf } from "../boxes/layers/workspace-archive.ts";
import { removeTree } from "../boxes/life/workspace-folders.ts";
import type { RunnerClient } from "../boxes/runner/runner-client.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { isInside } from "../core/file-names.ts";
import type { PodPlan } from "./pod-spec.ts";

/** How the tree gets into a pod, and how its changes come back. */

export type TreePlan = Pick<PodPlan, "workspace" | "brought">;

interface Filling {
  readonly plan: TreePlan;
  /** The real path of the workspace. */
  readonly workspace: string;
  readonly layer: Layer | null;
  readonly warn: (text: string) => void;
}

const HOUR_MS = 3_600_000;

/** Paths in the workspace that come from the image in the box: those of the host are neither sent nor changed. */
export const apartIn = (brought: PodPlan["brought"], workspace: string): readonly string[] =>
  brought.filter(({ to }) => isInside(workspace, to)).map(({ to }) => path.relative(workspace, to));

/** Sends the tree that the session kept, or the workspace as it is; then adds the folders from the image. */
export async function fill(client: RunnerClient, filling: Filling): Promise<void> {
  await sendTree(filling, client);
  for (const folder of filling.plan.brought) await bring(folder, client);
}

const BRING = `mkdir -p -- "$1" && exec find "$0" -mindepth 1 -maxdepth 1 -exec cp -a --no-preserve=ownership -t "$1" -- {} +`;

/** Copies the folder: what a box writes there is lost with the box. */
async function bring({ from, to }: PodPlan["brought"][number], client: RunnerClient): Promise<void> {
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

async function sendTree({ plan, workspace, layer, warn }: Filling, client: RunnerClient): Promise<void> {
  const kept = layer === null ? undefined : await returnedTree(layer.folder);
  const from = kept ?? workspace;
  const input = archiveOf(
    from,
    "tree",
    ({ path: file, why }) => warn(`not in the copy: ${file}: ${why}`),
    apartIn(plan.brought, workspace),
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
  if (exit_code === 0) return;
  const message = Buffer.from(stderr.head).toString("utf8").trim();
  throw new HarnessError(
    EXIT.sandbox,
    `the workspace could not be copied into the pod: ${message === "" ? reason : message}`,
    "if there was no room, raise kubernetes.disk, or --memory for files in /tmp",
  );
}

/** Replaces the layer's tree with the pod's tree, completely or not at all. */
export async function bringBack(plan: TreePlan, layer: Layer, client: RunnerClient): Promise<void> {
  const { folder } = layer;
  const apart = apartIn(plan.brought, plan.workspace);
  const aside = path.join(folder, "tree.new");
  await removeTree(aside);
  await mkdir(aside, { mode: 0o700 });
  const words = ["--anchored", "--no-wildcards", ...apart.map((name) => `--exclude=./${name}`), "."];
  await unpackedFrom(client, { folder: plan.workspace, words }, (archive) => unpack(archive, aside));
  await dropEmptyParents(apart, { aside, workspace: plan.workspace });
  await noteApart(layer, apart);
  await returnTree(folder, aside);
  await dropPieces(folder);
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
export async function unpackedFrom(
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
      if (stream === "stdout" && !archive.write(bytes)) return drained(archive);
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
function drained(archive: PassThrough): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      archive.off("drain", done).off("close", done);
      resolve();
    };
    archive.on("drain", done).on("close", done);
  });
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
