/** `npm run bench [-- --only NAME]`: one JSON line per figure; exit 1 when one does not hold. */
import { parseArgs } from "node:util";
import { AGENT } from "./agent.ts";
import { CHECKPOINTS } from "./checkpoints.ts";
import { type Figure, measureFigure } from "./figure.ts";
import { MODELS } from "./models.ts";
import { OVERLAY } from "./overlay.ts";
import { POLICY } from "./policy.ts";
import { SANDBOX } from "./sandbox.ts";
import { SESSIONS } from "./sessions.ts";
import { SEARCH } from "./search/figures.ts";
import { STARTUP } from "./startup.ts";
import { VECTORS } from "./vectors.ts";

const FIGURES: readonly Figure[] = [
  ...STARTUP,
  ...POLICY,
  ...MODELS,
  ...SANDBOX,
  ...OVERLAY,
  ...SESSIONS,
  ...CHECKPOINTS,
  ...AGENT,
  ...VECTORS,
