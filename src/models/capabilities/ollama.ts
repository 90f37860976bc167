import type { Capabilities } from "../../core/provider.ts";
import type { ContextInForce } from "../ollama/context.ts";
import type { ModelInForce } from "../ollama/session.ts";
import { believe, type Sources } from "./believe.ts";

/** Who is behind each bound of the window. */
const ORIGINS = {
  trained: "server",
  setting: "user",
  memory: "guess",
  default: "guess",
} as const satisfies Record<ContextInForce["limit"], Capabilities["origin"]["context"]>;

/** Of Ollama the window is not believed: it is the one that every request asks for. */
export function believeOllama(
  model: string,
  facts: ModelInForce,
  sources: Omit<Sources, "server">,
): Capabilities {
  const server = { context: null, tools: facts.tools, thinking: facts.thinks, cache: true };
  const believed = believe(model, { ...sources, server });
  const { tokens, limit } = facts.window;
  return { ...believed, context: tokens, origin: { ...believed.origin, context: ORIGINS[limit] } };
}
