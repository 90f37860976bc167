import { CommandPolicy } from "../src/policy/decide.ts";
import { HOME, judgedIn, WORKSPACE } from "../test/fixtures/policy/corpus.ts";
import type { Figure, Pair } from "./figure.ts";
import { againstEmptyProgram } from "./startup.ts";

const CONTEXT = { mode: "workspace-write", workspace: WORKSPACE, home: HOME } as const;
const ROUNDS = 100;

/** Times of single judgements in microseconds, sorted, after as many rounds to warm up. */
function timesOf(commands: readonly string[], rounds: number): Float64Array {
  const policy = new CommandPolicy();
  for (let round = 0; round < rounds / 2; round += 1)
    for (const command of commands) policy.decide(command, CONTEXT);
  const times = new Float64Array(commands.length * rounds);
  let at = 0;
  for (let round = 0; round < rounds; round += 1)
    for (const command of commands) {
      const start = performance.now();
      policy.decide(command, CONTEXT);
      times[at++] = (performance.now() - start) * 1000;
    }
  return times.toSorted();
}

const part = (times: Float64Array, share: number): number =>
  times[Math.floor((times.length - 1) * share)] ?? 0;
const sample = (): readonly string[] => judgedIn("sample.jsonl").map(({ cmd }) => cmd);

/** The baseline is the figure to hold itself. */
const held = (value: number, baseline: number): Promise<Pair> => Promise.resolve({ value, baseline });

function perCommand(): number {
  const commands = sample();
  const times = timesOf(commands, ROUNDS);
  return times.reduce((sum, time) => sum + time, 0) / times.length;
}

const STAGES = 20;

/** A thousand pipelines of twenty commands each, all different. */
function pipelines(): readonly string[] {
  const commands = sample().filter((cmd) => /^[\w ./-]+$/.test(cmd));
  return Array.from({ length: 1000 }, (_, line) =>
    Array.from({ length: STAGES }, (_, stage) => commands[(line * 7 + stage * 13) % commands.length]).join(
      " | ",
    ),
  );
}

const SIZE = 64 * 1024;
const NESTS = [
  "(",
  "$(",
  "`",
  "{a,",
  '"',
  "$((",
  "${a:-",
  "<(",
  "if ",
  "{ ",
  "a ",
  "ls;",
  "ls|",
  ">a ",
  "a=b ",
  "cat */",
  "env ",
  "cd x || ",
];

/** The slowest of texts that are as long and as deep as one may be; the best of three, as a warm program meets them. */
function slowestHostile(): number {
  const policy = new CommandPolicy();
  const texts = NESTS.map((unit) => unit.repeat(SIZE / unit.length));
  const slowest = texts.map((text) => {
    const tries = Array.from({ length: 3 }, () => {
      const start = performance.now();
      policy.decide(text, CONTEXT);
      return performance.now() - start;
    });
    return Math.min(...tries);
  });
  return Math.max(...slowest);
}

export const POLICY: readonly Figure[] = [
  { name: "policy.p50", unit: "us", hold: 1, measure: () => held(part(timesOf(sample(), ROUNDS), 0.5), 40) },
  {
    name: "policy.p99",
    unit: "us",
    hold: 1,
    measure: () => held(part(timesOf(sample(), ROUNDS), 0.99), 400),
  },
  { name: "policy.mean", unit: "us", hold: 1, measure: () => held(perCommand(), 1e6 / 15_000) },
  {
    name: "policy.pipelines.p50",
    unit: "us",
    hold: 1,
    measure: () => held(part(timesOf(pipelines(), 10), 0.5) / STAGES, 40),
  },
  {
    name: "policy.pipelines.p99",
    unit: "us",
    hold: 1,
    measure: () => held(part(timesOf(pipelines(), 10), 0.99) / STAGES, 400),
  },
  { name: "policy.hostile", unit: "ms", hold: 1, measure: () => held(slowestHostile(), 50) },
  // A process that loads the grammar and the tables, and judges once.
  {
    name: "policy.load",
    unit: "ms",
    hold: 4.5,
    measure: () => againstEmptyProgram(["policy", "check", "--", "ls"]),
  },
];
