import type { Usage } from "../core/messages.ts";
import type {
  AssistantMessage,
  JsonSchema,
  MalformedCall,
  ModelFailure,
  ModelRequest,
  Stop,
} from "../core/model-provider.ts";
import { pause, realClock } from "../models/timeouts.ts";
import type { AgentContext } from "./agent-context.ts";

export type Reply =
  | {
      readonly kind: "replied";
      readonly message: AssistantMessage;
      readonly malformed: readonly MalformedCall[];
      readonly stop: Stop;
    }
  | { readonly kind: "failed"; readonly failure: ModelFailure };

/** One request of the main loop: what the model sees now, told as it streams. A server that breaks off is asked again. */
export async function ask(agent: AgentContext, signal: AbortSignal, format?: JsonSchema): Promise<Reply> {
  const names = agent.tools.map(({ name }) => name);
  const request = { ...requestOf(agent, format), ...agent.next.take(names) };
  const patience = new Patience(agent.limits.turns > 1);
  for (let attempt = 2; ; attempt += 1) {
    const { reply, shown } = await attempted(agent, request, signal);
    if (reply.kind === "replied" || reply.failure.kind === "cancelled") return reply;
    const ms = patience.after(reply.failure, shown);
    if (ms === undefined) {
      agent.emit({ type: "model.failed", ...reply.failure });
      return reply;
    }
    agent.emit({ type: "model.waiting", reason: reply.failure.reason, ms, attempt });
    await pause(realClock, ms, signal);
  }
}

interface Attempted {
  readonly reply: Reply;
  /** Whether something of a reply was told that is none. */
  readonly shown: boolean;
}

async function attempted(
  agent: AgentContext,
  request: ModelRequest,
  signal: AbortSignal,
): Promise<Attempted> {
  const began = agent.now();
  let shown = false;
  for await (const event of agent.provider.stream(request, signal)) {
    switch (event.type) {
      case "text":
      case "thinking":
        shown = true;
        agent.emit({ type: event.type, text: event.text });
        break;
      case "waiting":
        shown = false;
        agent.emit({ type: "model.waiting", reason: event.reason, ms: event.ms, attempt: event.attempt });
        break;
      case "call":
        break;
      case "failed":
        spend(agent, request, event.usage);
        return { reply: { kind: "failed", failure: event.failure }, shown };
      case "finished": {
        const { message, malformed, stop, usage, notes } = event;
        spend(agent, request, usage);
        for (const text of notes) agent.emit({ type: "notice", text });
        const calls = message.calls.length + malformed.length;
        agent.emit({ type: "model.finished", text: message.text, calls, usage, ms: agent.now() - began });
        for (const { id, name, missed, nearest = [] } of malformed)
          if (missed !== undefined)
            agent.emit({ type: "call.missed", call: id, tool: name, kind: missed, nearest });
        return { reply: { kind: "replied", message, malformed, stop }, shown };
      }
    }
  }
  throw new Error("a provider's stream ended without an ending");
}

/** A request beside the loop over the same prefix; nothing of it is shown, and calls in its reply are not run. */
export const askAside = (
  agent: AgentContext,
  messages: ModelRequest["messages"],
  signal: AbortSignal,
  format?: JsonSchema,
): Promise<Reply> => askFor(agent, { ...requestOf(agent, format), messages }, signal);

/** Any request, to its end; it counts as the others do. */
async function askFor(agent: AgentContext, request: ModelRequest, signal: AbortSignal): Promise<Reply> {
  for await (const event of agent.provider.stream(request, signal)) {
    if (event.type !== "finished" && event.type !== "failed") continue;
    spend(agent, request, event.usage);
    if (event.type === "failed") return { kind: "failed", failure: event.failure };
    const { message, malformed, stop } = event;
    return { kind: "replied", message, malformed, stop };
  }
  throw new Error("a provider's stream ended without an ending");
}

const requestOf = (agent: AgentContext, format: JsonSchema | undefined): ModelRequest => ({
  model: agent.model,
  messages: agent.history.view(),
  tools: agent.tools.map(({ name, description, schema }) => ({ name, description, schema })),
  temperature: agent.next.temperature,
  ...(format === undefined ? {} : { format }),
});

function spend(agent: AgentContext, request: ModelRequest, usage: Usage): void {
  agent.spent.add(usage);
  agent.limits.used(usage, agent.size.tokens(request.messages));
  if (usage.requests === 1) agent.size.learn(request.messages, usage.prompt_tokens);
}

/** Milliseconds before each further attempt: time for a server to be started again. */
const WAITS: readonly number[] = [500, 2000, 5000];

/**
 * How long one request of the loop puts up with a server that breaks off within a reply, of which something was shown, or
 * that is away and was there before. What cannot pass is not asked again, and what was not shown the provider has
 * tried often enough.
 */
export class Patience {
  #failures = 0;
  #wasThere: boolean;

  constructor(wasThere: boolean) {
    this.#wasThere = wasThere;
  }

  /** How long to wait before the next attempt; undefined when there is none. */
  after({ kind }: Pick<ModelFailure, "kind">, shown: boolean): number | undefined {
    this.#wasThere ||= shown;
    const passes = kind === "garbled" ? shown : kind === "unreachable" && this.#wasThere;
    this.#failures += 1;
    return passes ? WAITS[this.#failures - 1] : undefined;
  }
}
