import { AGENT } from "./agent.ts";
import { BATCH } from "./batch.ts";
import { CHECKPOINTS } from "./checkpoints.ts";
import { EGRESS } from "./egress.ts";
import { ENVIRONMENTS } from "./environments.ts";
import type { Figure } from "./figure.ts";
import { INDEXING } from "./indexing.ts";
import { MODELS } from "./models.ts";
import { OVERLAY } from "./overlay.ts";
import { PODS } from "./pods.ts";
import { POLICY } from "./policy.ts";
import { SANDBOX } from "./sandbox.ts";
import { SESSIONS } from "./sessions.ts";
import { SEARCH } from "./search/figures.ts";
import { STARTUP } from "./startup.ts";
import { VECTORS } from "./vectors.ts";
import { VET } from "./vet.ts";

/** All figures with a limit. */
export const FIGURES: readonly Figure[] = [
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
  ...BATCH,
  ...PODS,
];
