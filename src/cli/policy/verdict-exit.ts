import type { Verdict } from "../../core/decision.ts";
import { EXIT } from "../../core/errors.ts";

export const exitOf = (verdict: Verdict): number =>
  ({ allow: EXIT.done, ask: EXIT.ask, deny: EXIT.deny })[verdict];
