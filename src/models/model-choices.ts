import { totalmem } from "node:os";

/** Models of Ollama's library that the set-up offers, and what they ask of a machine. */

export interface ModelChoice {
  readonly name: string;
  /** Bytes of the download, as the library lists them. */
  readonly download: number;
  /** Bytes of memory with a window of 16,384 tokens, 1 GiB of them for what is around the model. */
  readonly memory: number;
  /** Billions of parameters that one token goes through: what a processor has to do for it. */
  readonly active: number;
}

const GB = 1e9;
const GiB = 2 ** 30;

/** The rest is for the system, the boxes and what else is open. */
const USABLE = 0.75;

/** Bytes of this machine's memory that a model may take. */
export const usableMemory = (): number => totalmem() * USABLE;

/** The best for this work first. A row that is added needs all four figures; `docs/models.md` shows them. */
export const MODEL_CHOICES: readonly ModelChoice[] = [
  { name: "qwen3-coder:30b", download: 19 * GB, memory: 22 * GiB, active: 3.3 },
  { name: "gpt-oss:20b", download: 14 * GB, memory: 16 * GiB, active: 3.6 },
  { name: "qwen3:14b", download: 9.3 * GB, memory: 13 * GiB, active: 14.8 },
  { name: "qwen3:8b", download: 5.2 * GB, memory: 9 * GiB, active: 8.2 },
  { name: "qwen3:4b", download: 2.5 * GB, memory: 6 * GiB, active: 4 },
  { name: "qwen3:1.7b", download: 1.4 * GB, memory: 4.5 * GiB, active: 1.7 },
];

/** Bytes of the downloads of models that embed. */
const EMBEDDER_SIZES: Readonly<Record<string, number>> = { "nomic-embed-text": 274e6, "all-minilm": 46e6 };

/** What a model has to run on. */
export interface ModelMachine {
  /** Bytes that the server may take. */
  readonly memory: number;
  readonly cores: number;
  /** A graphics card does the work, so the processor bounds nothing. */
  readonly gpu: boolean;
}

/**
 * Tokens that one core reads and writes in a second, for each billion of parameters: measured on two cores without a
 * graphics card (35 read and 10 written by a model of 1.5 billion at four bits).
 */
const READ_PER_CORE = 26;
const WRITTEN_PER_CORE = 7.5;
/** The prompt and the tools of a first request. */
const FIRST_TOKENS = 1550;
/** Longer than this nobody waits for a first word. */
export const LONGEST_FIRST_SECONDS = 125;

/** An estimate for a processor alone. */
export const secondsToFirstWord = ({ active }: ModelChoice, { cores }: ModelMachine): number =>
  (FIRST_TOKENS * active) / (READ_PER_CORE * cores);

export const tokensPerSecond = ({ active }: ModelChoice, { cores }: ModelMachine): number =>
  (WRITTEN_PER_CORE * cores) / active;

const fits = (choice: ModelChoice, machine: ModelMachine): boolean =>
  choice.memory <= machine.memory &&
  (machine.gpu || secondsToFirstWord(choice, machine) <= LONGEST_FIRST_SECONDS);

/** What fits the machine, the best first; nothing where its memory holds none of them, or its processor is too slow. */
export const fittingModels = (machine: ModelMachine): readonly ModelChoice[] =>
  MODEL_CHOICES.filter((choice) => fits(choice, machine));

/** Bytes of a model's download; null where they are not known. */
export function downloadOf(model: string): number | null {
  const name = model.replace(/:latest$/, "");
  return EMBEDDER_SIZES[name] ?? MODEL_CHOICES.find((choice) => choice.name === name)?.download ?? null;
}
