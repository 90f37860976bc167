import { cp } from "node:fs/promises";
import path from "node:path";
import type { AgentEvent } from "../../src/core/events.ts";
import { giveAway } from "../fixtures/give-away.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household, sandboxExec } from "./box-command.ts";
import { ROOT } from "./package.ts";
import { type AskedChat, finishedOf, harness, type Ran, type Said, startModel } from "./run-command.ts";
import { resultsIn } from "./run-requests.ts";

/** A small real task: a project, the model's steps turn by turn, and the result. */

/** A home with a copy of a project of test/fixtures/tasks as its workspace. */
export async function project(name: string, files: Readonly<Record<string, string>> = {}): Promise<Scratch> {
  const place = await household();
  await cp(path.join(ROOT, "test/fixtures/tasks", name), place.at("work"), { recursive: true });
  for (const [file, text] of Object.entries(files)) await place.write(`work/${file}`, text);
  await giveAway(place.at("work"));
  return place;
}

/** The next step: unconditional, or only if the last result shows what it expects. */
export type Step = Said | readonly [sees: RegExp, then: Said | (() => Said)];

interface Work {
  readonly task: string;
  readonly steps: readonly Step[];
  readonly flags?: readonly string[];
  /** Use a model on another machine. */
  readonly away?: boolean;
}

interface WorkResult {
  readonly ran: Ran;
  readonly code: number | null;
  readonly answer: string | null;
  readonly finished: Extract<AgentEvent, { readonly type: "run.finished" }>;
  /** Results of all tools, in order. */
  readonly results: readonly string[];
  readonly asked: readonly AskedChat[];
}

/**
 * Runs `harness run` over a workspace. A step that does not see what it expects ends the run, and the answer says so.
 */
export async function work(
  place: Scratch,
  { task, steps, flags = [], away = false }: Work,
): Promise<WorkResult> {
  await using model = await startModel((chat, nth) => stepReply(steps[nth], resultsIn(chat).at(-1) ?? ""));
  const ran = await harness(place, [
    "run",
    "--json",
    ...(away ? model.cloudFlags : model.flags),
    ...flags,
    task,
  ]);
  const finished = finishedOf(ran);
  const asked = model.asked();
  return { ran, code: ran.code, answer: finished.answer, finished, results: resultsIn(asked.at(-1)), asked };
}

function stepReply(step: Step | undefined, seen: string): Said {
  if (step === undefined) return { text: "There was one more request than there are steps." };
  if (!isSeeing(step)) return step;
  const [sees, then] = step;
  if (!sees.test(seen)) return { text: `I wait for ${sees.source}, and there is:\n${seen.slice(-2000)}` };
  return typeof then === "function" ? then() : then;
}

const isSeeing = (step: Step): step is Extract<Step, readonly unknown[]> => Array.isArray(step);

export const call = (name: string, args: Readonly<Record<string, unknown>>): Said => ({
  calls: [[name, args]],
});
export const read = (file: string): Said => call("read_file", { path: file });
export const bash = (command: string): Said => call("bash", { command });
export const edit = (file: string, old: string, young: string): Said =>
  call("edit_file", { path: file, old, new: young });
/** Combines the calls of several replies. */
export const together = (...said: readonly Said[]): Said => ({
  calls: said.flatMap(({ calls = [] }) => calls),
});
export const DONE: Said = { text: "It is done." };

/** Runs one of the project's commands in a separate box: its exit code and its output. */
export async function inBox(place: Scratch, command: string): Promise<readonly [number | null, string]> {
  const { code, stdout, stderr } = await sandboxExec(place, ["--", "sh", "-c", command]);
  return [code, `${stdout.toString()}${stderr}`];
}
