import type { Message, PromptParts } from "../../core/messages.ts";
import type { ToolOffer } from "../../core/model-provider.ts";
import { promptBytes, TokenEstimator } from "../../models/usage.ts";
import { isSummary } from "./model-view.ts";

/** Tokens that a server's template adds to each message. */
const PER_MESSAGE = 4;
/** The weight of that template, compared with bytes of text. */
const BYTES_PER_MESSAGE = 16;

/** Estimates the tokens of a request: by its bytes, until the server's own counts give a better ratio. */
export class PromptSize {
  readonly #model: string;
  readonly #offers: () => readonly ToolOffer[];
  readonly #estimator = new TokenEstimator();
  /** Messages never change, so of a long transcript only new ones are measured. */
  readonly #bytes = new WeakMap<Message | readonly ToolOffer[], number>();

  constructor(model: string, offers: () => readonly ToolOffer[]) {
    this.#model = model;
    this.#offers = offers;
  }

  /** Tokens of a request with these messages and tools; by default, the offered tools. */
  readonly tokens = (messages: readonly Message[], tools = this.#offers()): number =>
    this.#estimator.tokens(this.#model, this.#total(messages, tools)) + PER_MESSAGE * messages.length;

  /**
   * The tokens of a request by purpose. Shares are estimated from bytes; their sum is the server's count, or our
   * estimate if the server gave none.
   */
  parts(
    messages: readonly Message[],
    counted: number | null = null,
    tools: readonly ToolOffer[] = this.#offers(),
  ): PromptParts {
    const bytes = { ...NOTHING, tools: this.#toolBytes(tools) };
    for (const message of messages) {
      const all = this.#messageBytes(message) + BYTES_PER_MESSAGE;
      const instructions = message.role === "system" ? instructionBytes(message.text) : 0;
      bytes.instructions += instructions;
      bytes[partOf(message)] += all - instructions;
    }
    return apportioned(bytes, counted ?? this.tokens(messages, tools));
  }

  /** Learns from the server's count for a request with these messages; null teaches nothing. */
  learn(messages: readonly Message[], counted: number | null, tools = this.#offers()): void {
    if (counted === null) return;
    const text = counted - PER_MESSAGE * messages.length;
    this.#estimator.learn(this.#model, this.#total(messages, tools), text);
  }

  #total(messages: readonly Message[], tools: readonly ToolOffer[]): number {
    let bytes = this.#toolBytes(tools);
    for (const message of messages) bytes += this.#messageBytes(message);
    return bytes;
  }

  #toolBytes(tools: readonly ToolOffer[]): number {
    return this.#bytesOf(tools, { messages: [], tools });
  }

  #messageBytes(message: Message): number {
    return this.#bytesOf(message, { messages: [message], tools: [] });
  }

  #bytesOf(of: Message | readonly ToolOffer[], prompt: Parameters<typeof promptBytes>[0]): number {
    const known = this.#bytes.get(of);
    if (known !== undefined) return known;
    const bytes = promptBytes(prompt);
    this.#bytes.set(of, bytes);
    return bytes;
  }
}

type Part = keyof PromptParts;
type Weights = Readonly<Record<Part, number>>;

const NOTHING = {
  system: 0,
  instructions: 0,
  tools: 0,
  summary: 0,
  requests: 0,
  replies: 0,
  results: 0,
} satisfies Weights;

const ROLES = { system: "system", user: "requests", assistant: "replies", tool: "results" } as const;

const partOf = (message: Message): Part => (isSummary(message) ? "summary" : ROLES[message.role]);

/** As rendered by `renderInstructions`: no text in an element can end it. */
const INSTRUCTIONS = /<project_instructions path=[^>]*>.*?<\/project_instructions>/gs;

const instructionBytes = (text: string): number =>
  (text.match(INSTRUCTIONS) ?? []).reduce((sum, each) => sum + Buffer.byteLength(each), 0);

/** Splits `total` into whole numbers in these proportions; the remainder goes to the largest fractions. */
function apportioned(weights: Weights, total: number): PromptParts {
  const names = Object.keys(NOTHING) as readonly Part[];
  const whole = names.reduce((sum, name) => sum + weights[name], 0);
  const exact = (name: Part): number => (whole === 0 ? 0 : (weights[name] / whole) * total);
  const parts = Object.fromEntries(names.map((name) => [name, Math.floor(exact(name))])) as Record<
    Part,
    number
  >;
  let left = total - names.reduce((sum, name) => sum + parts[name], 0);
  for (const name of names.toSorted((a, b) => (exact(b) % 1) - (exact(a) % 1))) {
    if (left <= 0) break;
    parts[name] += 1;
    left -= 1;
  }
  return parts;
}
