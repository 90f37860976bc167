/**
 * `npm run bench [-- --only NAME… --table]`: prints one JSON line per figure, or a table; exits with 1 if a figure
 * exceeds its limit. Each line includes the machine's load, which shows whether the machine was busy.
 */
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { type Figure, type FigureLine, measureFigure } from "./figure.ts";
import { FIGURES } from "./figures.ts";

/** `--only` takes every name, or beginning of names, up to the next flag; without a name all figures are measured. */
function readWords(): { readonly only: readonly string[]; readonly table: boolean } {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { only: { type: "string", multiple: true }, table: { type: "boolean", default: false } },
  });
  const { only = [], table } = values;
  if (only.length === 0 && positionals.length > 0)
    throw new Error(`${positionals.join(" ")}: to choose figures, --only ${positionals.join(" ")}`);
  return { only: [...only, ...positionals], table };
}

const fits = ({ name }: Figure, only: string): boolean => only !== "" && name.startsWith(only);

function chosen(names: readonly string[]): readonly Figure[] {
  const unknown = names.filter((only) => !FIGURES.some((figure) => fits(figure, only)));
  if (unknown.length > 0)
    throw new Error(
      `no figure ${unknown.join(", ")}; there are ${FIGURES.map(({ name }) => name).join(", ")}`,
    );
  return FIGURES.filter((figure) => names.length === 0 || names.some((only) => fits(figure, only)));
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
  const { only, table } = readWords();
  for (const figure of chosen(only)) {
    const line = await measureFigure(figure);
    const load = (loadavg()[0] ?? 0) / availableParallelism();
    const busy = load > 1 ? `  (load ${load.toFixed(1)} a processor)` : "";
    const said = table
      ? inRow(cells(line)).trimEnd() + busy
      : JSON.stringify({ ...line, load: Math.round(load * 100) / 100 });
    process.stdout.write(`${said}\n`);
    if (!line.ok) process.exitCode = 1;
  }
} catch (thrown) {
  process.stderr.write(`error: ${thrown instanceof Error ? thrown.message : String(thrown)}\n`);
  process.exitCode = 2;
}
