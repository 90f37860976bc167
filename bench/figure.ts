/** One figure that the project holds itself to, measured beside its baseline in the same run. */
export interface Figure {
  readonly name: string;
  readonly unit: string;
  /** The ratio value / baseline must not be above this. */
  readonly hold: number;
  readonly measure: () => Promise<{ readonly value: number; readonly baseline: number }>;
}

export interface FigureLine {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  readonly baseline: number;
  readonly ratio: number;
  readonly hold: number;
  readonly ok: boolean;
}

export async function measureFigure({ name, unit, hold, measure }: Figure): Promise<FigureLine> {
  const { value, baseline } = await measure();
  if (!(value > 0) || !(baseline > 0)) throw new Error(`${name}: measured ${value} against ${baseline}`);
  const ratio = value / baseline;
  return {
    name,
    unit,
    value: round(value),
    baseline: round(baseline),
    ratio: round(ratio),
    hold,
    ok: ratio <= hold,
  };
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** Medians of two kinds of work done in turn, so that a drift of the machine's speed hits both alike. */
export async function inTurn(
  runs: number,
  work: () => Promise<number>,
  baseline: () => Promise<number>,
): Promise<{ readonly value: number; readonly baseline: number }> {
  const values: number[] = [];
  const baselines: number[] = [];
  await work();
  await baseline();
  for (let run = 0; run < runs; run += 1) {
    values.push(await work());
    baselines.push(await baseline());
  }
  return { value: median(values), baseline: median(baselines) };
}
