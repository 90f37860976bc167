import assert from "node:assert/strict";
import {
  appendFileSync,
  chownSync,
  cpSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { contentOf, type Tree } from "../../src/sessions/checkpoints/entry.ts";
import type { Session } from "../../src/core/session.ts";
import { hasJournal, finishUndo, undo } from "../../src/sessions/checkpoints/undo-changes.ts";
import { RunCheckpoints } from "../../src/sessions/checkpoints/recorder.ts";
import { CheckpointStore } from "../../src/sessions/checkpoints/checkpoint-store.ts";
import { move, noteBase, prepareApply } from "../../src/sessions/apply-layer.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { layerOf } from "../fixtures/layer-of.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";
import { stateOf } from "../fixtures/seeded-tree.ts";
import { pictureOf } from "../fixtures/tree-picture.ts";
import { countSeen, type Dice, killed, type Tally } from "./killed.ts";

/*
 * Why a workspace is in the state before or after, and no content is lost: contents are on disk before an index names
 * them, the index before a tree names it, the tree before a step or a journal does. An undo and an apply write the
 * whole plan, with a tree of the present state, into a journal before they touch the first path, and drop the journal
 * only when the step has its last tree. Each path is replaced atomically by renaming a complete file. Whoever opens the
 * workspace next repeats the rest of the plan, except for paths that are neither in the old nor in the new state:
 * somebody has changed those.
 */

const WRITER = "fixtures/checkpoint-writer.ts";

export function textsIn(store: CheckpointStore, tree: Tree): Readonly<Record<string, string>> {
  const files = [...tree].flatMap(([at, entry]) =>
    entry.kind === "file" ? [[at, contentOf(store.packs, entry)?.toString() ?? "lost"] as const] : [],
  );
  return Object.fromEntries(files);
}

export const present = (seed: number): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(stateOf(seed)).flatMap(([name, text]) => (text === null ? [] : [[name, text]])),
  );

/** Keeps states, while those of another session make room: everything reported as kept must exist completely. */
export async function stateLife(dice: Dice, kills: number, tally: Tally): Promise<void> {
  await using place = await scratch();
  const [state, work] = [place.at("state"), place.at("work")];
  mkdirSync(work);
  const kept = new Map<string, number>();
  let seed = dice.below(50);
  for (let kill = 0; kill < kills; kill += 1) {
    const forgets = kill % 4 === 3;
    const moment = dice.moment({ steps: forgets ? 30 : 150, ms: 60 });
    if (forgets) {
      seed += 1;
      kept.set(await keepOther(place, seed), seed);
    }
    const words = forgets ? ["forget", state, work, "other"] : ["keep", state, work, String(seed)];
    const { lines, ended } = await killed(WRITER, words, moment);
    if (!ended) tally.cut += 1;
    for (const line of forgets ? [] : lines) {
      const [id = "", known = ""] = line.split(" ");
      kept.set(id, Number(known));
      seed = Number(known) + 1;
    }
    using store = new CheckpointStore({ stateDir: state, workspace: work });
    const ids = store.trees.ids();
    for (const id of kept.keys()) assert.ok(ids.includes(id), `${id} is gone, ${JSON.stringify(moment)}`);
    for (const id of ids) {
      const texts = textsIn(store, store.trees.load(id));
      const known = kept.get(id);
      if (known === undefined) assert.ok(!Object.values(texts).includes("lost"), id);
      else assert.deepEqual(texts, present(known), id);
    }
    if (forgets) countSeen(tally, ids.some((id) => id.startsWith("other.")) ? "still kept" : "made room");
  }
}

/** States of a session that will be forgotten, and one of another session in the same pack, which is returned. */
async function keepOther(place: Scratch, seed: number): Promise<string> {
  const workspace = place.at("work");
  rmSync(workspace, { recursive: true });
  for (const [name, text] of Object.entries(present(seed))) await place.write(`work/${name}`, text);
  using store = open(place);
  const kept = await store.take("s");
  await place.write("work/large", `${performance.now()}\n`.repeat(4000));
  await store.take("other");
  rmSync(path.join(workspace, "large"));
  await store.take("other");
  return kept;
}

const OWNER = 1000;

/** Gives the files to an ordinary user, if run by root. */
function giveTo(root: string): void {
  if (process.getuid?.() !== 0) return;
  chownSync(root, OWNER, OWNER);
  for (const name of readdirSync(root, { recursive: true, encoding: "utf8" }))
    lchownSync(path.join(root, name), OWNER, OWNER);
}

