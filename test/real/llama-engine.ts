import { availableParallelism } from "node:os";
import {
  type ChatTemplate,
  type Llama,
  type LlamaContext,
  type LlamaModel,
  type LlamaSequence,
  loadEngine,
  type NodeLlamaCpp,
  type Token,
} from "./engine-package.ts";

/** A model from a GGUF file in this process. It does one thing at a time: the server keeps the queue. */

export interface EngineRequest {
  readonly messages: readonly object[];
  readonly tools: readonly object[];
  /** Maximum tokens of prompt and reply together. */
  readonly window: number;
  /** Maximum tokens of the reply. */
  readonly most: number;
  readonly temperature: number;
  readonly seed?: number | undefined;
  /** A GBNF grammar that constrains the reply. */
  readonly grammar?: string | undefined;
}

export interface Counts {
  readonly prompt: number;
  /** Prompt tokens that were not cached from the previous request. */
  readonly read: number;
  readonly written: number;
  readonly loadMs: number;
  readonly readMs: number;
  readonly writeMs: number;
}

export type Piece =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "end"; readonly reason: "stop" | "length"; readonly counts: Counts };

/** The prompt, or a text to embed, does not fit the window. */
export class TooLong extends Error {
  readonly tokens: number;
  readonly window: number;

  constructor(tokens: number, window: number) {
    super(`${tokens} tokens for a window of ${window}`);
    this.tokens = tokens;
    this.window = window;
  }
}

/** Threads wait for each other by spinning: with one per core, any other work would hold up all of them. */
const THREADS = Math.max(1, Math.floor(availableParallelism() / 2));
/** Tokens read between two checks whether the client still waits. */
const READ_AT_ONCE = 64;

