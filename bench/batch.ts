import { spawn } from "node:child_process";
import { chown, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Figure, inTurn, type Measured, paired } from "./figure.ts";
import { LAUNCHER } from "./startup.ts";

/** The overhead of `harness batch`: its rows, compared with the same runs started by hand, with equal concurrency. */

const ROWS = 8;
const PAIRS = 3;

interface BatchFolders {
  readonly home: string;
  readonly rows: string;
  readonly flags: readonly string[];
  readonly folders: readonly string[];
}

const TASK = "Change the notes.";
const REPLIES = [
  { reply: [{ call: "bash", args: { command: "echo two >> notes.txt" } }] },
  { reply: ["It is done."] },
];

const lines = (values: readonly object[]): string =>
  values.map((value) => `${JSON.stringify(value)}\n`).join("");

async function withRows<T>(work: (ground: BatchFolders) => Promise<T>): Promise<T> {
  const home = await mkdtemp(path.join(tmpdir(), "harness-bench-"));
  try {
    const folders = Array.from({ length: ROWS }, (_, at) => path.join(home, `row${at}`));
    for (const folder of folders) {
      await mkdir(folder);
      await writeFile(path.join(folder, "notes.txt"), "one\n");
      if (process.getuid?.() === 0)
        for (const each of [folder, path.join(folder, "notes.txt")]) await chown(each, 1000, 1000);
    }
    const rows = path.join(home, "rows.jsonl");
    const model = path.join(home, "model.jsonl");
    await writeFile(rows, lines(folders.map((dir) => ({ dir, prompt: TASK }))));
    await writeFile(model, lines(REPLIES));
    return await work({ home, rows, folders, flags: ["--provider", "scripted", "--model", model] });
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

interface ProcessTotals {
  readonly ms: number;
  /** Peak memory of the process itself. */
  readonly peakMb: number;
}

const POLL_MS = 50;

/** Runs a harness command to its end. */
async function runHarness(words: readonly string[], home: string): Promise<ProcessTotals> {
  const start = performance.now();
  const env = { PATH: process.env["PATH"], HOME: home };
  const child = spawn(LAUNCHER, words, { cwd: home, env, stdio: "ignore" });
  const state = { peak: 0 };
  const look = async (): Promise<void> => {
    const status = await readFile(`/proc/${child.pid}/status`, "utf8").catch(() => "");
    const kB = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]);
    if (kB > 0) state.peak = Math.max(state.peak, kB / 1024);
  };
  const poll = setInterval(() => void look(), POLL_MS);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject).once("exit", resolve);
  });
  clearInterval(poll);
  if (code !== 0) throw new Error(`harness ${words[0]} ended with ${code}`);
  return { ms: performance.now() - start, peakMb: state.peak };
}

async function batch({ home, rows, flags }: BatchFolders, jobs: number): Promise<ProcessTotals> {
  const out = path.join(home, "out");
  await rm(out, { recursive: true, force: true });
  return runHarness(["batch", rows, "--quiet", "--jobs", String(jobs), "--out", out, ...flags], home);
}

const run = ({ home, flags }: BatchFolders, folder: string): Promise<ProcessTotals> =>
  runHarness(["run", "--quiet", "--isolation", "overlay", "--cwd", folder, ...flags, TASK], home);

/** The same runs as the batch, with the same concurrency. */
async function byHand(ground: BatchFolders, jobs: number): Promise<number> {
  const start = performance.now();
  const left = [...ground.folders];
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await run(ground, next);
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  return performance.now() - start;
}

const time = (jobs: number): Promise<Measured> =>
  withRows((ground) =>
    inTurn(
      PAIRS,
      async () => (await batch(ground, jobs)).ms,
      () => byHand(ground, jobs),
    ),
  );

/** Memory of the batch process per running run: the peak with all runs at once, minus the peak with one at a time. */
const memory = (): Promise<Measured> =>
  withRows(async (ground) => {
    const grown: number[] = [];
    const ofRuns: number[] = [];
    for (let pair = 0; pair < PAIRS; pair += 1) {
      const [one, all] = [await batch(ground, 1), await batch(ground, ROWS)];
      grown.push(Math.max(0.01, (all.peakMb - one.peakMb) / (ROWS - 1)));
      ofRuns.push((await run(ground, ground.folders[0] ?? "")).peakMb);
    }
    return paired(grown, ofRuns);
  });

const side = (jobs: number): string => (jobs === 1 ? "one after the other" : `${jobs} at a time`);

export const BATCH: readonly Figure[] = [
  ...[1, 2, 4, ROWS].map((jobs) => ({
    name: `batch.jobs${jobs}`,
    unit: "ms",
    against: `the same runs started by hand, ${side(jobs)}`,
    hold: 1.6,
    measure: () => time(jobs),
  })),
  {
    name: "batch.memory",
    unit: "MB",
    against: "the process of a run",
    hold: 0.15,
    measure: memory,
  },
];
