import type { Settings } from "../config/schema.ts";
import type { Capabilities, Provider } from "../core/provider.ts";
import { AnthropicWire } from "../models/anthropic/wire.ts";
import { believe } from "../models/capabilities/believe.ts";
import { askServer, type ServerAnswer } from "../models/capabilities/keyed-server.ts";
import type { ProbeSubject } from "../models/capabilities/probes.ts";
import { believingProvider } from "../models/capabilities/provider.ts";
import { keyedServer } from "../models/health.ts";
import { readKey } from "../models/keys.ts";
import { OpenAiWire } from "../models/openai/wire.ts";
import { keysFile } from "./keys-file.ts";
import { limitsOf } from "./model-limits.ts";
import type { ModelSeat } from "./model-seat.ts";
import { probed } from "./probed.ts";

const TIMEOUT_MS = 5000;

/** A server that is reached by a key, or by none where it wants none. */
export function keyedSeat(name: "openai" | "anthropic", settings: Settings): ModelSeat {
  const { base_url: baseUrl, capabilities: user, max_context_tokens: maxContext, prices } = settings;
  const key = readKey(name, { env: process.env, file: keysFile() }) ?? "";
  const reached = keyedServer(name, { baseUrl, key });
  const subject = (model: string): ProbeSubject => ({ model, server: reached.base, version: "" });
  let known: ServerAnswer | undefined;
  const answer = async (signal: AbortSignal): Promise<ServerAnswer> => {
    if (known !== undefined) return known;
    const asked = await askServer({ ...reached, signal, timeoutMs: TIMEOUT_MS });
    if (asked.models !== null) known = asked;
    return asked;
  };
  const capabilities = async (model: string, signal: AbortSignal): Promise<Capabilities> => {
    const [{ wordOn }, probe] = await Promise.all([answer(signal), probed(subject(model))]);
    return believe(model, { user, maxContext, probe, server: wordOn(model) });
  };
  const provider = (tools?: boolean): Provider => {
    const Api = name === "openai" ? OpenAiWire : AnthropicWire;
    return believingProvider(new Api({ baseUrl: reached.base, key }), {
      limits: limitsOf(settings),
      prices,
      keys: key === "" ? [] : [key],
      capabilities: async (model, signal) => {
        const believed = await capabilities(model, signal);
        return tools === undefined ? believed : { ...believed, tools };
      },
    });
  };
  return {
    server: reached.base,
    list: answer,
    capabilities,
    subject: (model) => Promise.resolve(subject(model)),
    provider,
  };
}
