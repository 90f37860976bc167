import type { Ollama } from "ollama/browser";
import { z } from "zod";
import { quote } from "shell-quote";
import type { Answer } from "../http-request.ts";
import { billions } from "../model-size.ts";
import { askOllama } from "./ollama-client.ts";

/** What was found at an address. Every possible failure is an arm of this type. */
export type OllamaStatus =
  | NoServer
  | { readonly kind: "model-missing"; readonly version: string; readonly models: readonly string[] }
  | ReadyModel;

type OllamaListing =
  | NoServer
  | {
      readonly kind: "listed";
      readonly version: string;
      readonly models: readonly {
        readonly name: string;
        readonly size: number | null;
        /** Digest of what the name stands for now; another pull may change it. */
        readonly digest: string | null;
      }[];
    };

type NoServer =
  | { readonly kind: "down"; readonly reason: string }
  | { readonly kind: "not-ollama"; readonly reason: string }
  | { readonly kind: "too-old"; readonly version: string }
  /** It is Ollama, but a required answer did not come. */
  | { readonly kind: "failing"; readonly version: string; readonly reason: string };

export interface ReadyModel {
  readonly kind: "ready";
  readonly version: string;
  /** In the server's spelling. */
  readonly model: string;
  /** In tokens; `loaded` is null unless the model is in memory now. */
  readonly context: { readonly trained: number | null; readonly loaded: number | null };
  readonly capabilities: readonly string[] | null;
  /** Bytes on disk. */
  readonly size: number | null;
  /** Billions of parameters. */
  readonly parameters: number | null;
}

