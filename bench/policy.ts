import { parse } from "unbash";
import { CommandPolicy } from "../src/policy/decide.ts";
import { HOME, judgedIn, WORKSPACE } from "../test/fixtures/policy/corpus.ts";
import { type Figure, type Measured, paired, quantile } from "./figure.ts";

/** The time to judge a command, compared with one of the policy's two parsers alone on the same commands. */

const CONTEXT = { mode: "workspace-write", workspace: WORKSPACE, home: HOME } as const;
const ROUNDS = 20;
const READER = "unbash alone on the same commands";

const sample = (): readonly string[] => judgedIn("sample.jsonl").map(({ cmd }) => cmd);

function micros(work: () => unknown): number {
  const start = performance.now();
  work();
  return (performance.now() - start) * 1000;
}

/**
 * Runs policy and parser on every command in turn, for `rounds` rounds after a warm-up of half as many. The median of
 * the rounds counts for each command, to exclude other work of the machine.
 */
function judged(commands: readonly string[], rounds: number, part: number | "mean"): Promise<Measured> {
  const policy = new CommandPolicy();
  const all = commands.map(() => ({ values: [] as number[], baselines: [] as number[] }));
  for (let round = 0; round < rounds * 1.5; round += 1)
    for (const [at, command] of commands.entries()) {
      const value = micros(() => policy.decide(command, CONTEXT));
      const baseline = micros(() => parse(command));
      if (round < rounds / 2) continue;
      all[at]?.values.push(value);
      all[at]?.baselines.push(baseline);
    }
  const values = all.map((times) => quantile(times.values, 0.5));
  const baselines = all.map((times) => quantile(times.baselines, 0.5));
  const measured = paired(values, baselines, part === "mean" ? 0.5 : part);
  if (part !== "mean") return Promise.resolve(measured);
  return Promise.resolve({ ...measured, value: mean(values), baseline: mean(baselines) });
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, each) => sum + each, 0) / values.length;

const STAGES = 20;

/** A thousand different pipelines of twenty commands each. */
function pipelines(): readonly string[] {
  const commands = sample().filter((cmd) => /^[\w ./-]+$/.test(cmd));
  return Array.from({ length: 1000 }, (_, line) =>
    Array.from({ length: STAGES }, (_, stage) => commands[(line * 7 + stage * 13) % commands.length]).join(
      " | ",
    ),
  );
}

const SIZE = 64 * 1024;
/** The number of texts over which the baseline spreads the same bytes. */
const PARTS = 8;
const TRIES = 5;
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

/**
 * The worst of several texts of maximum length and depth, compared with the same bytes in eight texts: quadratic work
 * takes eight times as long in one text.
 */
function hostile(): Promise<Measured> {
  const policy = new CommandPolicy();
  const all = NESTS.map((unit) => {
    const [whole, part] = [SIZE, SIZE / PARTS].map((size) => unit.repeat(size / unit.length));
    const values: number[] = [];
    const baselines: number[] = [];
    for (let round = 0; round <= TRIES; round += 1) {
      const value = micros(() => policy.decide(whole ?? "", CONTEXT));
      const baseline = micros(() => {
        for (let each = 0; each < PARTS; each += 1) policy.decide(part ?? "", CONTEXT);
      });
      if (round === 0) continue;
      values.push(value / 1000);
      baselines.push(baseline / 1000);
    }
    return paired(values, baselines, 0);
  });
  const [worst] = all.toSorted((one, other) => ratio(other) - ratio(one));
  if (worst === undefined) throw new Error("no hostile text");
  return Promise.resolve(worst);
}

const ratio = ({ value, baseline }: Measured): number => value / baseline;

const figure = (name: string, hold: number, measure: () => Promise<Measured>): Figure => ({
  name,
  unit: "us",
  against: READER,
  hold,
  measure,
});

const perStage = async (part: number): Promise<Measured> => {
  const { value, baseline, ...more } = await judged(pipelines(), 3, part);
  return { ...more, value: value / STAGES, baseline: baseline / STAGES };
};

export const POLICY: readonly Figure[] = [
  figure("policy.p50", 10, () => judged(sample(), ROUNDS, 0.5)),
  figure("policy.p99", 10, () => judged(sample(), ROUNDS, 0.99)),
  figure("policy.mean", 10, () => judged(sample(), ROUNDS, "mean")),
  figure("policy.pipelines.p50", 10, () => perStage(0.5)),
  figure("policy.pipelines.p99", 10, () => perStage(0.99)),
  {
    name: "policy.hostile",
    unit: "ms",
    against: "the same 64 KiB in eight texts, for the worst of the texts",
    hold: 1.5,
    measure: hostile,
  },
];
