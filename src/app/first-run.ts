/** The first run: the model servers of this machine, what they offer, and which settings are written for the user. */
import { existsSync } from "node:fs";
import path from "node:path";
import { setSettings } from "../config/config-edit.ts";
import { loadConfig } from "../config/load-config.ts";
import { formatSize } from "../core/wording.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { PROVIDER_SERVERS, readKey } from "../models/provider-servers.ts";
import { kindOf, MODEL_CHOICES, usableMemory } from "../models/model-kinds.ts";
import { askServer, keyedServer } from "../models/model-server.ts";
import { isLoopback, ollamaAddress } from "../models/providers/ollama-client.ts";
import { isSameModel, ollamaModels, quoted } from "../models/providers/ollama-server.ts";
import { replaceFile } from "../platform/safe-files.ts";
import { padded } from "../render/tty/columns.ts";
import type { Host } from "./host.ts";
import { makeFolder } from "../platform/folders.ts";

export const LOCAL_PROVIDERS = ["ollama", "lmstudio", "llamacpp", "vllm"] as const;
export type LocalProvider = (typeof LOCAL_PROVIDERS)[number];

type Env = Readonly<Record<string, string | undefined>>;

/** Where a server may answer. */
export interface ServerPlace {
  readonly provider: LocalProvider;
  readonly address: string;
  /** A run finds the server there without base_url. */
  readonly usual: boolean;
  /** Empty if no key is sent. */
  readonly key: string;
}

export interface ServerOffer {
  readonly place: ServerPlace;
  readonly model: string;
  /** Bytes on disk; null if the server does not tell. */
  readonly size: number | null;
  /** Whether the model was made to call tools; null if the server does not tell. */
  readonly tools: boolean | null;
}

/** The answer of one place: offers, or a reason why it is of no use. */
export interface PlaceAnswer {
  readonly place: ServerPlace;
  readonly offers: readonly ServerOffer[];
  readonly reason: string;
}

const KEYS = ["base_url", "provider", "chat_model"] as const;
type WrittenKey = (typeof KEYS)[number];

/** These settings in the user's own file; undefined if the file does not set them. */
export type OwnSettings = Readonly<Partial<Record<WrittenKey, string | null>>>;

export interface SettingWrite {
  readonly key: WrittenKey;
  readonly value: string | null;
  /** The current value in the file; undefined if there is none. */
  readonly before: string | null | undefined;
}

/** Reads the user's file alone: neither environment nor project may hide what would be overwritten. */
export async function ownSettings(host: Host): Promise<OwnSettings> {
  const hidden = new Set(KEYS.map((key) => `HARNESS_${key.toUpperCase()}`));
  const env = Object.fromEntries(Object.entries(host.env).filter(([name]) => !hidden.has(name)));
  const { settings, origins } = await loadConfig({ env, project: undefined, flags: new Map() });
  const set = KEYS.filter((key) => (origins[key] ?? "default") !== "default");
  return Object.fromEntries(set.map((key) => [key, settings[key]]));
}

/** The addresses to ask, all on this machine; configured servers elsewhere are left out. */
export function serverPlaces(host: Host, own: OwnSettings, only?: LocalProvider): readonly ServerPlace[] {
  const places = LOCAL_PROVIDERS.filter((provider) => only === undefined || provider === only).map(
    (provider): ServerPlace => {
      const standing = provider === (own.provider ?? "ollama") ? (own.base_url ?? null) : null;
      const address = addressOf(provider, host.env, standing);
      const usual = address === addressOf(provider, {}, null);
      return { provider, address, usual, key: only === undefined ? "" : keyFor(host, provider) };
    },
  );
  const near = places.filter(({ address }) => isLoopback(address));
  const origins = near.map(({ address }) => new URL(address).origin);
  return near.filter((_, at) => origins.indexOf(origins[at] ?? "") === at);
}

const addressOf = (provider: LocalProvider, env: Env, base: string | null): string =>
  provider === "ollama" ? ollamaAddress(env, base) : keyedServer(provider, { baseUrl: base, key: "" }).base;

/** A key is sent only to a server that was named, because any program may listen at the usual ports. */
const keyFor = (host: Host, provider: LocalProvider): string =>
  provider === "ollama" ? "" : (readKey(provider, { env: host.env, file: host.keysFile }) ?? "");

const TIMEOUT_MS = 2500;

/** Asks all places side by side. Throws only on an interruption. */
export async function askPlaces(
  places: readonly ServerPlace[],
  signal: AbortSignal,
  timeoutMs = TIMEOUT_MS,
): Promise<readonly PlaceAnswer[]> {
  const answers = await Promise.all(places.map((place) => askPlace(place, signal, timeoutMs)));
  signal.throwIfAborted();
  return answers;
}

async function askPlace(place: ServerPlace, signal: AbortSignal, timeoutMs: number): Promise<PlaceAnswer> {
  const { provider, address, key } = place;
  if (provider === "ollama") {
    const found = await ollamaModels({ baseUrl: address, signal, timeoutMs });
    if (found.kind === "none") return { place, offers: [], reason: found.reason };
    const chats = found.models.filter(({ kind }) => kind === "chat");
    return offering(
      place,
      chats.map(({ name, size, tools }) => ({ place, model: name, size, tools })),
    );
  }
  const { base, list, headers } = keyedServer(provider, { baseUrl: address, key });
  const { models, reason, wordOn } = await askServer({ base, list, headers, signal, timeoutMs });
  if (models === null) return { place, offers: [], reason };
  const chats = models.filter((model) => kindOf(model, null) === "chat");
  return offering(
    place,
    chats.map((model) => ({ place, model, size: null, tools: wordOn(model).tools })),
  );
}

