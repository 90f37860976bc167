import * as z from "zod";
import type { AuditVerdict } from "../core/audit.ts";
import { parsedJson } from "../core/text/json-values.ts";
import { beginsAsRecovered, hashIn, hashOfTorn, type Head, linesOf, NONE } from "./audit-chain.ts";

const lineForm = z.looseObject({ kind: z.string(), ts: z.string(), session: z.string(), prev: z.string() });
const recoveredForm = z.object({
  expected: z.object({ lines: z.number(), hash: z.string() }),
  torn: z.string().nullable(),
});
const closedForm = z.object({ lines: z.number(), head: z.string() });

type Line = z.infer<typeof lineForm>;
type Expected = z.infer<typeof recoveredForm>["expected"];

interface CheckedLine {
  /** The line's number in the file, from 1. */
  readonly number: number;
  readonly hash: string;
  readonly ts: string;
  /** For a line written after a kill: what the database knew at that time. */
  readonly expected: Expected | undefined;
}

/** A break of the chain; ends the walk. */
class Broken extends Error {
  readonly line: number;

  constructor(line: number, why: string) {
    super(why);
    this.line = line;
  }
}

/** Checks all lines, and whether the last one is the one that the database knows. */
export function verified(bytes: Buffer, session: string, head: Head): Omit<AuditVerdict, "file"> {
  const { lines } = linesOf(bytes);
  const walk = new Walk(session);
  try {
    for (const line of lines) walk.take(line);
    walk.end(head);
    return { ok: true, lines: lines.length, broken: null, notes: walk.notes };
  } catch (thrown) {
    if (!(thrown instanceof Broken)) throw thrown;
    const broken = { line: thrown.line, why: thrown.message };
    return { ok: false, lines: lines.length, broken, notes: walk.notes };
  }
}

class Walk {
  readonly notes: string[] = [];
  readonly #session: string;
  readonly #checked: CheckedLine[] = [];
  #number = 0;
  /** Torn lines in a row: one for each writer that was killed before completing a line. */
  #torn: readonly Buffer[] = [];
  #open: number | undefined;

  constructor(session: string) {
    this.#session = session;
  }

  take(bytes: Buffer): void {
    this.#number += 1;
    const hash = hashIn(bytes);
    const isTorn = this.#torn.length > 0;
    if (hash === undefined) {
      // No kill leaves an empty line: a line feed only ends a line.
      if (bytes.length === 0) throw this.#foreignLine(this.#number);
      if (isTorn && !beginsAsRecovered(bytes)) throw this.#foreignLine(this.#number - 1);
      this.#torn = [...this.#torn, bytes];
      return;
    }
    const line = this.#read(bytes);
    if (isTorn && line.kind !== "recovered") throw this.#foreignLine(this.#number - 1);
    if (line.prev !== (this.#checked.at(-1)?.hash ?? NONE))
      throw new Broken(this.#number, "the line before it is not the one that it was written after");
    const expected = this.#checkLine(line);
    this.#checked.push({ number: this.#number, hash, ts: line.ts, expected });
  }

  /** Compares the end of the file with what the database knows. */
  end(head: Head): void {
    const unknown = this.#linesBehind(head.lines, head.hash);
    if (unknown > 0)
      this.notes.push(
        `its last lines (${unknown}) are unknown to the database: the run was killed while it wrote them`,
      );
    if (this.#torn.length > 0) this.notes.push("its last line is incomplete: the run was killed");
    else if (this.#open !== undefined)
      this.notes.push(
        `the run that starts at line ${this.#open} has no end: it was killed, or is still running`,
      );
  }

  #read(bytes: Buffer): Line {
    const { data } = lineForm.safeParse(parsedJson(bytes.toString("utf8")));
    if (data === undefined) throw this.#foreignLine(this.#number);
    if (data.session !== this.#session)
      throw new Broken(this.#number, `it belongs to another session: ${data.session}`);
    return data;
  }

  #checkLine(line: Line): Expected | undefined {
    if ((line.kind === "header") !== (this.#number === 1))
      throw new Broken(this.#number, "the header has to be the first line, and the only header");
    if (line.kind === "closed") this.#close(line);
    if (line.kind === "run.started") this.#begin();
    return line.kind === "recovered" ? this.#recover(line) : undefined;
  }

  #begin(): void {
    if (this.#open !== undefined) this.notes.push(`the run that starts at line ${this.#open} was killed`);
    this.#open = this.#number;
  }

  #close(line: Line): void {
    const { data } = closedForm.safeParse(line);
    if (data?.lines !== this.#number - 1 || data.head !== this.#checked.at(-1)?.hash)
      throw new Broken(this.#number, "it closes a run whose lines are not the ones before it");
    this.#open = undefined;
  }

  /** The line that was expected has to exist, and after it only lines of writes that were cut short. */
  #recover(line: Line): Expected {
    const { data } = recoveredForm.safeParse(line);
    if (data === undefined) throw this.#foreignLine(this.#number);
    if (data.torn !== hashOfTorn(this.#torn)) throw this.#foreignLine(this.#number - 1);
    this.#torn = [];
    this.notes.push(`line ${this.#number} continues after a kill`);
    this.#linesBehind(data.expected.lines, data.expected.hash);
    return data.expected;
  }

  /**
   * Returns the number of lines after the given one. They all have to belong to one write that a kill kept from the
   * database, or to several writes killed in a row; then each of those but the first begins with a line that continues
   * from the same place.
   */
  #linesBehind(lines: number, hash: string): number {
    const at = this.#checked.findLastIndex(({ number }) => number === lines);
    const last = this.#checked.at(-1)?.number ?? 0;
    const missing = lines - last === 1 ? "1 line is" : `${lines - last} lines are`;
    if (lines > last) throw new Broken(last + 1, `${missing} missing from here on`);
    if (lines > 0 && this.#checked[at]?.hash !== hash)
      throw new Broken(lines, "it is not the line that the database recorded");
    const unknown = this.#checked.slice(at + 1);
    const isAdded = unknown.some(
      ({ ts, expected }, nth) =>
        nth > 0 && ts !== unknown[nth - 1]?.ts && (expected?.lines !== lines || expected.hash !== hash),
    );
    if (isAdded)
      throw new Broken(
        lines + 1,
        "the lines from here on are unknown to the database: they were added, or power was lost",
      );
    return unknown.length;
  }

  #foreignLine(line: number): Broken {
    return new Broken(line, "it was changed after it was written");
  }
}
