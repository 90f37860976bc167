/** Constructs the embedder. */
import path from "node:path";
import type { Settings } from "../../config/settings-schema.ts";
import { HarnessError } from "../../core/errors.ts";
import type { Embedder } from "../../core/ports.ts";
import { maskSecrets } from "../../core/secrets.ts";
import { readKey } from "../../models/provider-servers.ts";
import { askServer, keyedServer } from "../../models/model-server.ts";
import { isLoopback, ollamaAddress } from "../../models/providers/ollama-client.ts";
import { ollamaEmbedder, openAiEmbedder } from "../../models/embeddings.ts";
import { fullName, MIN_OLLAMA, ollamaLine, ollamaListing } from "../../models/providers/ollama-server.ts";
import {
  dimensionOf,
  type EmbeddingModel,
  openVectorCache,
  type VectorCache,
} from "../../search/embed-model.ts";
import type { Host } from "../host.ts";
import { isLocalModel } from "../model-access.ts";

export type FoundEmbedder =
  | {
      readonly kind: "found";
      readonly model: EmbeddingModel;
      /** Length of its vectors; an index is opened with it and the model's id. */
      readonly dimension: number;
      readonly cache: VectorCache;
      readonly server: string;
      /** Embedded text does not leave this machine. */
      readonly local: boolean;
    }
  | NoEmbedder;

interface NoEmbedder {
  readonly kind: "none";
  readonly reason: string;
  readonly remedy: string;
  /** The name of a model that exists but returned no vector in time: it may do so later. */
  readonly awaited?: string;
}

interface Place {
  readonly kind: "found";
  readonly model: EmbeddingModel;
  readonly server: string;
  readonly local: boolean;
}

export interface EmbedderAccess extends Disposable {
  /** The embedder is looked for once. Without one, a search goes by words. */
  readonly find: (signal: AbortSignal) => Promise<FoundEmbedder>;
}

export interface EmbedderOptions {
  readonly host: Host;
  /** The origin of each setting. */
  readonly origins: Readonly<Record<string, string>>;
  readonly warn: (text: string) => void;
  /** Left out: as long as a search may wait. */
  readonly patience?: EmbedderPatience;
}

export interface EmbedderPatience {
  /** For a server's list of models. */
  readonly listMs: number;
  /** For the first vector, whose model may have to be loaded; after that, the vector length is known. */
  readonly vectorMs: number;
  /** For any further request; left out: the default of the adapter. */
  readonly requestMs?: number;
}

const LOCAL: EmbedderPatience = { listMs: 1000, vectorMs: 4000 };
const REMOTE: EmbedderPatience = { listMs: 3000, vectorMs: 4000 };
const CHOOSE = "harness config set embed_model NAME";

/**
 * A repository's text is sent to another machine only if the user has named an embed_model, and then what looks like a
 * secret is masked. The chat model's API is used for embedding only under the same condition; otherwise Ollama embeds,
 * if it answers.
 */
export function embedderAccess(settings: Settings, options: EmbedderOptions): EmbedderAccess {
  const { host, origins, warn, patience } = options;
  const chosen = (origins["embed_model"] ?? "default") !== "default";
  let known: FoundEmbedder | undefined;
  let cache: VectorCache | undefined;
  const look = async (signal: AbortSignal): Promise<FoundEmbedder> => {
    const place = await lookFor({ host, settings, chosen, patience }, signal);
    if (place.kind === "none") return place;
    cache ??= openVectorCache(path.join(host.places.cache, "vectors"), { warn });
    const { vectorMs } = patience ?? LOCAL;
    const dimension = await dimensionOf(place.model, cache, signal, vectorMs);
    return { ...place, dimension, cache };
  };
  return {
    find: async (signal) => {
      if (known !== undefined) return known;
      const found = await look(signal).catch((thrown: unknown) => asNoEmbedder(thrown, settings.embed_model));
      if (!signal.aborted) known = found;
      return found;
    },
    [Symbol.dispose]: () => cache?.[Symbol.dispose](),
  };
}

interface EmbedderRequest {
  readonly host: Host;
  readonly settings: Settings;
  /** The user has named an embed_model. */
  readonly chosen: boolean;
  readonly patience: EmbedderPatience | undefined;
}

