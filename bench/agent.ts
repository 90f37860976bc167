import { spawnSync } from "node:child_process";
import { chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { ground } from "./boxes.ts";
import { type AgentRun, agentRun } from "./agent-run.ts";
import type { Figure, Pair } from "./figure.ts";

/** What harness itself costs in a run: the model answers at once, the commands are trivial, the box is the real one. */

const RUNS = 5;
/** What a turn may take of harness itself, beside its command. */
const TURN_MS = 5;

async function over<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), "harness-bench-"));
  try {
    const workspace = path.join(folder, "work");
    await mkdir(workspace);
    await writeFile(path.join(workspace, "main.js"), "console.log(1);\n");
    if (process.getuid?.() === 0)
      for (const each of [workspace, path.join(workspace, "main.js")]) await chown(each, 1000, 1000);
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** The first one fills caches, and does not count. */
const runs = (turns: number, count = RUNS): Promise<readonly AgentRun[]> =>
  over(async (folder) => {
    const all: AgentRun[] = [];
    for (let run = 0; run <= count; run += 1) all.push(await agentRun(turns, folder));
    return all.slice(1);
  });

function emptyProgram(): number {
  const start = performance.now();
  const { status } = spawnSync(process.execPath, ["-e", ""]);
  if (status !== 0) throw new Error(`an empty program ended with ${status}`);
  return performance.now() - start;
}

/** The same command in a box, without anything around it. */
async function bareCommand(): Promise<number> {
  await using place = await ground();
  await using box = await place.startBox();
  const signal = new AbortController().signal;
  const times: number[] = [];
  for (let run = 0; run < 50; run += 1) {
    const start = performance.now();
    await box.exec(
      { words: ["bash", "-c", `true ${run}`], timeoutMs: 10_000, keep: { head: 1024, tail: 0 } },
      signal,
    );
    times.push(performance.now() - start);
  }
  return median(times);
}

async function firstRequest(): Promise<Pair> {
  const value = median((await runs(1)).map(({ firstMs }) => firstMs));
  const empty = median(Array.from({ length: 9 }, emptyProgram));
  return { value, baseline: empty + 180 };
}

/** Beside the first turn, whose gap holds the start of the box. */
async function turnAt(from: number, to: number): Promise<Pair> {
  const command = await bareCommand();
  const [run] = await runs(100, 1);
  return { value: median(run?.gapsMs.slice(from, to) ?? []), baseline: command + TURN_MS };
}

async function keptPrefix(): Promise<Pair> {
  const [run] = await runs(100, 1);
  const { prompts = [] } = run ?? {};
  const kept = prompts.slice(1).map((prompt, index) => sharedPart(prompts[index] ?? "", prompt));
  return { value: 0.99, baseline: kept.reduce((sum, part) => sum + part, 0) / kept.length };
}

function sharedPart(earlier: string, later: string): number {
  let at = 0;
  while (at < earlier.length && earlier[at] === later[at]) at += 1;
  return at / earlier.length;
}

async function firstTokens(): Promise<Pair> {
  const [run] = await runs(1, 1);
  const [system = "", tools = ""] = run?.prompts[0]?.split("\n") ?? [];
  return { value: Buffer.byteLength(system + tools) / 4, baseline: 1600 };
}

async function memory(turns: number, most: number): Promise<Pair> {
  const all = await runs(turns, 3);
  return { value: median(all.map(({ peakMb }) => peakMb)), baseline: most };
}

export const AGENT: readonly Figure[] = [
  { name: "agent.first-request", unit: "ms", hold: 1, measure: firstRequest },
  { name: "agent.turn-early", unit: "ms", hold: 1, measure: () => turnAt(1, 11) },
  { name: "agent.turn-late", unit: "ms", hold: 1, measure: () => turnAt(90, 100) },
  {
    name: "agent.twenty-turns",
    unit: "ms",
    hold: 1,
    measure: async () => ({ value: median((await runs(20)).map(({ wholeMs }) => wholeMs)), baseline: 500 }),
  },
  { name: "agent.prefix", unit: "part", hold: 1, measure: keptPrefix },
  { name: "agent.first-tokens", unit: "tokens", hold: 1, measure: firstTokens },
  { name: "agent.memory-20", unit: "MB", hold: 1, measure: () => memory(20, 130) },
  { name: "agent.memory-100", unit: "MB", hold: 1, measure: () => memory(100, 150) },
];