export interface StatusRequest {
  readonly baseUrl: string;
  readonly model: string;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** The first version with `truncate: false` and `shift: false`; older ones silently cut a long prompt. */
export const MIN_OLLAMA = "0.12.6";

const text = z.string().max(1000);
const tokens = z.number().int().positive();
const versionAnswer = z.object({ version: text });
const size = z.number().nullish().transform(orNull);
const window = tokens.nullish().catch(null).transform(orNull);
const digest = text.nullish().catch(null).transform(orNull);
const tagsAnswer = z.object({ models: listOf(z.object({ name: text, size, digest })) });
const psAnswer = z.object({ models: listOf(z.object({ name: text, context_length: window })) });
const showAnswer = z.object({
  model_info: z
    .record(z.string(), z.unknown())
    .nullish()
    .transform((info) => info ?? {}),
  capabilities: z.array(text).nullish().transform(orNull),
  template: text.nullish().catch(null).transform(orNull),
  renderer: text.nullish().catch(null).transform(orNull),
  details: z
    .object({ parameter_size: text.nullish().catch(null) })
    .nullish()
    .catch(null),
});
type ShowAnswer = z.output<typeof showAnswer>;

/** Matches a template that prints a tool as a Go struct, not as JSON. */
const PRINTS_TOOLS = /\{\{-?\s*\.Function(?:\.Parameters)?\s*-?\}\}/;

/**
 * From 0.14 on, a template that prints a tool directly prints Go's structs instead of JSON, and models copy what they
 * see; yet the server reports "tools". Such a model gets its tools in the prompt instead. If the server has its own
 * renderer for the model, it does not use the template.
 */
function usableCapabilities({ capabilities, template, renderer }: ShowAnswer): readonly string[] | null {
  const broken = renderer === null && template !== null && PRINTS_TOOLS.test(template);
  return broken && capabilities !== null ? capabilities.filter((name) => name !== "tools") : capabilities;
}

function orNull<T>(value: T | null | undefined): T | null {
  return value ?? null;
}

/** Go sometimes writes an empty list as null. */
function listOf<T>(item: z.ZodType<T>) {
  return z
    .array(item)
    .nullish()
    .transform((items) => items ?? []);
}

/** Whether `model` can be used at `baseUrl`. Never throws; all its requests together end within `timeoutMs`. */
export async function ollamaStatus(request: StatusRequest): Promise<OllamaStatus> {
  const call = callFor(request);
  const listing = await listingOf(call);
  return listing.kind === "listed" ? modelStatus(listing, request.model, call) : listing;
}

/** The models at `baseUrl`, in the server's order. Never throws either, and has the same time limit. */
export const ollamaListing = (request: Omit<StatusRequest, "model">): Promise<OllamaListing> =>
  listingOf(callFor(request));

type Call = (ask: (client: Ollama) => Promise<unknown>) => Promise<Answer>;

function callFor({ baseUrl, signal, timeoutMs }: Omit<StatusRequest, "model">): Call {
  const either = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  return (ask) => askOllama(baseUrl, either, ask);
}

async function listingOf(call: Call): Promise<OllamaListing> {
  const hello = await call((client) => client.version());
  const version = read(versionAnswer, hello)?.version;
  if (version === undefined) return unidentified(hello);
  if (isOlder(version)) return { kind: "too-old", version };
  const tags = await call((client) => client.list());
  const list = read(tagsAnswer, tags);
  if (list === undefined) return { kind: "failing", version, reason: `/api/tags: ${why(tags)}` };
  return { kind: "listed", version, models: list.models };
}

async function modelStatus(
  { version, models }: Extract<OllamaListing, { readonly kind: "listed" }>,
  wanted: string,
  call: Call,
): Promise<OllamaStatus> {
  const found = models.find(named(wanted));
  const missing = { kind: "model-missing", version, models: models.map(({ name }) => name) } as const;
  if (found === undefined) return missing;
  const [show, ps] = await Promise.all([
    call((client) => client.show({ model: found.name })),
    call((client) => client.ps()),
  ]);
  if (show.kind === "refused" && show.status === 404) return missing;
  const shown = read(showAnswer, show);
  if (shown === undefined) return { kind: "failing", version, reason: `/api/show: ${why(show)}` };
  const loaded = read(psAnswer, ps)?.models.find(named(found.name))?.context_length ?? null;
  return {
    kind: "ready",
    version,
    model: found.name,
    context: { trained: trainedContext(shown.model_info), loaded },
    capabilities: usableCapabilities(shown),
    size: found.size,
    parameters: parametersIn(shown),
  };
}

const named =
  (wanted: string) =>
  ({ name }: { readonly name: string }): boolean =>
    fullName(name) === fullName(wanted);

/** What the address belongs to if it gave no version. A 5xx is usually a proxy whose server is down. */
function unidentified(answer: Answer): NoServer {
  const gone = answer.kind === "unreachable" || (answer.kind === "refused" && answer.status >= 500);
  return { kind: gone ? "down" : "not-ollama", reason: why(answer) };
}

function why(answer: Answer): string {
  if (answer.kind === "json") return "it answers with unexpected JSON";
  if (answer.kind !== "refused") return answer.reason;
  return answer.error === "" ? `HTTP ${answer.status}` : `HTTP ${answer.status}: ${answer.error}`;
}

function read<T>(schema: z.ZodType<T>, answer: Answer): T | undefined {
  return answer.kind === "json" ? schema.safeParse(answer.value).data : undefined;
}

/** Builds from source have the version 0.0.0 or one without numbers; they count as new. */
function isOlder(version: string): boolean {
  const own = numbersIn(version);
  if (own.every((part) => part === 0)) return false;
  const differing = numbersIn(MIN_OLLAMA).map((oldest, index) => (own[index] ?? 0) - oldest);
  return (differing.find((difference) => difference !== 0) ?? 0) < 0;
}

const numbersIn = (version: string): number[] =>
  (/^v?(\d+)\.(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number);

/** Vision and audio parts have their own windows; the architecture's window is the one that counts. */
function trainedContext(info: Readonly<Record<string, unknown>>): number | null {
  const architecture = info["general.architecture"];
  return typeof architecture === "string"
    ? (tokens.safeParse(info[`${architecture}.context_length`]).data ?? null)
    : null;
}

const counted = z.number().positive();

/** The count in the model file, or else the server's text: `1.5B`, `494.03M`. */
function parametersIn({ model_info: info, details }: ShowAnswer): number | null {
  const told = billions(counted.safeParse(info["general.parameter_count"]).data);
  if (told !== null) return told;
  const [, size, unit] = /^(\d+(?:\.\d+)?)\s?([MB])$/i.exec(details?.parameter_size ?? "") ?? [];
  return size === undefined ? null : billions(Number(size) * (unit?.toUpperCase() === "M" ? 1e6 : 1e9));
}

/**
 * One spelling per model: `qwen3` equals `qwen3:latest` and `registry.ollama.ai/library/qwen3:latest`. Ignores case,
 * like Ollama.
 */
export function fullName(name: string): string {
  const short = name
    .trim()
    .toLowerCase()
    .replace(/^registry\.ollama\.ai\//, "")
    .replace(/^library\//, "");
  return /:[^/]*$/.test(short) ? short : `${short}:latest`;
}

/** A shell command that runs Ollama's own client or server against this address. */
export function ollamaLine(address: string, ...words: readonly string[]): string {
  const line = ["ollama", ...words.map(quoted)].join(" ");
  return address === "http://127.0.0.1:11434" ? line : `OLLAMA_HOST=${quoted(address)} ${line}`;
}

/** The `shell-quote` package would put a backslash before each colon of an address or a model's tag. */
export const quoted = (word: string): string => (/^[\w./:@%+=,-]+$/.test(word) ? word : quote([word]));
