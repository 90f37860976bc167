import type { Settings } from "../config/settings-schema.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { Price } from "../core/model-provider.ts";
import { isLoopback, ollamaAddress } from "../models/providers/ollama-client.ts";
import { dayOf, priceOf } from "../models/model-api.ts";
import type { Host } from "./host.ts";

/** What the settings say of a model, without asking its server: where it is, what it costs. */

/** Whether everything sent to the model stays on this machine. Models that a local server forwards to are not local. */
export function isLocalModel(
  { env }: Pick<Host, "env">,
  { provider, base_url, chat_model }: Pick<Settings, "provider" | "base_url" | "chat_model">,
): boolean {
  if (provider === "scripted") return true;
  if (/[:-]cloud$/.test(chat_model)) return false;
  if (provider === "ollama") return isLoopback(ollamaAddress(env, base_url));
  return base_url !== null && isLoopback(base_url);
}

/** Today's price of the model's tokens, if the settings know it. */
export const priceToday = ({
  prices,
  chat_model,
}: Pick<Settings, "prices" | "chat_model">): Price | undefined =>
  priceOf(chat_model, prices, dayOf(Date.now()));

/** Refuses a cost limit that could never take effect because no price is known. */
export function refuseUnpriced(
  cost: number | undefined,
  settings: Pick<Settings, "prices" | "chat_model">,
): void {
  if (cost === undefined || priceToday(settings) !== undefined) return;
  const { chat_model } = settings;
  const row = JSON.stringify([{ model: chat_model, input: 1, output: 5 }]);
  throw new HarnessError(
    EXIT.usage,
    `--max-cost: no price is known for ${chat_model}`,
    `harness config set prices '${row}'   (per million tokens)`,
  );
}
