import { z } from "zod";
import type { Stop } from "../../core/provider.ts";
import { WireFailure, type WireEvent } from "../wire.ts";
import type { ModelInForce } from "./session.ts";

const count = z.number().int().nonnegative().nullish().catch(null);
const text = z.string().nullish();

const chatLine = z.object({
  message: z
    .object({
      content: text,
      thinking: text,
      tool_calls: z
        .array(z.object({ id: text, function: z.object({ name: z.string(), arguments: z.unknown() }) }))
        .nullish(),
    })
    .nullish(),
  done: z.boolean().nullish(),
  done_reason: text,
  prompt_eval_count: count,
  eval_count: count,
});
type ChatLine = z.infer<typeof chatLine>;

/** It counted of a prompt only what it had not kept from the one before. */
const MISCOUNTS = /^0\.30\.0(?:$|-)/;

/** Reads the lines of one reply. */
export class ReplyReader {
  readonly #facts: Pick<ModelInForce, "window" | "version">;
  #calls = 0;
  /** The server has said that it is done. */
  done = false;

  constructor(facts: Pick<ModelInForce, "window" | "version">) {
    this.#facts = facts;
  }

  /** The events of a line that holds no error. */
  *read(value: unknown): Generator<WireEvent> {
    const { data: line } = chatLine.safeParse(value);
    if (line === undefined)
      throw new WireFailure("garbled", "the server sends lines of another kind", { passing: true });
    yield* this.#message(line);
    if (line.done === true) yield* this.#end(line);
  }

  *#message({ message }: ChatLine): Generator<WireEvent> {
    if (message?.thinking) yield { type: "thinking", text: message.thinking };
    if (message?.content) yield { type: "text", text: message.content };
    // Each comes whole. The server's own index is 0 for all of them in many versions.
    for (const { id, function: called } of message?.tool_calls ?? []) {
      const args = argumentsText(called.arguments);
      yield { type: "call", index: this.#calls, name: called.name, args, ...(id ? { id } : {}) };
      this.#calls += 1;
    }
  }

  *#end(line: ChatLine): Generator<WireEvent> {
    if (line.done_reason === "load" || line.done_reason === "unload")
      throw new WireFailure("server", `the server did no more than ${line.done_reason} the model`, {
        passing: true,
      });
    this.done = true;
    const { window, version } = this.#facts;
    const prompt = MISCOUNTS.test(version ?? "") ? null : line.prompt_eval_count;
    yield { type: "usage", ...known("prompt", prompt), ...known("completion", line.eval_count) };
    if ((prompt ?? 0) >= window.tokens)
      yield {
        type: "note",
        text: `the prompt may have been cut: it fills the window of ${window.tokens} tokens`,
      };
    yield { type: "stop", stop: this.#stop(line.done_reason) };
  }

  #stop(reason: string | null | undefined): Stop {
    if (reason === "length") return "length";
    if (reason !== "stop") return "unknown";
    return this.#calls > 0 ? "calls" : "end";
  }
}

const known = (name: "prompt" | "completion", value: number | null | undefined): object =>
  typeof value === "number" ? { [name]: value } : {};

/** Proxies in front of other servers send them as JSON text. */
function argumentsText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "{}" : JSON.stringify(value);
}