function lookFor(wanted: EmbedderRequest, signal: AbortSignal): Promise<Place | NoEmbedder> {
  const { settings, chosen } = wanted;
  const { provider } = settings;
  if (provider === "scripted") return Promise.resolve(noEmbedder("a scripted model gives no vectors", ""));
  if (provider === "openai" && chosen) return onOpenAi(wanted, signal);
  const base_url = provider === "ollama" ? settings.base_url : null;
  return onOllama({ ...wanted, settings: { ...settings, base_url } }, signal);
}

const limitsOf = ({ patience }: EmbedderRequest): { readonly timeoutMs?: number } =>
  patience?.requestMs === undefined ? {} : { timeoutMs: patience.requestMs };

async function onOllama(wanted: EmbedderRequest, signal: AbortSignal): Promise<Place | NoEmbedder> {
  const { host, settings, chosen, patience } = wanted;
  const { embed_model: name } = settings;
  const server = ollamaAddress(host.env, settings.base_url);
  const local = isLocalModel(host, { ...settings, provider: "ollama", chat_model: name });
  if (!local && !chosen) {
    const where = isLoopback(server) ? `${name} at ${server} does not run on` : `${server} is not`;
    const why = `${where} this machine, and no embed_model is set: nothing of the repository is sent there`;
    return noEmbedder(why, `harness config set embed_model ${name}`);
  }
  const { listMs } = patience ?? (local ? LOCAL : REMOTE);
  const listing = await ollamaListing({ baseUrl: server, signal, timeoutMs: listMs });
  if (listing.kind === "too-old")
    return noEmbedder(
      `Ollama ${listing.version} at ${server} is too old; ${MIN_OLLAMA} is the oldest supported version`,
      "update Ollama: https://ollama.com/download",
    );
  if (listing.kind !== "listed")
    return noEmbedder(`no Ollama at ${server} for vectors: ${listing.reason}`, ollamaLine(server, "serve"));
  const listed = listing.models.find((model) => fullName(model.name) === fullName(name));
  if (listed === undefined)
    return noEmbedder(`${server} has no model ${name}`, ollamaLine(server, "pull", name));
  // After another pull, the name may stand for another model, so the id includes the digest.
  const id = `ollama/${fullName(name)}@${listed.digest?.replace(/^sha256:/, "").slice(0, 12) ?? ""}`;
  return found({ id, name, embedder: ollamaEmbedder(server, name, limitsOf(wanted)) }, server, local);
}

async function onOpenAi(wanted: EmbedderRequest, signal: AbortSignal): Promise<Place | NoEmbedder> {
  const { host, settings, patience } = wanted;
  const { base_url: baseUrl, embed_model: name } = settings;
  const key = readKey("openai", { env: host.env, file: host.keysFile }) ?? "";
  const reached = keyedServer("openai", { baseUrl, key });
  const local = isLocalModel(host, { ...settings, chat_model: name });
  if (baseUrl === null && key === "")
    return noEmbedder("OPENAI_API_KEY is not set; the API needs it for vectors", "export OPENAI_API_KEY=KEY");
  if (local) {
    const { models, reason } = await askServer({ ...reached, signal, timeoutMs: (patience ?? LOCAL).listMs });
    // A server without a list may embed anyway.
    if (models === null && !reason.startsWith("HTTP "))
      return noEmbedder(`no embedding server at ${reached.base}: ${reason}`, "harness doctor");
  }
  const embedder = openAiEmbedder({ baseUrl: reached.base, key }, name, limitsOf(wanted));
  return found({ id: `openai/${name}`, name, embedder }, reached.base, local);
}

function found(
  made: { readonly id: string; readonly name: string; readonly embedder: Embedder },
  server: string,
  local: boolean,
): Place {
  const mask = local ? (text: string): string => text : maskSecrets;
  return { kind: "found", model: { ...made, mask }, server, local };
}

const noEmbedder = (reason: string, remedy: string): NoEmbedder => ({ kind: "none", reason, remedy });

function asNoEmbedder(thrown: unknown, name: string): NoEmbedder {
  if (thrown instanceof HarnessError) return noEmbedder(thrown.message, thrown.remedy || CHOOSE);
  if (thrown instanceof Error && /^(?:Timeout|Abort)Error$/.test(thrown.name))
    return {
      ...noEmbedder(`${name} returned no vector in time`, "try again: it may be loading or busy"),
      awaited: name,
    };
  throw thrown;
}
