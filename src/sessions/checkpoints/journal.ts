import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import type { Op } from "./plan.ts";

/** An undo that has begun: enough to finish it when it is killed. */
export interface Journal {
  readonly session: string;
  readonly step: number;
  /** The tree before it. */
  readonly before: string;
  /** Nothing of what was to be undone is left out. */
  readonly whole: boolean;
  readonly aside: string;
  /** Left out: an undo, or a redo. */
  readonly what?: "apply";
  readonly ops: readonly Op[];
}

const fileIn = (folder: string): string => path.join(folder, "journal");

export const hasJournal = (folder: string): boolean => existsSync(fileIn(folder));

/** Durable and whole, or not there. */
export function writeJournal(folder: string, journal: Journal): void {
  const aside = `${fileIn(folder)}.new`;
  const descriptor = openSync(aside, "w", 0o600);
  try {
    writeFileSync(descriptor, JSON.stringify(journal));
    fsyncSync(descriptor);
  } catch (thrown) {
    rmSync(aside, { force: true });
    throw thrown;
  } finally {
    closeSync(descriptor);
  }
  renameSync(aside, fileIn(folder));
}

export function readJournal(folder: string): Journal | undefined {
  if (!hasJournal(folder)) return undefined;
  return JSON.parse(readFileSync(fileIn(folder), "utf8")) as Journal;
}

export const dropJournal = (folder: string): void => rmSync(fileIn(folder), { force: true });