export class LlamaEngine {
  readonly #package: NodeLlamaCpp;
  readonly #llama: Llama;
  readonly #model: LlamaModel;
  readonly #template: ChatTemplate;
  readonly callsInTags: boolean;
  #loaded: {
    readonly window: number;
    readonly context: LlamaContext;
    readonly sequence: LlamaSequence;
  } | null = null;
  /** Tokens read and written since the start, for all clients. */
  computed = 0;

  private constructor(parts: {
    readonly package: NodeLlamaCpp;
    readonly llama: Llama;
    readonly model: LlamaModel;
    readonly template: ChatTemplate;
    readonly templateText: string;
  }) {
    this.#package = parts.package;
    this.#llama = parts.llama;
    this.#model = parts.model;
    this.#template = parts.template;
    this.callsInTags = parts.templateText.includes("tools") && parts.templateText.includes("<tool_call>");
  }

  static async open(file: string): Promise<LlamaEngine> {
    const { llama: nodeLlama, template } = await loadEngine();
    const llama = await nodeLlama.getLlama({
      gpu: false,
      build: "never",
      skipDownload: true,
      maxThreads: THREADS,
      logLevel: "error",
    });
    const model = await llama.loadModel({ modelPath: file });
    const text = model.fileInfo.metadata.tokenizer?.chat_template;
    if (text === undefined) throw new Error(`${file} has no chat template: it is no model that answers`);
    return new LlamaEngine({
      package: nodeLlama,
      llama,
      model,
      template: template(text),
      templateText: text,
    });
  }

  get trained(): number {
    return this.#model.trainContextSize;
  }

  get architecture(): string {
    return this.#model.fileInfo.metadata.general.architecture;
  }

  /** How many parameters the model has: a real server reports it, and small models get more help. */
  get parameters(): number {
    const tensors = this.#model.fileInfo.tensorInfo ?? [];
    const sizes = tensors.map(({ dimensions }) =>
      dimensions.reduce((product: number, each) => product * Number(each), 1),
    );
    return sizes.reduce((sum, each) => sum + each, 0);
  }

  /** Tokens of the loaded window; null if none is loaded. */
  get window(): number | null {
    return this.#loaded?.window ?? null;
  }

  async unload(): Promise<void> {
    await this.#loaded?.context.dispose();
    this.#loaded = null;
  }

  async close(): Promise<void> {
    await this.unload();
    await this.#llama.dispose();
  }

  /** Stops early, without a final piece, once `signal` fires. Throws `TooLong`. */
  async *reply(request: EngineRequest, signal: AbortSignal): AsyncGenerator<Piece> {
    if (signal.aborted) return;
    const begun = performance.now();
    const prompt = this.#model.tokenize(this.#prompt(request), true);
    const window = Math.min(request.window, this.trained);
    if (prompt.length >= window) throw new TooLong(prompt.length, window);
    const sequence = await this.#sequenceOf(window);
    const loaded = performance.now();
    // The last token is always evaluated: the first new token follows from it.
    await sequence.adaptStateToTokens(prompt.slice(0, -1), false);
    const kept = sequence.nextTokenIndex;
    for (let at = kept; at < prompt.length - 1; at += READ_AT_ONCE) {
      if (signal.aborted) return;
      const part = prompt.slice(at, Math.min(at + READ_AT_ONCE, prompt.length - 1));
      await sequence.evaluateWithoutGeneratingNewTokens(part);
      this.computed += part.length;
    }
    const read = performance.now();
    const options = await this.#options(request);
    const written: Token[] = [];
    let said = "";
    let reason: "stop" | "length" = "stop";
    for await (const token of sequence.evaluate(prompt.slice(-1), options)) {
      this.computed += 1;
      if (signal.aborted) return;
      written.push(token);
      const text = this.#model.detokenize(written, true);
      // A character may take several tokens.
      if (!text.endsWith("\uFFFD") && text.length > said.length) {
        yield { type: "text", text: text.slice(said.length) };
        said = text;
      }
      if (written.length < request.most && prompt.length + written.length < window) continue;
      reason = "length";
      break;
    }
    const counts: Counts = {
      prompt: prompt.length,
      read: prompt.length - kept,
      written: written.length,
      loadMs: loaded - begun,
      readMs: read - loaded,
      writeMs: performance.now() - read,
    };
    yield { type: "end", reason, counts };
  }

  /** Pooling is up to the model; `cut` keeps the beginning of a text that is too long. */
  async vectors(texts: readonly string[], cut: boolean): Promise<readonly (readonly number[])[]> {
    const window = Math.min(this.trained, 2048);
    const context = await this.#model.createEmbeddingContext({ contextSize: window });
    try {
      const vectors: (readonly number[])[] = [];
      for (const text of texts) {
        const tokens = this.#model.tokenize(text, false);
        if (tokens.length >= window && !cut) throw new TooLong(tokens.length, window);
        const { vector } = await context.getEmbeddingFor(tokens.slice(0, window - 1));
        this.computed += Math.min(tokens.length, window - 1);
        vectors.push(vector);
      }
      return vectors;
    } finally {
      await context.dispose();
    }
  }

  #prompt({ messages, tools }: EngineRequest): string {
    const { bosString, eosString } = this.#model.tokens;
    return this.#template.render({
      messages,
      ...(tools.length > 0 ? { tools } : {}),
      add_generation_prompt: true,
      bos_token: bosString ?? "",
      eos_token: eosString ?? "",
    });
  }

  async #sequenceOf(window: number): Promise<LlamaSequence> {
    if (this.#loaded?.window === window) return this.#loaded.sequence;
    await this.unload();
    const context = await this.#model.createContext({ contextSize: window, batchSize: READ_AT_ONCE });
    this.#loaded = { window, context, sequence: context.getSequence() };
    return this.#loaded.sequence;
  }

  async #options({ temperature, seed, grammar }: EngineRequest): Promise<object> {
    const sampling = { temperature, topK: 40, topP: 0.9, ...(seed === undefined ? {} : { seed }) };
    if (grammar === undefined) return sampling;
    const made = await this.#llama.createGrammar({ grammar });
    const state = new this.#package.LlamaGrammarEvaluationState({ model: this.#model, grammar: made });
    return { ...sampling, grammarEvaluationState: state };
  }
}
