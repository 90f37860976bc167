import type { Settings } from "../config/schema.ts";
import type { Limits } from "../models/timeouts.ts";

/** How long a model is waited for. */
export const limitsOf = (settings: Settings): Partial<Limits> => ({
  connectMs: settings.connect_timeout,
  firstMs: settings.first_token_timeout,
  idleMs: settings.idle_timeout,
});
