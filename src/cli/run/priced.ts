import type { LimitsGiven } from "../../agent/limits.ts";
import type { Settings } from "../../config/schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { priceOf } from "../../models/accounting/prices.ts";

/** A limit of cost that nothing could be held against is no limit. */
export function refuseUnpriced({ cost }: LimitsGiven, { prices, chat_model }: Settings): void {
  if (cost === undefined || priceOf(chat_model, prices) !== undefined) return;
  const row = JSON.stringify([{ model: chat_model, input: 1, output: 5 }]);
  throw new HarnessError(
    EXIT.usage,
    `--max-cost: no price is known for ${chat_model}`,
    `harness config set prices '${row}'   (per million tokens)`,
  );
}
