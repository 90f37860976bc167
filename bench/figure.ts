import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** A measurement with its baseline from the same run. */
export interface Measured {
  readonly value: number;
  readonly baseline: number;
  /** The number of measured pairs behind these values. */
  readonly pairs: number;
  /** Quartiles of the ratios of single pairs: how far the figure can be trusted. */
  readonly spread: readonly [low: number, high: number];
}

/** A figure with a limit, measured together with its baseline in the same run. */
export interface Figure {
  readonly name: string;
  readonly unit: string;
  /** Describes the baseline. */
  readonly against: string;
  /** The maximum for the ratio value / baseline. */
  readonly hold: number;
  readonly measure: () => Promise<Measured>;
}

export interface FigureLine extends Measured {
  readonly name: string;
  readonly unit: string;
  readonly against: string;
  readonly ratio: number;
  readonly hold: number;
  readonly ok: boolean;
}

/** Units of counts, which are the same on every machine and need no measured baseline. */
export const COUNTS: ReadonlySet<string> = new Set(["tokens", "part", "of 10"]);

export async function measureFigure({ measure, ...figure }: Figure): Promise<FigureLine> {
  const { name, unit, against, hold } = figure;
  const { value, baseline, pairs, spread } = await measure();
  if (!(value > 0) || !(baseline > 0)) throw new Error(`${name}: measured ${value} against ${baseline}`);
  if (pairs === 0 && !COUNTS.has(unit)) throw new Error(`${name}: ${unit} against nothing that was measured`);
  const ratio = value / baseline;
  return {
    name,
    unit,
    against,
    value: round(value),
    baseline: round(baseline),
    ratio: round(ratio),
    spread: [round(spread[0]), round(spread[1])],
    pairs,
    hold,
    ok: ratio <= hold,
  };
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

/** The value below which this fraction of the values lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * part;
  const [low = Number.NaN, high = low] = sorted.slice(Math.floor(place), Math.floor(place) + 2);
  return low + (high - low) * (place - Math.floor(place));
}

/** Summarizes measurements taken in turn. A constant baseline is rejected: it was not measured. */
export function paired(values: readonly number[], baselines: readonly number[], part = 0.5): Measured {
  if (values.length !== baselines.length || values.length < 3)
    throw new Error(`${values.length} values beside ${baselines.length}`);
  if (new Set(baselines).size === 1) throw new Error(`the baseline is always ${baselines[0]}: not measured`);
  const ratios = values.map((value, at) => value / (baselines[at] ?? Number.NaN));
  return {
    value: quantile(values, part),
    baseline: quantile(baselines, part),
    pairs: values.length,
    spread: [quantile(ratios, 0.25), quantile(ratios, 0.75)],
  };
}

/** A count compared with its maximum; never for a time. */
export const counted = (value: number, most: number): Measured => ({
  value,
  baseline: most,
  pairs: 0,
  spread: [value / most, value / most],
});

/**
 * Measures two kinds of work in turn, so that a drift of the machine's speed affects both alike; returns the median of
 * each, or another quantile. The first run of each is a warm-up and does not count.
 */
export async function inTurn(
  runs: number,
  work: () => Promise<number>,
  baseline: () => Promise<number>,
  part = 0.5,
): Promise<Measured> {
  const values: number[] = [];
  const baselines: number[] = [];
  await work();
  await baseline();
  for (let run = 0; run < runs; run += 1) {
    values.push(await work());
    baselines.push(await baseline());
  }
  return paired(values, baselines, part);
}

export const EMPTY = "an empty program on the same Node";

/** Milliseconds that the smallest possible program takes. */
export function emptyProgram(): number {
  const start = performance.now();
  const { status } = spawnSync(process.execPath, ["-e", ""]);
  if (status !== 0) throw new Error(`an empty program ended with ${status}`);
  return performance.now() - start;
}

/** The peak memory of this process in MiB. Its resource usage would also include the process it was forked from. */
export const ownPeak = (): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) / 1024;

/** The peak memory of an empty program in MiB. */
export function emptyPeak(): Promise<number> {
  const said = 'console.log(/VmHWM:\\s+(\\d+)/.exec(fs.readFileSync("/proc/self/status", "utf8"))[1] / 1024)';
  const { stdout } = spawnSync(process.execPath, ["-e", said], { encoding: "utf8" });
  return Promise.resolve(Number(stdout));
}

/** Milliseconds that the work takes. */
export async function timed(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
