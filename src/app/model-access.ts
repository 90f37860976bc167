import type { Settings } from "../config/settings-schema.ts";
import { formatDuration } from "../core/wording.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { CallForm, Capabilities, Price, Provider } from "../core/model-provider.ts";
import { AnthropicWire } from "../models/providers/anthropic-api.ts";
import { type KeyedProvider, readKey } from "../models/provider-servers.ts";
import {
  capabilitiesOf,
  NOT_REPORTED,
  ollamaCapabilities,
  providerWithCapabilities,
  wantedWindow,
} from "../models/capabilities.ts";
import { askServer, keyedServer, requireKey, type ServerAnswer } from "../models/model-server.ts";
import {
  callsOf,
  type ProbeRecord,
  type ProbeSubject,
  readProbes,
  recordOn,
  writeProbe,
} from "../models/model-probe.ts";
import { FEW_BILLIONS, kindOf, type ModelKind, sizeInName } from "../models/model-kinds.ts";
import { type RequestLimits, WireFailure } from "../models/model-api.ts";
import { dayOf, priceOf } from "../models/token-usage.ts";
import { isLoopback, ollamaAddress } from "../models/providers/ollama-client.ts";
import { OllamaWire } from "../models/providers/ollama-api.ts";
import { fullName, ollamaModels } from "../models/providers/ollama-server.ts";
import { OpenAiWire } from "../models/providers/openai-api.ts";
import { makeProvider } from "../models/provider.ts";
import { readScenario } from "../models/providers/scenario.ts";
import { scriptedCapabilities, ScriptedWire } from "../models/providers/scripted-api.ts";
import { type BackPressure, RETRIES } from "../core/server-wait.ts";
import { SharedWait } from "../platform/waits.ts";
import type { Host } from "./host.ts";

/** The model of a command: the client that the settings ask for, the models of its server, and what they cost. */

/** When the server asks one run to wait, every run with the same state folder waits too. */
const pressureOf = (host: Host, server: string): BackPressure =>
  new SharedWait(host.places.state, server, RETRIES.longestMs);

export interface ModelClient {
  /** The server as people and probes name it. */
  readonly server: string;
  readonly list: (signal: AbortSignal) => Promise<ModelListing>;
  /** What is assumed of a model. Never fails: if no server answers, the built-in table decides. */
  readonly capabilities: (model: string, signal: AbortSignal) => Promise<Capabilities>;
  /** The identity under which a probe of the model is kept. */
  readonly subject: (model: string, signal: AbortSignal) => Promise<ProbeSubject>;
  /** With `calls`, calls have that form whatever is assumed. */
  readonly provider: (calls?: CallForm) => Provider;
  /** The API can hold a reply to a schema. */
  readonly holds: boolean;
}

interface ModelListing {
  /** Null if the server gave no list. */
  readonly models: readonly string[] | null;
  readonly reason: string;
  /** What the server says each model is for; left out if it says nothing. */
  readonly kinds?: ReadonlyMap<string, ModelKind>;
}

/** Refuses settings that no request could be made with, such as an API without its key, before anything begins. */
export const checkModelSettings = (host: Host, settings: Settings): void =>
  void modelClient(host, settings).provider();

export function modelClient(host: Host, settings: Settings): ModelClient {
  const { provider } = settings;
  switch (provider) {
    case "ollama":
      return ollamaClient(host, settings);
    case "scripted":
      return scriptedClient(settings);
    default:
      return keyedClient(host, provider, settings);
  }
}

const TIMEOUT_MS = 5000;

const inForm = (assumed: Capabilities, calls: CallForm | undefined): Capabilities =>
  calls === undefined ? assumed : { ...assumed, calls, tools: calls === "native" };

/** A server reached with a key, or without one if it wants none. */
function keyedClient(host: Host, name: KeyedProvider, settings: Settings): ModelClient {
  const { base_url: baseUrl, capabilities: user, max_context_tokens: maxContext, prices } = settings;
  const key = readKey(name, { env: host.env, file: host.keysFile }) ?? "";
  const reached = keyedServer(name, { baseUrl, key });
  const subject = (model: string): ProbeSubject => ({ model, server: reached.base, version: "" });
  let known: ServerAnswer | undefined;
  const answer = async (signal: AbortSignal): Promise<ServerAnswer> => {
    if (known !== undefined) return known;
    const listing = await askServer({ ...reached, signal, timeoutMs: TIMEOUT_MS });
    if (listing.models !== null) known = listing;
    return listing;
  };
  const capabilities = async (model: string, signal: AbortSignal): Promise<Capabilities> => {
    const [{ wordOn }, probe] = await Promise.all([answer(signal), probedCalls(host, subject(model))]);
    return capabilitiesOf(model, { user, maxContext, probe, server: wordOn(model) });
  };
  const provider = (calls?: CallForm): Provider => {
    requireKey(name, reached.base, key);
    const Api = name === "anthropic" ? AnthropicWire : OpenAiWire;
    return providerWithCapabilities(new Api({ baseUrl: reached.base, key, whole: !settings.stream }), {
      limits: limitsOf(settings),
      pressure: pressureOf(host, reached.base),
      prices,
      keys: key === "" ? [] : [key],
      capabilities: async (model, signal) => {
        const assumed = await capabilities(model, signal);
        return inForm(assumed, calls);
      },
    });
  };
  return {
    server: reached.base,
    list: answer,
    capabilities,
    subject: (model) => Promise.resolve(subject(model)),
    provider,
    holds: name !== "anthropic",
  };
}

