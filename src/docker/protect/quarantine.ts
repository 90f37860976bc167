import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import path from "node:path";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { bytesOfText } from "../../core/byte-text.ts";
import { hold } from "./held.ts";
import { move, remove } from "./move.ts";
import { kindOf, look } from "./solid.ts";

/** A planted path that was taken out of the workspace. */
export interface Quarantined {
  /** Where it was. */
  readonly from: string;
  /** Where it is now; null for a FIFO, socket or device, which was removed. */
  readonly to: string | null;
  readonly kind: string;
  /** ISO time. */
  readonly at: string;
  /** The command that puts it back, for a person; empty when there is nothing to put back. */
  readonly takeBack: string;
}

/**
 * Moves planted paths into a private folder of their own below `into` (outside the workspace), with a manifest.json
 * that is written before the first move and after the last. The parent folder of each is held open, so a process in
 * the box that swaps folders for links cannot make the host move something else; what it swaps the last part for
 * is simply what gets moved. Limits: a thing that is recreated at once is found only after the next call, a copy
 * to another file system loses hard links and modes, and off Linux the parent is not held.
 */
export async function quarantine(
  root: string,
  planted: readonly string[],
  into: string,
): Promise<readonly Quarantined[]> {
  if (planted.length === 0) return [];
  await mkdir(into, { recursive: true, mode: 0o700 });
  const at = new Date().toISOString();
  const folder = await mkdtemp(path.join(into, `${at.replaceAll(":", "-")}-`));
  const manifest = (items: readonly unknown[]): Promise<void> =>
    writeFile(path.join(folder, "manifest.json"), `${JSON.stringify({ root, at, items }, undefined, 2)}\n`, {
      mode: 0o600,
    });
  await manifest(planted.map((from, index) => ({ from, to: path.join(folder, inert(index)), at })));
  const moved: Quarantined[] = [];
  try {
    for (const [index, from] of planted.entries()) {
      const item = await takeOut(root, from, path.join(folder, inert(index)));
      if (item !== undefined) moved.push({ ...item, at });
    }
  } finally {
    await manifest(moved);
  }
  return moved;
}

/** Not the name it had: nothing obeys it here. */
const inert = (index: number): string => `item-${index}`;

async function takeOut(root: string, from: string, to: string): Promise<Omit<Quarantined, "at"> | undefined> {
  try {
    await using parent = await hold(root, path.relative(root, path.dirname(from)));
    const entry = parent.entry(path.basename(from));
    const stats = await look(entry);
    if (stats === undefined) return undefined;
    const kind = kindOf(stats);
    if (stats.isFile() || stats.isDirectory() || stats.isSymbolicLink()) {
      await move(entry, to);
      return { from, to, kind, takeBack: `mv -nT -- ${quoted(to)} ${quoted(from)}` };
    }
    await remove(entry);
    return { from, to: null, kind, takeBack: "" };
  } catch (thrown) {
    throw new HarnessError(
      EXIT.sandbox,
      `${from} was made inside the box and could not be moved out of the workspace: ${reasonOf(thrown)}`,
      "look at it and remove it before any program of yours reads that folder",
      thrown,
    );
  }
}

/** One word of a shell, whatever it holds. What a terminal cannot show stands by its bytes, as bash and zsh read them. */
const quoted = (text: string): string =>
  UNSEEN.test(text)
    ? `$'${Array.from(text, byBytes).join("")}'`
    : `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** Controls, directions, invisible characters, line ends of any kind, and bytes that are no UTF-8. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/u;

const byBytes = (character: string): string =>
  UNSEEN.test(character) || /['\\]/.test(character)
    ? [...bytesOfText(character)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")
    : character;