const ownersIn = (root: string): readonly string[] =>
  readdirSync(root, { recursive: true, encoding: "utf8" }).flatMap((name) => {
    const { uid } = lstatSync(path.join(root, name));
    return uid === lstatSync(root).uid ? [] : [`${name}: ${uid}`];
  });

/** Checks that every path is in the old or the new state; temporary files of undo and apply are ignored. */
function assertNothingHalf(root: string, ...pictures: readonly Readonly<Record<string, string>>[]): void {
  for (const [name, is] of Object.entries(pictureOf(root))) {
    if (/\/\.harness-(undo|redo|apply)-[^/]*$/.test(name) || is.startsWith("folder")) continue;
    assert.ok(
      pictures.some((picture) => picture[name] === is || contentIn(picture[name]) === contentIn(is)),
      `${name} is half`,
    );
  }
}

/** The content without its rights, which are set in the last step. */
const contentIn = (is: string | undefined): string | undefined => is?.replace(/^(\w+) [0-7]+/, "$1");

const open = (place: Scratch): CheckpointStore =>
  new CheckpointStore({ stateDir: place.at("state"), workspace: place.at("work") });

/** Undo, sometimes redo, killed in the middle; then somebody else writes, and the next process finishes it. */
export async function undoLife(dice: Dice, kills: number, tally: Tally): Promise<void> {
  for (let kill = 0; kill < kills; kill += 1) await undoOnce(dice, tally);
}

async function undoOnce(dice: Dice, tally: Tally): Promise<void> {
  await using place = await scratch();
  const [stateDir, workspace] = [place.at("state"), place.at("work")];
  const seed = dice.below(100);
  for (const [name, text] of Object.entries(present(seed))) await place.write(`work/${name}`, text);
  giveTo(workspace);
  using sessions = openStore(stateDir);
  const { id, steps } = sessions.create({ ...ABOUT, workspace });
  const before = pictureOf(workspace);
  {
    await using run = new RunCheckpoints({
      session: id,
      steps,
      open: () => open(place),
      notice: assert.fail,
    });
    await run.around({ call: "c", turn: 1, lasting: false }, async () => {
      rmSync(path.join(workspace, "d1"), { recursive: true });
      for (const [name, text] of Object.entries(present(seed + 30)))
        if (!name.startsWith("d1/")) await place.write(`work/${name}`, text);
      for (let at = 0; at < 12; at += 1) await place.write(`work/new${at % 3}/f${at}`, `${at}`);
      symlinkSync("d0", path.join(workspace, "link"));
      giveTo(workspace);
    });
  }
  const made = pictureOf(workspace);
  const redoes = dice.below(3) === 0;
  if (redoes) {
    using store = open(place);
    await undone(store, { id, steps });
  }
  const moment = dice.moment({ steps: 270, ms: 90 });
  const { ended } = await killed(WRITER, [redoes ? "redo" : "undo", stateDir, workspace, id], moment);
  if (!ended) tally.cut += 1;
  const told = JSON.stringify({ seed, redoes, moment });
  assertNothingHalf(workspace, before, made);
  const user = dice.below(3) === 0 ? usersLine(workspace, dice) : undefined;
  using store = open(place);
  countSeen(tally, hasJournal(store.folder) ? "in the middle" : "before or after");
  await finishUndo(store, () => steps);
  if (user === undefined) assertOneOf(pictureOf(workspace), [before, made], told);
  await undone(store, { id, steps }, user !== undefined);
  assert.equal(hasJournal(store.folder), false, told);
  assertTidy(workspace, told);
  if (user === undefined) assert.deepEqual(pictureOf(workspace), before, told);
  else assertKept(user, told);
}

type Stepped = Pick<Session, "id" | "steps">;

const undone = (store: CheckpointStore, { id, steps }: Stepped, skip = false): Promise<unknown> =>
  undo(store, { session: id, steps, target: 0, redo: false, dryRun: false, skip });

function assertOneOf(
  is: Readonly<Record<string, string>>,
  pictures: readonly Readonly<Record<string, string>>[],
  told: string,
): void {
  if (pictures.some((picture) => isDeepStrictEqual(is, picture))) return;
  for (const picture of pictures) {
    const names = new Set([...Object.keys(is), ...Object.keys(picture)]);
    const other = [...names].filter((name) => is[name] !== picture[name]);
    noteOther(other, told);
  }
  assert.fail(`neither before nor after, ${told}`);
}

const noteOther = (names: readonly string[], told: string): void =>
  void process.stderr.write(`other, ${told}: ${names.join(" ")}\n`);

