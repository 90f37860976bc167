import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { readlink } from "node:fs/promises";
import type { AgentEvent } from "../../src/core/events.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { eventsOf, type Ran } from "./run-command.ts";

/** Checks for every way to act: was it judged, did a denial hold, where did it run, was it recorded. */

export type Line = Readonly<Record<string, unknown>>;

/** An attempted act: its records, and whether it was done. */
export interface Attempt {
  /** Lines of the audit about this one call, in order. */
  readonly lines: readonly Line[];
  /** Whether the intended effect happened. */
  readonly done: boolean;
  /** The decision among the run's events, if the run prints them. */
  readonly decided?: Extract<AgentEvent, { readonly type: "call.decided" }> | undefined;
}

/** All lines of all sessions of a home. */
export function auditIn(place: Scratch): readonly Line[] {
  const folder = place.at(".local/state/harness/audit");
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => readFileSync(`${folder}/${name}`, "utf8").trim().split("\n"))
    .map((line) => JSON.parse(line) as Line);
}

const sameCall = (one: Line, other: Line): boolean =>
  (["call", "agent", "run"] as const).every((key) => one[key] === other[key]);

/** The lines of the call whose decision contains this text. */
export function callWith(lines: readonly Line[], text: string): readonly Line[] {
  const decision = lines.find((line) => line["kind"] === "decision" && JSON.stringify(line).includes(text));
  return decision === undefined ? [] : lines.filter((line) => sameCall(line, decision));
}

/** The nth call of the main agent, according to its events. */
export function nthCall(ran: Ran, lines: readonly Line[], nth: number): Omit<Attempt, "done"> {
  const events = eventsOf(ran).filter(({ agent }) => agent === undefined);
  const proposed = events.filter((event) => event.type === "call.proposed");
  const { call = "none", run = "none" } = proposed[nth] ?? {};
  const decided = events.find((event) => event.type === "call.decided" && event.call === call);
  return {
    lines: lines.filter(
      (line) => line["call"] === call && line["run"] === run && line["agent"] === undefined,
    ),
    decided: decided as Attempt["decided"],
  };
}

/** Without the lines about asking a person. */
const steps = (lines: readonly Line[]): readonly Line[] =>
  lines.filter(({ kind }) => ["decision", "call.started", "call.ended"].includes(String(kind)));

const kindsOf = (lines: readonly Line[]): readonly unknown[] => steps(lines).map(({ kind }) => kind);

const rulesIn = ({ rules }: Line): readonly { readonly id: string }[] =>
  rules as readonly { readonly id: string }[];

/**
 * Checks that the act was judged by a named rule, began after the verdict and ended, and that all of this was recorded.
 */
export function assertDone({ lines, done, decided }: Attempt, contained = true): void {
  const shown = JSON.stringify(lines, null, 1);
  assert.deepEqual(kindsOf(lines), ["decision", "call.started", "call.ended"], shown);
  const [decision = {}] = steps(lines);
  assert.deepEqual([decision["runs"], decision["contained"]], [true, contained], shown);
  assert.notEqual(rulesIn(decision).length, 0, shown);
  assert.ok(done, `it was not done: ${shown}`);
  if (decided !== undefined) assert.deepEqual(decided.rules, decision["rules"]);
}

/** Checks that a user's rule denied the act: it did not begin, had no effect, and the refusal was recorded. */
export function assertDenied({ lines, done, decided }: Attempt): void {
  const shown = JSON.stringify(lines, null, 1);
  assert.deepEqual(kindsOf(lines), ["decision", "call.ended"], shown);
  const [decision = {}, ended = {}] = steps(lines);
  assert.deepEqual([decision["decision"], decision["runs"], ended["how"]], ["deny", false, "denied"], shown);
  assert.match(rulesIn(decision)[0]?.id ?? "", /^user\./, shown);
  assert.ok(!done, `it was done all the same: ${shown}`);
  if (decided !== undefined) assert.deepEqual([decided.decision, decided.runs], ["deny", false]);
}

/** A command that records where it ran. */
export const mark = (file: string): string => `{ hostname; id -u; readlink /proc/self/ns/mnt; } > ${file}`;

/** Checks that `mark` ran in a box: its host name, its user, and a mount namespace other than ours. */
export async function assertOfBox(text: string): Promise<void> {
  const [name, user, view] = text.trim().split("\n");
  assert.deepEqual([name, user], ["sandbox", "1000"]);
  assert.match(view ?? "", /^mnt:\[\d+\]$/);
  assert.notEqual(view, await readlink("/proc/self/ns/mnt"));
}
