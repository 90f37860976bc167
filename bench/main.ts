/**
 * `npm run bench [-- --only NAME…] [--table]`: prints one JSON line per figure, or a table; exits with 1 if a figure
 * exceeds its limit. Each line includes the machine's load, which shows whether the machine was busy.
 */
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { type Figure, type FigureLine, measureFigure } from "./figure.ts";
import { FIGURES } from "./figures.ts";

const { values: wanted } = parseArgs({
  options: { only: { type: "string", multiple: true }, table: { type: "boolean", default: false } },
});

function chosen(names: readonly string[] | undefined): readonly Figure[] {
  const is = (name: string): boolean =>
    names === undefined || names.some((only) => name === only || name.startsWith(`${only}.`));
  const figures = FIGURES.filter(({ name }) => is(name));
  if (figures.length > 0) return figures;
  throw new Error(
    `no figure ${names?.join(", ") ?? ""}; there are ${FIGURES.map(({ name }) => name).join(", ")}`,
  );
}

const cells = ({ name, unit, ...line }: FigureLine): readonly string[] => [
  line.ok ? "" : "OVER",
  name,
  `${line.ratio}x`,
  `<= ${line.hold}x`,
  line.pairs === 0 ? "" : `${line.spread[0]}-${line.spread[1]} of ${line.pairs}`,
  `${line.value} / ${line.baseline} ${unit}`,
  `against ${line.against}`,
];
const WIDTHS = [4, 40, 9, 9, 22, 28, 0];
const inRow = (words: readonly string[]): string =>
  words.map((word, at) => word.padEnd(WIDTHS[at] ?? 0)).join(" ");

try {
  for (const figure of chosen(wanted.only)) {
    const line = await measureFigure(figure);
    const load = (loadavg()[0] ?? 0) / availableParallelism();
    const busy = load > 1 ? `  (load ${load.toFixed(1)} a processor)` : "";
    const said = wanted.table
      ? inRow(cells(line)).trimEnd() + busy
      : JSON.stringify({ ...line, load: Math.round(load * 100) / 100 });
    process.stdout.write(`${said}\n`);
    if (!line.ok) process.exitCode = 1;
  }
} catch (thrown) {
  process.stderr.write(`error: ${thrown instanceof Error ? thrown.message : String(thrown)}\n`);
  process.exitCode = 2;
}