const offering = (place: ServerPlace, offers: readonly ServerOffer[]): PlaceAnswer => ({
  place,
  offers,
  reason: offers.length === 0 ? "it answers, but has no chat model" : "",
});

const titleOf = ({ provider }: ServerPlace): string =>
  provider === "ollama" ? "Ollama" : PROVIDER_SERVERS[provider].title;

/** Offers that match the current settings come first, then those that fit the memory, then those made to call tools. */
export function rankedOffers(
  answers: readonly PlaceAnswer[],
  own: OwnSettings,
  memory = usableMemory(),
): readonly ServerOffer[] {
  const stands = ({ place, model }: ServerOffer): boolean =>
    own.chat_model !== undefined &&
    isSameModel(model, own.chat_model ?? "") &&
    place.provider === (own.provider ?? place.provider);
  const rank = (offer: ServerOffer): number =>
    (stands(offer) ? 0 : 8) + (fits(offer, memory) ? 0 : 4) + (offer.tools === false ? 2 : 0);
  return answers.flatMap(({ offers }) => offers).toSorted((one, other) => rank(one) - rank(other));
}

/** A model of unknown size is taken to fit: it is already on the server. */
function fits({ model, size }: ServerOffer, memory: number): boolean {
  const known = MODEL_CHOICES.find(({ name }) => isSameModel(name, model));
  return (known?.memory ?? size ?? 0) <= memory;
}

export function rowOf(offer: ServerOffer): string {
  const { place, model, size, tools } = offer;
  const facts = [
    `${titleOf(place)} at ${place.address}`,
    ...(size === null ? [] : [formatSize(size)]),
    ...(fits(offer, usableMemory()) ? [] : ["more than this machine's memory holds"]),
    ...(tools === false ? ["not trained to call tools"] : []),
  ];
  return `${padded(model, 20)} ${facts.join(", ")}`;
}

/** The offers with this name, or all offers without a name. Throws if no server answers with an offer. */
export function wantedOffers(
  offers: readonly ServerOffer[],
  answers: readonly PlaceAnswer[],
  model: string | undefined,
): readonly ServerOffer[] {
  if (offers.length === 0) throw nothingFound(answers);
  const wanted = offers.filter((offer) => model === undefined || isSameModel(offer.model, model));
  if (wanted.length > 0) return wanted;
  const there = offers.map((offer) => offer.model).join(", ");
  const servers = answers.filter(({ offers: some }) => some.length > 0).map(({ place }) => titleOf(place));
  throw new HarnessError(
    EXIT.model,
    `${model} is not on ${servers.join(", ")}; there: ${there}`,
    servers.includes("Ollama") ? `ollama pull ${quoted(model ?? "")}` : "harness init",
  );
}

function nothingFound(answers: readonly PlaceAnswer[]): HarnessError {
  const tried = answers.map(({ place, reason }) => `${titleOf(place)} at ${place.address} (${reason})`);
  const empty = answers.some(
    ({ place, reason }) => place.provider === "ollama" && reason.startsWith("it answers"),
  );
  return new HarnessError(
    EXIT.model,
    tried.length === 0
      ? "there is no address on this machine to try: only loopback addresses are tried"
      : `no chat model was found on this machine; tried ${tried.join("; ")}`,
    `./start.sh   or: ${empty ? "ollama pull qwen3:8b" : "ollama serve"}`,
  );
}

/** The settings to write for a run to use this offer. */
export function changesFor({ place, model }: ServerOffer, own: OwnSettings): readonly SettingWrite[] {
  const wanted = {
    base_url: place.usual ? null : place.address,
    provider: place.provider,
    chat_model: model,
  };
  return KEYS.filter((key) => !isUnchanged(key, wanted[key], own[key])).map((key) => ({
    key,
    value: wanted[key],
    before: own[key],
  }));
}

function isUnchanged(key: WrittenKey, wanted: string | null, standing: string | null | undefined): boolean {
  if (wanted === null) return (standing ?? null) === null;
  if (key === "chat_model" && typeof standing === "string") return isSameModel(wanted, standing);
  return wanted === standing;
}

/** Whether an existing value would be replaced. */
export const overwrites = ({ before }: SettingWrite): boolean => before !== undefined && before !== null;

export const writeChanges = (file: string, changes: readonly SettingWrite[]): Promise<void> =>
  setSettings(
    file,
    changes.map(({ key, value }) => [key, value ?? "null"]),
  );

/** The commands that make the same changes. */
export const commandsFor = (changes: readonly SettingWrite[]): string =>
  changes.map(({ key, value }) => `harness config set ${key} ${quoted(value ?? "null")}`).join(" && ");

const welcomeFile = ({ places }: Host): string => path.join(places.state, "welcomed");

/** Whether a user without a configured model has already seen the welcome. */
export const isWelcomed = (host: Host): boolean => existsSync(welcomeFile(host));

/** If the file cannot be written, the welcome is shown again. */
export async function noteWelcome(host: Host): Promise<void> {
  try {
    makeFolder(host.places.state);
    await replaceFile(welcomeFile(host), "", { lasts: "content" });
  } catch {
    return;
  }
}
