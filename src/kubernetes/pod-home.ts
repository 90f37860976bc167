import { dropFromPiece, foldersAbove, isPath, keepPiece } from "../boxes/layers/layer-pieces.ts";
import { type Layer, noteApart } from "../boxes/layers/layer-record.ts";
import type { RunnerClient } from "../boxes/runner/runner-client.ts";
import { newChangesIn } from "../boxes/runner/runner-files.ts";
import { addChanges, type Change } from "../core/ports.ts";
import { reasonOf } from "../core/errors.ts";
import { formatSize } from "../core/wording.ts";
import { bytesOfText } from "../core/raw-data.ts";
import { apartIn, bringBack, type TreePlan, unpackedFrom } from "./pod-tree.ts";

/** Limits per call: larger changes wait for the end of the box. */
const MOST_BYTES = 64 * 2 ** 20;
const MOST_FILES = 50_000;
const NAMED = 3;

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
  readonly #held = new Map<string, number>();
  #pieces = 0;
  #turn: Promise<void> = Promise.resolve();
  #unseen = false;
  #told = false;

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
    const named = [...this.#late].slice(0, NAMED).join(", ");
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
    } else if (fresh.length > MOST_FILES || bytes > MOST_BYTES) {
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
      if (number === 1) await noteApart(this.#layer, apartIn(this.#plan.brought, this.#plan.workspace));
      const packing = {
        folder: this.#plan.workspace,
        words: NAMED_FILES,
        bears: CHANGED,
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
      const before = this.#held.get(file);
      if (before !== undefined) await dropFromPiece(this.#layer.folder, before, file);
      this.#held.delete(file);
    }
    for (const file of there) this.#held.set(file, number);
  }

  #later(fresh: readonly Change[], why: string): void {
    for (const { path: file } of fresh) this.#late.add(file);
    if (this.#told) return;
    this.#told = true;
    this.#warn(
      `what a call changed in the box is copied back only when the box ends, and is lost if the pod is lost first: ${why}`,
    );
  }
}

/** A file that vanished meanwhile is no failure: the next look reports it. */
const NAMED_FILES = [
  "--no-recursion",
  "--ignore-failed-read",
  "--null",
  "--verbatim-files-from",
  "--files-from=-",
] as const;

/** tar's exit code for a file that changed while it was read: the next look reports that too. */
const CHANGED = 1;

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
    await bringBack(plan, layer, client);
  } catch (thrown) {
    const missing = home?.missing ?? "";
    const since =
      home === undefined || home.seen.size === 0 ? "it began" : "its changes were last copied back";
    const what = missing === "" ? `what the box changed since ${since}` : `${missing} and what was under way`;
    warn(`lost with the pod: ${what}: ${reasonOf(thrown)}`);
  }
}