/** Checks that everything belongs to the workspace's owner and that no temporary file is left. */
function assertTidy(workspace: string, told: string): void {
  assert.deepEqual(ownersIn(workspace), [], told);
  const names = readdirSync(workspace, { recursive: true, encoding: "utf8" });
  assert.deepEqual(
    names.filter((name) => name.includes(".harness-")),
    [],
    told,
  );
}

/** Writes into a file, as somebody else, before the interrupted work is finished. */
function usersLine(workspace: string, dice: Dice): string | undefined {
  const names = readdirSync(workspace, { recursive: true, encoding: "utf8" }).filter(
    // The listing also follows links.
    (name) => !/\.harness-|^(?:link|flips)\//.test(name) && lstatSync(path.join(workspace, name)).isFile(),
  );
  if (names.length === 0) return undefined;
  const file = path.join(workspace, dice.oneOf(names as [string]));
  appendFileSync(file, "\nthe user's line\n");
  return file;
}

const FILES = 8;
/** Checks that what somebody else wrote in between is there, whatever became of the rest. */
function assertKept(file: string, told: string): void {
  const text =
    lstatSync(file, { throwIfNoEntry: false })?.isFile() === true ? readFileSync(file, "utf8") : "gone";
  assert.match(text, /^the user's line$/m, `${file}: ${JSON.stringify(text.slice(-60))}, ${told}`);
}

const APPLIER = "fixtures/apply-writer.ts";

export function fill(root: string, files: number): void {
  for (const folder of [".git/refs", "old", "same", "flips"])
    mkdirSync(path.join(root, folder), { recursive: true });
  for (let at = 0; at < files; at += 1) {
    writeFileSync(path.join(root, `old/${at}`), `${at}\n`.repeat(at));
    writeFileSync(path.join(root, `same/${at}`), `${at}\n`);
    writeFileSync(path.join(root, `.git/refs/${at}`), `${at}\n`);
  }
}

export function edit(root: string, files: number): void {
  rmSync(path.join(root, "old"), { recursive: true });
  rmSync(path.join(root, "flips"), { recursive: true });
  symlinkSync("same", path.join(root, "flips"));
  mkdirSync(path.join(root, "new/empty"), { recursive: true });
  for (let at = 0; at < files; at += 1) {
    writeFileSync(path.join(root, `new/${at}`), "x".repeat(at * 1000), {
      mode: at % 2 === 0 ? 0o755 : 0o600,
    });
    writeFileSync(path.join(root, `same/${at}`), `${at}\nmore\n`);
    writeFileSync(path.join(root, `.git/refs/${at}`), `new ${at}\n`);
  }
}

/** Applies a layer, killed in the middle; the next process finishes it and applies the rest. */
export async function applyLife(dice: Dice, kills: number, tally: Tally): Promise<void> {
  for (let kill = 0; kill < kills; kill += 1) await appliedOnce(dice, tally);
}

async function appliedOnce(dice: Dice, tally: Tally): Promise<void> {
  await using place = await scratch();
  const [stateDir, workspace, seen] = [place.at("state"), place.at("work"), place.at("seen")];
  mkdirSync(workspace);
  fill(workspace, FILES);
  giveTo(workspace);
  cpSync(workspace, seen, { recursive: true, verbatimSymlinks: true });
  using sessions = openStore(stateDir);
  const { id, steps } = sessions.create({ ...ABOUT, workspace });
  using store = open(place);
  await noteBase(store, id, undefined);
  const before = pictureOf(workspace);
  await sleep(25);
  // Changes from here on are newer than the layer.
  const since = Date.now();
  edit(seen, FILES);
  const after = pictureOf(seen);
  const moment = dice.moment({ steps: 200, ms: 60 });
  const { lines, ended } = await killed(APPLIER, [stateDir, workspace, seen, id], moment);
  if (!ended) tally.cut += 1;
  const told = JSON.stringify(moment);
  if (lines.includes("applied")) assert.deepEqual(pictureOf(workspace), after, told);
  assertNothingHalf(workspace, before, after);
  const user = dice.below(3) === 0 ? usersLine(workspace, dice) : undefined;
  using next = open(place);
  countSeen(tally, hasJournal(next.folder) ? "in the middle" : "before or after");
  await finishUndo(next, () => steps);
  if (user === undefined) assertOneOf(pictureOf(workspace), [before, after], told);
  const rest = await prepareApply(next, { session: id, layer: layerOf(workspace, seen, since) });
  if (user === undefined) assert.deepEqual(rest.refused, [], told);
  await move(next, { session: id, steps }, rest);
  assert.equal(hasJournal(next.folder), false, told);
  assertTidy(workspace, told);
  if (user === undefined) assert.deepEqual(pictureOf(workspace), after, told);
  else assertKept(user, told);
}
