/** One number beside what it is measured against. */
export interface Pair {
  readonly value: number;
  readonly baseline: number;
}

/** One figure that the project holds itself to, measured beside its baseline in the same run. */
export interface Figure {
  readonly name: string;
  readonly unit: string;
  /** The ratio value / baseline must not be above this. */
  readonly hold: number;
  readonly measure: () => Promise<Pair>;
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

/** The value below which this part of them lies. */
function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * part;
  const [low = Number.NaN, high = low] = sorted.slice(Math.floor(place), Math.floor(place) + 2);
  return low + (high - low) * (place - Math.floor(place));
}

/** Medians (or another part) of two kinds of work done in turn, so that a drift of the machine's speed hits both alike. */
export async function inTurn(
  runs: number,
  work: () => Promise<number>,
  baseline: () => Promise<number>,
  part = 0.5,
): Promise<Pair> {
  const values: number[] = [];
  const baselines: number[] = [];
  await work();
  await baseline();
  for (let run = 0; run < runs; run += 1) {
    values.push(await work());
    baselines.push(await baseline());
  }
  return { value: quantile(values, part), baseline: quantile(baselines, part) };
}
