import type { Settings } from "../../config/schema.ts";
import { isLoopback, ollamaAddress } from "../../models/ollama/address.ts";

/** Whether what is sent to the model stays on this machine. Models that a local server hands on are not local. */
export function isLocalModel({ provider, base_url, chat_model }: Settings): boolean {
  if (provider === "scripted") return true;
  if (/[:-]cloud$/.test(chat_model)) return false;
  if (provider === "ollama") return isLoopback(ollamaAddress(process.env, base_url));
  return base_url !== null && isLoopback(base_url);
}