const OLLAMA_TIMEOUT_MS = 5000;

/** Ollama's models through one wire, so that all requests get the same context window. */
function ollamaClient(host: Host, settings: Settings): ModelClient {
  const { base_url, capabilities: user, max_context_tokens: maxContext, prices } = settings;
  const own = { user, maxContext };
  const baseUrl = ollamaAddress(host.env, base_url);
  const wire = new OllamaWire({
    baseUrl,
    wanted: (model) => wantedWindow(model, own),
    whole: !settings.stream,
  });
  const subject = async (model: string, signal: AbortSignal): Promise<ProbeSubject> => {
    const facts = await wire.modelInForce(model, signal).catch(() => undefined);
    return { model, server: baseUrl, version: facts?.version ?? "" };
  };
  const capabilities = async (model: string, signal: AbortSignal): Promise<Capabilities> => {
    const facts = await wire.modelInForce(model, signal).catch(() => undefined);
    if (facts === undefined) return capabilitiesOf(model, { ...own, probe: null, server: NOT_REPORTED });
    const probe = await probedCalls(host, { model, server: baseUrl, version: facts.version ?? "" });
    return ollamaCapabilities(model, facts, { ...own, probe });
  };
  return {
    server: baseUrl,
    list: (signal) => listOf(baseUrl, signal),
    capabilities,
    subject,
    holds: true,
    provider: (calls) =>
      providerWithCapabilities(wire, {
        limits: limitsOf(settings),
        pressure: pressureOf(host, baseUrl),
        prices,
        capabilities: async (model, signal) => {
          const assumed = await capabilities(model, signal);
          return inForm(assumed, calls);
        },
      }),
  };
}

async function listOf(baseUrl: string, signal: AbortSignal): Promise<ModelListing> {
  const found = await ollamaModels({ baseUrl, signal, timeoutMs: OLLAMA_TIMEOUT_MS });
  if (found.kind === "none") return { models: null, reason: found.reason };
  return {
    models: found.models.map(({ name }) => name),
    reason: "",
    kinds: new Map(found.models.map(({ name, kind }) => [name, kind])),
  };
}

/** The model is the scenario's file. */
function scriptedClient(settings: Settings): ModelClient {
  return {
    server: "a scenario file",
    list: () => Promise.resolve({ models: [settings.chat_model], reason: "" }),
    capabilities: (model) => Promise.resolve(capabilitiesIn(model)),
    subject: (model) => Promise.resolve({ model, server: "scripted", version: "" }),
    holds: false,
    provider: (calls) => {
      // One provider plays a scenario once, from its first step, whoever makes the first request.
      const wires = new Map<string, ScriptedWire>();
      const wireOf = (model: string): ScriptedWire => {
        const wire = wires.get(model) ?? new ScriptedWire(readScenario(model));
        wires.set(model, wire);
        return wire;
      };
      return makeProvider(
        { send: (request, signal) => wireFor(wireOf, request.model).send(request, signal) },
        {
          limits: limitsOf(settings),
          prices: settings.prices,
          capabilities: (model) => {
            return Promise.resolve(inForm(capabilitiesIn(model), calls));
          },
        },
      );
    },
  };
}

/** An unreadable scenario gets the default assumptions; the request then says what is wrong. */
function capabilitiesIn(file: string): Capabilities {
  try {
    return scriptedCapabilities(readScenario(file));
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    return scriptedCapabilities({ file, steps: [], capabilities: {} });
  }
}

/** A missing or broken scenario counts as a missing model. */
function wireFor(wireOf: (model: string) => ScriptedWire, model: string): ScriptedWire {
  try {
    return wireOf(model);
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    throw new WireFailure("no_model", thrown.message, { remedy: thrown.remedy });
  }
}

/** How long to wait for a model. */
export const limitsOf = (settings: Settings): Partial<RequestLimits> => ({
  connectMs: settings.connect_timeout,
  firstMs: settings.first_token_timeout,
  idleMs: settings.idle_timeout,
});

/** The form of calls that worked when the model was probed; null if it was not probed. */
async function probedCalls({ places }: Host, subject: ProbeSubject): Promise<CallForm | null> {
  const record = recordOn(await readProbes(places.state), subject);
  return record === undefined ? null : callsOf(record);
}

