import { chmod } from "node:fs/promises";
import { household } from "../../e2e/box-command.ts";
import type { RunStart } from "../../e2e/run-command.ts";
import { harness, type Ran } from "../../e2e/run-command.ts";
import type { Scratch } from "../../fixtures/scratch.ts";
import { git } from "../../boxes/workspace/repository.ts";
import { giveAway } from "../../fixtures/give-away.ts";

/** Flags for a scripted model that runs these shell lines, one per turn, and then says that it is done. */
async function playing(place: Scratch, ...lines: readonly string[]): Promise<readonly string[]> {
  const calls = lines.map((command) => ({ reply: [{ call: "bash", args: { command } }] }));
  const steps = [...calls, { reply: ["done"], repeat: "forever" }];
  await place.write("model.jsonl", steps.map((step) => JSON.stringify(step)).join("\n"));
  return ["--provider", "scripted", "--model", place.at("model.jsonl"), "--intent", "change", "--no-color"];
}

/** Runs `harness run` with a scripted model over the place's workspace. */
export async function runLines(
  place: Scratch,
  lines: readonly string[],
  flags: readonly string[] = [],
  start: RunStart = {},
): Promise<Ran> {
  const model = await playing(place, ...lines);
  return harness(place, ["run", ...model, ...flags, "do it"], start);
}

/** A household whose workspace is a git repository with one commit of these files. */
export async function committedHousehold(files: Readonly<Record<string, string>> = {}): Promise<Scratch> {
  const place = await household(files);
  const work = place.at("work");
  git("/", "init", "-q", work);
  git(work, "add", "-A");
  git(work, "commit", "-q", "--allow-empty", "-m", "first");
  await chmod(place.path, 0o755);
  await giveAway(work);
  return place;
}
