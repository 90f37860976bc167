/**
 * What is known of a model without a request to it: what it is for, how large it is, and which models the set-up offers.
 */

import { totalmem } from "node:os";

/** What a model is for. */
export type ModelKind = "chat" | "embedding" | "other";

/**
 * Decides by the capabilities that the server reports, or by the name if it reports none. A model whose name does not
 * look like an embedder's counts as a chat model.
 */
export function kindOf(name: string, capabilities: readonly string[] | null): ModelKind {
  if (capabilities === null || capabilities.length === 0) return isEmbedderName(name) ? "embedding" : "chat";
  if (capabilities.includes("completion")) return "chat";
  return capabilities.includes("embedding") ? "embedding" : "other";
}

/** Words in the names of families whose models only embed. */
const EMBEDDERS =
  /(?:^|[-_./:])(?:embed(?:ding|dings|der)?|embeddinggemma|minilm|bge|gte|e5|arctic-embed\d*|mxbai|paraphrase|rerank(?:er)?)(?:[-_./:]|$)/;

const isEmbedderName = (name: string): boolean => EMBEDDERS.test(name.toLowerCase());

/** No model with fewer parameters is usable here: a smaller count is something else. */
const MIN_PARAMETERS = 10_000_000;

/** A count in billions, rounded to a tenth as usual for sizes: 1,543,714,304 becomes 1.5. */
export const billions = (count: number | null | undefined): number | null =>
  typeof count === "number" && count >= MIN_PARAMETERS ? Math.max(0.1, Math.round(count / 1e8) / 10) : null;

/** The statements of a model of at most this size count for less. */
export const FEW_BILLIONS = 4;

/** In billions: `qwen2.5-coder:1.5b`, `smollm2:135m`; undefined if the name gives no size. */
export function sizeInName(model: string): number | undefined {
  const sizes = Array.from(
    model.matchAll(/(?<![a-z0-9.])(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])/gi),
    (size) => Number(size[1]) / (size[2]?.toLowerCase() === "m" ? 1000 : 1),
  );
  return sizes.length > 0 ? Math.max(...sizes) : undefined;
}

/** `byUser` is the user's figure and wins; `byServer` is used if the name gives no figure. Both in billions. */
export function hasFewParameters(model: string, byServer?: number, byUser?: number): boolean {
  const size = byUser ?? sizeInName(model) ?? byServer;
  return size !== undefined && size <= FEW_BILLIONS;
}

/** A window of this size has no room for many files and outputs. */
const SMALL_WINDOW = 16_384;

export const isSmallWindow = (window: { readonly tokens: number; readonly known: boolean }): boolean =>
  window.known && window.tokens <= SMALL_WINDOW;

/** A model of Ollama's library that the set-up offers, and what it requires of a machine. */
export interface ModelChoice {
  readonly name: string;
  /** Bytes of the download, as listed in the library. */
  readonly download: number;
  /** Bytes of memory with a window of 16,384 tokens, including 1 GiB of overhead. */
  readonly memory: number;
  /** Billions of parameters that each token passes through: they determine the work for a processor. */
  readonly active: number;
}

const GB = 1e9;
const GiB = 2 ** 30;

/** The rest is for the system, the boxes and other programs. */
const USABLE = 0.75;

/** Bytes of a machine's memory that a model may take; of this machine's, unless another is given. */
export const usableMemory = (memory = totalmem()): number => memory * USABLE;

/** Best for this work first. A new row needs all four figures; `docs/models.md` shows them. */
export const MODEL_CHOICES: readonly ModelChoice[] = [
  { name: "qwen3-coder:30b", download: 19 * GB, memory: 22 * GiB, active: 3.3 },
  { name: "gpt-oss:20b", download: 14 * GB, memory: 16 * GiB, active: 3.6 },
  { name: "qwen3:14b", download: 9.3 * GB, memory: 13 * GiB, active: 14.8 },
  { name: "qwen3:8b", download: 5.2 * GB, memory: 9 * GiB, active: 8.2 },
  { name: "qwen3:4b", download: 2.5 * GB, memory: 6 * GiB, active: 4 },
  { name: "qwen3:1.7b", download: 1.4 * GB, memory: 4.5 * GiB, active: 1.7 },
];

/** Download sizes of embedding models, in bytes. */
const EMBEDDER_SIZES: Readonly<Record<string, number>> = { "nomic-embed-text": 274e6, "all-minilm": 46e6 };

/** The machine that a model runs on. */
export interface ModelMachine {
  /** Bytes that the server may use. */
  readonly memory: number;
  readonly cores: number;
  /** A graphics card does the work, so the processor sets no limit. */
  readonly gpu: boolean;
}

/**
 * Tokens that one core reads and writes per second, times billions of parameters: measured on two cores without a
 * graphics card (a model of 1.5 billion at four bits read 35 and wrote 10).
 */
const READ_PER_CORE = 26;
const WRITTEN_PER_CORE = 7.5;
/** Tokens of a first request's prompt and tools. */
const FIRST_TOKENS = 1550;
/** Nobody waits longer than this for a first word. */
export const MAX_FIRST_SECONDS = 125;

/** An estimate for a machine without a graphics card. */
export const secondsToFirstWord = ({ active }: ModelChoice, { cores }: ModelMachine): number =>
  (FIRST_TOKENS * active) / (READ_PER_CORE * cores);

export const tokensPerSecond = ({ active }: ModelChoice, { cores }: ModelMachine): number =>
  (WRITTEN_PER_CORE * cores) / active;

const fits = (choice: ModelChoice, machine: ModelMachine): boolean =>
  choice.memory <= machine.memory &&
  (machine.gpu || secondsToFirstWord(choice, machine) <= MAX_FIRST_SECONDS);

/**
 * The models that fit the machine, best first; empty if its memory is too small or its processor too slow for all of
 * them.
 */
export const fittingModels = (machine: ModelMachine): readonly ModelChoice[] =>
  MODEL_CHOICES.filter((choice) => fits(choice, machine));

/** Bytes of a model's download; null if unknown. */
export function downloadOf(model: string): number | null {
  const name = model.replace(/:latest$/, "");
  return EMBEDDER_SIZES[name] ?? MODEL_CHOICES.find((choice) => choice.name === name)?.download ?? null;
}
