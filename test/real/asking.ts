import { capabilitiesOf, NOT_REPORTED, providerWithCapabilities } from "../../src/models/capabilities.ts";
import type { Message, ModelRequest, Provider, ProviderEvent } from "../../src/core/model-provider.ts";
import { OllamaWire } from "../../src/models/providers/ollama-api.ts";
import { OpenAiWire } from "../../src/models/providers/openai-api.ts";
import { realServer } from "./real-ollama.ts";

/** Harness's own providers on the real server. */

export const DIALECTS = ["ollama", "openai"] as const;
export type Dialect = (typeof DIALECTS)[number];

/** The window for these prompts; small, to need little memory and to be filled soon. */
export const WINDOW = 2048;

interface Options {
  /** Whether tools are sent in the server's native format. */
  readonly tools?: boolean;
  /** Requested window in tokens; only Ollama takes a window from its client. */
  readonly window?: number;
}

export function providerOf(dialect: Dialect, { tools = false, window = WINDOW }: Options = {}): Provider {
  const { url } = realServer();
  const wire =
    dialect === "ollama"
      ? new OllamaWire({ baseUrl: url, wanted: () => window })
      : new OpenAiWire({ baseUrl: `${url}/v1` });
  const known = (model: string) =>
    capabilitiesOf(model, { user: [], maxContext: window, probe: null, server: NOT_REPORTED });
  return providerWithCapabilities(wire, {
    capabilities: (model) => Promise.resolve({ ...known(model), tools }),
  });
}

export const user = (text: string): readonly Message[] => [{ role: "user", text }];

export const request = (over: Partial<ModelRequest>): ModelRequest => ({
  model: realServer().model,
  messages: user("Say hello."),
  tools: [],
  maxTokens: 24,
  temperature: 0,
  ...over,
});

type Last = Extract<ProviderEvent, { readonly type: "finished" | "failed" }>;

export interface Answered {
  readonly events: readonly ProviderEvent[];
  readonly last: Last;
}

/** All events of one reply; `until` says when the client has seen enough. */
export async function answered(
  provider: Provider,
  asked: ModelRequest,
  until: (events: readonly ProviderEvent[]) => boolean = () => false,
): Promise<Answered> {
  const leave = new AbortController();
  const events: ProviderEvent[] = [];
  for await (const event of provider.stream(asked, leave.signal)) {
    events.push(event);
    if (until(events)) leave.abort();
  }
  const last = events.at(-1);
  if (last?.type !== "finished" && last?.type !== "failed") throw new Error("a reply has an end");
  return { events, last };
}

/** The last event of a reply that ended properly. */
export function finished({ last }: Answered): Extract<Last, { readonly type: "finished" }> {
  if (last.type === "finished") return last;
  throw new Error(`${last.failure.kind}: ${last.failure.reason}`);
}
