import { closeSync, constants, openSync, readdirSync, rmSync, writeSync } from "node:fs";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { maskSecrets } from "../core/secrets.ts";
import { readRegularHead } from "../platform/safe-files.ts";
import { makeFolder } from "../platform/folders.ts";

/**
 * What the last processes did, one file of JSON lines for each, for finding out why something happened. A line is in
 * the file as soon as it is written; a kill may cut the last one, and readers skip it. The log never fails: what cannot
 * be written is left out.
 */

export const LEVELS = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];

export const isLevel = (word: string): word is Level => LEVELS.some((level) => level === word);

export type LogFields = Readonly<Record<string, unknown>>;

export interface LogEntry {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly level: Level;
  readonly what: string;
  readonly fields: LogFields;
}

/** Number of processes whose log is kept. */
export const MAX_KEPT = 20;
/** Most bytes of one log; beyond that, only warnings and errors are written, up to as much again. */
export const MAX_BYTES = 256 * 1024;
const MAX_LINE = 8192;
const NAME = /^\d{8}T\d{9}Z-\d+\.jsonl$/;
const OWNER_ONLY = 0o600;

interface Owner {
  readonly folder: string;
  /** When the process began; together with its id, this gives each process one file. */
  readonly began: number;
  readonly pid: number;
}

export class DiagnosticsLog implements Disposable {
  readonly #file: string;
  #descriptor: number | undefined;
  #written = 0;
  #cut = false;

  constructor({ folder, began, pid }: Owner) {
    const stamp = new Date(Math.floor(began)).toISOString().replaceAll(/[-:.]/g, "");
    this.#file = path.join(folder, `${stamp}-${pid}.jsonl`);
    try {
      makeFolder(folder);
      makeRoom(folder, path.basename(this.#file));
      const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;
      this.#descriptor = openSync(this.#file, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, OWNER_ONLY);
    } catch {
      this.#descriptor = undefined;
    }
  }

  add({ at, level, what, fields }: LogEntry): void {
    if (this.#descriptor === undefined) return;
    const isWrong = level === "warn" || level === "error";
    if (this.#written >= (isWrong ? 2 * MAX_BYTES : MAX_BYTES)) {
      if (this.#cut) return;
      this.#cut = true;
      this.#write(lineOf({ at, level: "warn", what: "more than is kept", fields: { bytes: this.#written } }));
      return;
    }
    this.#write(lineOf({ at, level, what, fields }));
  }

  [Symbol.dispose](): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #write(line: Buffer): void {
    if (this.#descriptor === undefined) return;
    try {
      this.#written += writeSync(this.#descriptor, line);
    } catch {
      this[Symbol.dispose]();
    }
  }
}

/** One line whatever the texts contain, without recognisable secrets. */
function lineOf({ at, level, what, fields }: LogEntry): Buffer {
  const json = maskedJson({ at: new Date(Math.floor(at)).toISOString(), level, what, ...fields });
  const line = Buffer.from(`${json}\n`);
  if (line.length <= MAX_LINE) return line;
  const cut = maskedJson({
    at: new Date(Math.floor(at)).toISOString(),
    level,
    what,
    cut: json.slice(0, MAX_LINE / 4),
  });
  return Buffer.from(`${cut}\n`);
}

/** Masks value by value: in the whole line, JSON escapes could hide where a secret begins. */
const maskedJson = (value: LogFields): string =>
  JSON.stringify(value, (_, each: unknown) => (typeof each === "string" ? maskSecrets(each) : each));

/** Removes the oldest logs, so that MAX_KEPT remain with the new one. Files with other names are left alone. */
function makeRoom(folder: string, next: string): void {
  const kept = readdirSync(folder).filter((name) => NAME.test(name) && name !== next);
  for (const name of kept.toSorted().slice(0, Math.max(0, kept.length - MAX_KEPT + 1)))
    rmSync(path.join(folder, name), { force: true });
}

export interface KeptLog {
  readonly name: string;
  readonly entries: readonly LogEntry[];
}

/** The kept logs, newest first. Invalid lines, as a kill leaves them, are skipped. */
export async function keptLogs(folder: string): Promise<readonly KeptLog[]> {
  const names = await readdir(folder).catch(() => []);
  const wanted = names
    .filter((name) => NAME.test(name))
    .toSorted()
    .toReversed()
    .slice(0, MAX_KEPT);
  const texts = await Promise.all(
    wanted.map((name) =>
      readRegularHead(path.join(folder, name), { links: "refuse", max: 3 * MAX_BYTES }).catch(() => ""),
    ),
  );
  return wanted.map((name, at) => ({
    name,
    entries: String(texts[at]).split("\n").flatMap(entryIn),
  }));
}

function entryIn(line: string): readonly LogEntry[] {
  try {
    const { at, level, what, ...fields } = JSON.parse(line) as Record<string, unknown>;
    if (typeof at !== "string" || typeof level !== "string" || typeof what !== "string" || !isLevel(level))
      return [];
    return [{ at: Date.parse(at), level, what, fields }];
  } catch {
    return [];
  }
}

/** For people: time, level, event, and the fields as `name=value`; a stack on separate lines. */
export function entryText({ at, level, what, fields }: LogEntry): string {
  const { stack, ...others } = fields;
  const words = Object.entries(others)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const time = Number.isFinite(at) ? new Date(Math.floor(at)).toISOString().slice(11, 23) : "?";
  const head = [`${time} ${level.padEnd(5)} ${what}`, ...words].join("  ");
  if (typeof stack !== "string" || stack === "") return head;
  return [head, ...stack.split("\n").map((line) => `    ${line.trim()}`)].join("\n");
}