/** A model that the server has, or that is configured. */
export interface ListedModel {
  readonly model: string;
  readonly configured: boolean;
  /** Null if the server gives no list. */
  readonly present: boolean | null;
  /** What the model is for, by the server's word or its name. */
  readonly kind: ModelKind;
  readonly assumed: Capabilities;
}

/** The models of the server, the configured one first, with what is assumed of each. */
export async function listModels(
  client: ModelClient,
  configured: string,
  signal: AbortSignal,
): Promise<{ readonly listing: ModelListing; readonly rows: readonly ListedModel[] }> {
  const listing = await client.list(signal);
  const rows = withConfigured(listing.models, configured).map(async (row) => ({
    ...row,
    kind: listing.kinds?.get(row.model) ?? kindOf(row.model, null),
    assumed: await client.capabilities(row.model, signal),
  }));
  return { listing, rows: await Promise.all(rows) };
}

/** The configured model first, whether the server has it or not. */
function withConfigured(
  models: readonly string[] | null,
  configured: string,
): readonly Omit<ListedModel, "assumed" | "kind">[] {
  const found = models?.find((model) => fullName(model) === fullName(configured));
  const present = models === null ? null : found !== undefined;
  const others = (models ?? []).filter((model) => model !== found);
  return [
    { model: found ?? configured, configured: true, present },
    ...others.map((model) => ({ model, configured: false, present: true })),
  ];
}

export type ProbedModel = Required<ProbeRecord> & { readonly usable: boolean };

/** Tests whether a model calls tools, and keeps the result. */
export async function probeModel(
  { places }: Host,
  client: ModelClient,
  model: string,
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<ProbedModel> {
  const { probeCalls } = await import("../models/model-probe.ts");
  note(`asking ${model} at ${client.server}; loading it may take minutes`);
  const result = await probeCalls({
    model,
    native: client.provider("native"),
    written: client.provider("text"),
    ...(client.holds ? { withSchema: client.provider("held") } : {}),
    signal,
    onWait: (ms, reason) => note(`retrying in ${formatDuration(ms)}: ${reason}`),
    onCheck: (name, passed) => note(`${name}: ${passed ? "works" : "does not work"}`),
  });
  if (result.kind !== "made") {
    signal.throwIfAborted();
    const { reason, remedy } = result.failure;
    throw new HarnessError(EXIT.model, `${model}: ${reason}`, remedy);
  }
  const { checks, native, usable, calls, shares } = result;
  const at = new Date().toISOString();
  const record = { ...(await client.subject(model, signal)), native, calls, shares, checks, at };
  await writeProbe(places.state, record).catch((thrown: unknown) => {
    const why = `${places.state}: the result of the probe could not be saved`;
    throw new HarnessError(EXIT.failed, why, `ls -ld ${places.state}`, thrown);
  });
  if (calls !== "native") await noteUnknownSize(client, model, note, signal);
  return { ...record, usable };
}

/** A model that calls tools badly is often small, and a small model gets more help. */
async function noteUnknownSize(
  client: ModelClient,
  model: string,
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  if (sizeInName(model) !== undefined) return;
  const { parameters } = await client.capabilities(model, signal);
  if (parameters !== undefined) return;
  const row = JSON.stringify([{ prefix: model, parameters: 1_500_000_000 }]);
  note(
    `neither the name nor the server says how large ${model} is, so it counts as large. If it has at most ${FEW_BILLIONS} billion parameters, set how many, for more help: "capabilities": ${row}`,
  );
}

/** Whether everything sent to the model stays on this machine. Models that a local server forwards to are not local. */
export function isLocalModel(
  { env }: Pick<Host, "env">,
  { provider, base_url, chat_model }: Pick<Settings, "provider" | "base_url" | "chat_model">,
): boolean {
  if (provider === "scripted") return true;
  if (/[:-]cloud$/.test(chat_model)) return false;
  if (provider === "ollama") return isLoopback(ollamaAddress(env, base_url));
  return base_url !== null && isLoopback(base_url);
}

/** Today's price of the model's tokens, if the settings know it. */
export const priceToday = ({
  prices,
  chat_model,
}: Pick<Settings, "prices" | "chat_model">): Price | undefined =>
  priceOf(chat_model, prices, dayOf(Date.now()));

/** Refuses a cost limit that could never take effect because no price is known. */
export function refuseUnpriced(
  cost: number | undefined,
  settings: Pick<Settings, "prices" | "chat_model">,
): void {
  if (cost === undefined || priceToday(settings) !== undefined) return;
  const { chat_model } = settings;
  const row = JSON.stringify([{ model: chat_model, input: 1, output: 5 }]);
  throw new HarnessError(
    EXIT.usage,
    `--max-cost: no price is known for ${chat_model}`,
    `harness config set prices '${row}'   (per million tokens)`,
  );
}
