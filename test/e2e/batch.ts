import { rowResultForm, type RowResult } from "../../src/render/batch-results.ts";
import type { BatchTotals } from "../../src/render/batch-results.ts";
import { giveAway } from "../fixtures/give-away.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import type { AskedChat, Ran, Said } from "./run-command.ts";

/** Runs `harness batch` over a few folders, with a model that does what each task says. */

/** A home with folders for rows, each with one file. */
export async function folders(...names: readonly string[]): Promise<Scratch> {
  const place = await household();
  for (const name of names) await place.write(`${name}/notes.txt`, "one\n");
  for (const name of names) await giveAway(place.at(name));
  return place;
}

export const rowsText = (rows: readonly object[]): string =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join("");

/** Runs the text after `do:` in the task as a command; then the model says that it is done. */
export const replies = ({ messages }: AskedChat): Said => {
  const command = taskOf(messages.map(({ content }) => content).join("\n"));
  const last = messages.at(-1);
  if (last?.role === "tool") return { text: "It is done.", tokens: [100, 10] };
  return { calls: [["bash", { command }]], tokens: [100, 10] };
};

const taskOf = (text: string): string => /do: (.*)/.exec(text)?.[1] ?? "true";

/** The rows in the order in which they were reported, and the last line. */
export function batchOf({ stdout, stderr }: Ran): {
  readonly rows: readonly RowResult[];
  readonly whole: BatchTotals;
} {
  const lines = stdout.split("\n").filter((line) => line !== "");
  const last = lines.pop();
  if (last === undefined) throw new Error(`nothing was told: ${stderr}`);
  const whole = JSON.parse(last) as BatchTotals;
  if (whole.type !== "batch.finished") throw new Error(`the last line is ${last}\n${stderr}`);
  return { rows: lines.map((line) => rowResultForm.parse(JSON.parse(line))), whole };
}
