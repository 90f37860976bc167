import type { Message, PromptParts } from "../../core/messages.ts";
import type { ToolOffer } from "../../core/model-provider.ts";
import { promptBytes, TokenEstimator } from "../../models/usage.ts";
import { isSummary } from "./model-view.ts";

/** What a server's template puts around each message. */
const PER_MESSAGE = 4;
/** What it counts for beside bytes of text. */
const BYTES_PER_MESSAGE = 16;

/** How many tokens a request will be: a guess by its bytes until the server's counts teach better. */
export class PromptSize {
  readonly #model: string;
  readonly #offers: () => readonly ToolOffer[];
  readonly #estimator = new TokenEstimator();
  /** Messages never change; of a long transcript only what is new is measured. */
  readonly #bytes = new WeakMap<Message | readonly ToolOffer[], number>();

  constructor(model: string, offers: () => readonly ToolOffer[]) {
    this.#model = model;
    this.#offers = offers;
  }

  /** Of a request of these messages with these tools; left out, with those that are offered. */
  readonly tokens = (messages: readonly Message[], tools = this.#offers()): number =>
    this.#estimator.tokens(this.#model, this.#total(messages, tools)) + PER_MESSAGE * messages.length;

  /**
   * The tokens of such a request by what they are for: guessed by bytes, and together as many as the server counted, or as
   * our estimate where it counted none.
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

  /** What the server counted for a request of these messages; null teaches nothing. */
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

/** As `renderInstructions` puts them: no text in one can end its element. */
const INSTRUCTIONS = /<project_instructions path=[^>]*>.*?<\/project_instructions>/gs;

const instructionBytes = (text: string): number =>
  (text.match(INSTRUCTIONS) ?? []).reduce((sum, each) => sum + Buffer.byteLength(each), 0);

/** Whole numbers in these proportions that come to `total`: what rounding leaves goes to the largest remainders. */
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
