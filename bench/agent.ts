import { chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type AgentRun, agentRun } from "./agent-run.ts";
import { ground } from "./boxes.ts";
import {
  counted,
  EMPTY,
  emptyPeak,
  emptyProgram,
  type Figure,
  inTurn,
  type Measured,
  paired,
  timed,
} from "./figure.ts";
import { HostSpawner } from "./host-spawn.ts";

/** The cost of harness itself in a run: the model answers at once, the commands are trivial, the box is real. */

/** Prepares a folder. The first run fills caches and does not count. */
async function over<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), "harness-bench-"));
  try {
    const workspace = path.join(folder, "work");
    await mkdir(workspace);
    await writeFile(path.join(workspace, "main.js"), "console.log(1);\n");
    if (process.getuid?.() === 0)
      for (const each of [workspace, path.join(workspace, "main.js")]) await chown(each, 1000, 1000);
    await agentRun(1, folder);
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The command of a turn on the host. */
const turnCommand = (nth: number): readonly string[] => ["bash", "-c", `true ${nth}`];

const firstRequest = (): Promise<Measured> =>
  over((folder) =>
    inTurn(
      15,
      async () => (await agentRun(1, folder)).firstMs,
      () => Promise.resolve(emptyProgram()),
    ),
  );

const TURNS = 100;
const SOME = 10;

/**
 * Pairs each turn with a host spawn, which runs while the run waits for the reply before that turn. The gap of the
 * first turn includes the start of the box.
 */
const turnAt = (from: number, count: number): Promise<Measured> =>
  over(async (folder) => {
    using host = new HostSpawner();
    const gaps: number[] = [];
    const spawns: number[] = [];
    for (let run = 0; run < 2; run += 1) {
      const beside: number[] = [];
      const { gapsMs } = await agentRun(TURNS, folder, async (nth) =>
        beside.push(await host.run(turnCommand(nth))),
      );
      gaps.push(...gapsMs.slice(from, from + count));
      spawns.push(...beside.slice(from, from + count));
    }
    return paired(gaps, spawns);
  });

const MANY = 20;

/** The least that a sandboxed run of so many commands can cost: a program, a container, and the commands. */
const twentyTurns = (): Promise<Measured> =>
  over(async (folder) => {
    await using place = await ground();
    using host = new HostSpawner();
    const least = async (): Promise<number> => {
      const container = await timed(async () => (await place.startBare()).remove({ force: true }));
      let spawns = 0;
      for (let nth = 0; nth < MANY; nth += 1) spawns += await host.run(turnCommand(nth));
      return emptyProgram() + container + spawns;
    };
    return await inTurn(9, async () => (await agentRun(MANY, folder)).wholeMs, least);
  });

/** From the last reply to the exit: the run is done, but its box still exists. */
const end = (): Promise<Measured> =>
  over(async (folder) => {
    await using place = await ground();
    const removal = async (): Promise<number> => {
      const bare = await place.startBare();
      return timed(() => bare.remove({ force: true }));
    };
    return await inTurn(15, async () => (await agentRun(2, folder)).endMs, removal);
  });

const aRun = (turns: number): Promise<AgentRun> => over((folder) => agentRun(turns, folder));

async function keptPrefix(): Promise<Measured> {
  const { prompts } = await aRun(TURNS);
  const kept = prompts.slice(1).map((prompt, index) => sharedPart(prompts[index] ?? "", prompt));
  return counted(0.99, kept.reduce((sum, part) => sum + part, 0) / kept.length);
}

function sharedPart(earlier: string, later: string): number {
  let at = 0;
  while (at < earlier.length && earlier[at] === later[at]) at += 1;
  return at / earlier.length;
}

async function firstTokens(): Promise<Measured> {
  const { prompts } = await aRun(1);
  const [system = "", tools = ""] = prompts[0]?.split("\n") ?? [];
  return counted(Buffer.byteLength(system + tools) / 4, 1600);
}

const memory = (turns: number): Promise<Measured> =>
  over((folder) => inTurn(3, async () => (await agentRun(turns, folder)).peakMb, emptyPeak));

const SPAWN = "a host spawn of the same command from Node";

export const AGENT: readonly Figure[] = [
  { name: "agent.first-request", unit: "ms", against: EMPTY, hold: 6, measure: firstRequest },
  { name: "agent.turn-early", unit: "ms", against: SPAWN, hold: 3, measure: () => turnAt(1, SOME) },
  { name: "agent.turn-late", unit: "ms", against: SPAWN, hold: 3, measure: () => turnAt(TURNS - SOME, SOME) },
  {
    name: "agent.twenty-turns",
    unit: "ms",
    against: "an empty program, a bare container's create, start and removal, and twenty host spawns",
    hold: 1.25,
    measure: twentyTurns,
  },
  {
    name: "agent.end",
    unit: "ms from the last reply to the exit",
    against: "the removal of a bare container",
    hold: 1,
    measure: end,
  },
  {
    name: "agent.prefix",
    unit: "part",
    against: "the prompt of the turn before",
    hold: 1,
    measure: keptPrefix,
  },
  { name: "agent.first-tokens", unit: "tokens", against: "what is promised", hold: 1, measure: firstTokens },
  { name: "agent.memory-20", unit: "MB", against: EMPTY, hold: 3, measure: () => memory(MANY) },
  { name: "agent.memory-100", unit: "MB", against: EMPTY, hold: 3.4, measure: () => memory(TURNS) },
];
