/** `npm run bench [-- --only NAME]`: one JSON line per figure; exit 1 when one does not hold. */
import { parseArgs } from "node:util";
import { AGENT } from "./agent.ts";
import { CHECKPOINTS } from "./checkpoints.ts";
import { EGRESS } from "./egress.ts";
import { ENVIRONMENTS } from "./environments.ts";
import { type Figure, measureFigure } from "./figure.ts";
import { INDEXING } from "./indexing.ts";
import { MODELS } from "./models.ts";
import { OVERLAY } from "./overlay.ts";
import { POLICY } from "./policy.ts";
import { SANDBOX } from "./sandbox.ts";
import { SESSIONS } from "./sessions.ts";
import { SEARCH } from "./search/figures.ts";
import { STARTUP } from "./startup.ts";
import { VECTORS } from "./vectors.ts";
import { VET } from "./vet.ts";

const FIGURES: readonly Figure[] = [
  ...STARTUP,
  ...POLICY,
  ...MODELS,
  ...SANDBOX,
  ...OVERLAY,
  ...SESSIONS,
  ...CHECKPOINTS,
  ...AGENT,
  ...INDEXING,
  ...SEARCH,
  ...VECTORS,
  ...EGRESS,
  ...ENVIRONMENTS,
  ...VET,
];

function chosen(words: readonly string[]): readonly Figure[] {
  const { values } = parseArgs({ args: [...words], options: { only: { type: "string" } } });
  const { only } = values;
  const figures = FIGURES.filter(
    ({ name }) => only === undefined || name === only || name.startsWith(`${only}.`),
  );
  if (figures.length > 0) return figures;
  throw new Error(`no figure ${only ?? ""}; there are ${FIGURES.map(({ name }) => name).join(", ")}`);
}

try {
  for (const figure of chosen(process.argv.slice(2))) {
    const line = await measureFigure(figure);
    process.stdout.write(`${JSON.stringify(line)}\n`);
    if (!line.ok) process.exitCode = 1;
  }
} catch (thrown) {
  process.stderr.write(`error: ${thrown instanceof Error ? thrown.message : String(thrown)}\n`);
  process.exitCode = 2;
}
