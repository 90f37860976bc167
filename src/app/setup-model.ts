import { availableParallelism } from "node:os";
import path from "node:path";
import { setSetting } from "../config/config-edit.ts";
import { plural, formatDuration, formatSize } from "../core/wording.ts";
import { HarnessError, type Health } from "../core/errors.ts";
import type { Engine } from "../docker/engine.ts";
import {
  describeGpu,
  findGpu,
  type Gpu,
  isGpu,
  planSidecar,
  runningSidecar,
  type SidecarPlan,
  SIDECARS,
} from "../docker/sidecars.ts";
import { padded } from "../render/tty/columns.ts";
import { imageExists } from "../docker/box-image.ts";
import { upSidecar } from "../docker/sidecar-lifecycle.ts";
import {
  downloadOf,
  fittingModels,
  type ModelChoice,
  type ModelMachine,
  secondsToFirstWord,
  tokensPerSecond,
  usableMemory,
} from "../models/model-kinds.ts";
import { modelHealth } from "../models/model-server.ts";
import { isLoopback, ollamaAddress } from "../models/providers/ollama-client.ts";
import {
  fullName,
  isSameModel,
  ollamaLine,
  ollamaModels,
  ollamaStatus,
  type ServerModel,
} from "../models/providers/ollama-server.ts";
import { startInstalledOllama } from "../models/providers/ollama-setup.ts";
import { download, partOf, pendingDownload } from "./model-download.ts";
import { doneStep, INSTEAD, type SetupContext, replacedStep, type StepResult } from "./setup-steps.ts";

/**
 * Prepares the model of a run: a server that answers, or an installed one, or the sidecar; a model that fits, chosen
 * once; its download. Only an interruption makes it fail the set-up, and nothing is downloaded without consent.
 */
export async function modelStep(
  engine: Engine,
  sidecars: boolean,
  context: SetupContext,
): Promise<StepResult> {
  const { settings } = context.config;
  if (settings.provider !== "ollama") return described(await health(settings.chat_model, context), []);
  const server = ollamaAddress(context.host.env, settings.base_url);
  const ready = new ModelSetup({ engine, sidecars, server }, context);
  return await ready.result();
}

interface Where {
  readonly engine: Engine;
  readonly sidecars: boolean;
  /** The address at which Ollama is dialled. */
  readonly server: string;
}

/** A part of the set-up that failed, with what to type next. */
interface Lacking {
  readonly detail: string;
  readonly remedy: string;
}

const INSTALL = "install Ollama from https://ollama.com/download";
const AGREE = "./start.sh --yes";
/** Approximate: the registry's figure for the image changes from version to version. */
const IMAGE_BYTES = 2e9;

class ModelSetup {
  readonly #where: Where;
  readonly #context: SetupContext;
  readonly #plan: SidecarPlan;
  /** What a person should know besides the state of the model. */
  readonly #notes: string[] = [];
  #gpu: Gpu | null = null;
  /** The answering server is the sidecar. */
  #isSidecar = false;

  constructor(where: Where, context: SetupContext) {
    this.#where = where;
    this.#context = context;
    this.#plan = planSidecar(context.project ?? SIDECARS, "ollama");
  }

  async result(): Promise<StepResult> {
    const lacking = (await this.#down()) ? await this.#bringServer() : null;
    if (lacking !== null) return replacedStep(INSTEAD.ollama, lacking.detail, lacking.remedy);
    const chosen = await this.#chosen();
    if ("remedy" in chosen) return replacedStep(INSTEAD.ollama, chosen.detail, chosen.remedy);
    const missing = await this.#pulled(chosen);
    if (missing !== null) return replacedStep(INSTEAD.ollama, missing.detail, missing.remedy);
    return described(await health(chosen.model, this.#context), this.#notes);
  }

  async #down(): Promise<boolean> {
    const { server } = this.#where;
    const { signal, config } = this.#context;
    const { chat_model: model } = config.settings;
    return (await ollamaStatus({ baseUrl: server, model, signal, timeoutMs: 5000 })).kind === "down";
  }

  /** Null once a server answers, or if the server is not one that this machine could start. */
  async #bringServer(): Promise<Lacking | null> {
    const { server, sidecars } = this.#where;
    const { host, signal, workspace, onLine } = this.#context;
    if (!isLoopback(server)) return null;
    onLine("starting ollama");
    const started = await startInstalledOllama({
      env: host.env,
      baseUrl: server,
      logFile: path.join(host.places.state, "ollama.log"),
      signal,
      workspace,
    });
    if (started.kind === "started") return null;
    const mend = started.kind === "failed" ? ollamaLine(server, "serve") : INSTALL;
    const why =
      started.kind === "failed" ? `the installed one fails: ${started.reason}` : "none is installed";
    const detail = `no Ollama answers at ${server}, and ${why}`;
    if (!sidecars) return { detail, remedy: `${mend}   or leave --no-sidecars out` };
    if (!this.#plan.addresses.includes(new URL(server).host.replace("localhost", "127.0.0.1")))
      return {
        detail,
        remedy: `${mend}; the sidecar answers only at ${this.#plan.addresses.join(", ")}`,
      };
    return this.#sidecar(detail);
  }

  async #sidecar(detail: string): Promise<Lacking | null> {
    const { engine } = this.#where;
    const { confirm, signal } = this.#context;
    const { image } = this.#plan;
    const found = await findGpu(engine.api, engine.endpoint.host);
    if (found.kind === "not-handed-on")
      this.#notes.push(
        "the engine cannot pass this machine's NVIDIA card to containers: install nvidia-container-toolkit, or Ollama on the host",
      );
    // An image that is already here costs no download: it was agreed to before, or the user brought it.
    const here = await imageExists(engine, image);
    const card = isGpu(found) ? `, on ${describeGpu(found)}` : "";
    const [best] = fittingModels(this.#machine(found.kind === "nvidia", true));
    const question = `${detail}. Start it in a container${card}? The image ${image} is a download of about ${formatSize(IMAGE_BYTES)}, once; only this machine can reach it, and ./stop.sh stops it.`;
    if (!here && !(await confirm(question)))
      return {
        detail: `${detail}; nothing was downloaded`,
        remedy: `${AGREE}   starts it in a container (image: about ${formatSize(IMAGE_BYTES)}) and loads ${best === undefined ? "a model" : nameWithSize(best)}; or ${INSTALL}`,
      };
    const failed = await this.#up(isGpu(found) ? found : null);
    signal.throwIfAborted();
    if (failed === null) return null;
    return { detail: `${detail}; the sidecar: ${failed}`, remedy: `${INSTALL}, then: ./start.sh` };
  }

  /**
   * Null once the sidecar runs. If it cannot be started with the graphics card, it starts without, and a note says so.
   */
  async #up(gpu: Gpu | null): Promise<string | null> {
    const { engine } = this.#where;
    const { signal, onLine, project = SIDECARS } = this.#context;
    onLine(`starting ${this.#plan.image}`);
    const sidecar = await upSidecar(engine.api, planSidecar(project, "ollama", gpu), { signal, onLine });
    if (sidecar.state === "running") {
      this.#gpu = gpu;
      this.#isSidecar = true;
      this.#notes.push(`in a container${gpu === null ? "" : ` on ${describeGpu(gpu)}`}`);
      return null;
    }
    if (gpu === null || sidecar.state === "no-image" || signal.aborted) return sidecar.detail;
    this.#notes.push(`without ${describeGpu(gpu)}: ${sidecar.detail}`);
    return this.#up(null);
  }

  /** The model of a run: one that was ever chosen; otherwise the person picks an offer, which is kept from then on. */
  async #chosen(): Promise<Chosen | Lacking> {
    const { settings, origins } = this.#context.config;
    const own: Chosen = { model: settings.chat_model, agreed: false };
    if ((origins["chat_model"] ?? "default") !== "default") return own;
    const { server } = this.#where;
    const { signal } = this.#context;
    const found = await ollamaModels({ baseUrl: server, signal, timeoutMs: 10_000 });
    if (found.kind === "none" || found.models.some(({ name }) => isSameModel(name, own.model))) return own;
    const machine = await this.#machineBehind();
    const offers = offersOf(found.models, machine);
    if (offers.length === 0) return tooSmall(machine);
    const at = await this.#context.choose(
      questionOf(offers, machine),
      offers.map(({ row }) => row),
    );
    const chosen = at === null ? undefined : offers[at];
    if (chosen === undefined) return declined(offers, server);
    await this.#keep(chosen.model);
    return { model: chosen.model, agreed: true };
  }

  /**
   * An Ollama on the host finds its graphics card by itself; the sidecar has the card that it was given, and limited
   * memory.
   */
  async #machineBehind(): Promise<ModelMachine> {
    const { engine } = this.#where;
    if (this.#isSidecar) return this.#machine(this.#gpu !== null && this.#gpu.kind === "nvidia", true);
    const sidecar = await runningSidecar(engine.api, this.#plan);
    if (sidecar !== null) return this.#machine(sidecar.gpu, true);
    const { kind } = await findGpu(engine.api, engine.endpoint.host);
    return this.#machine(kind === "nvidia" || kind === "not-handed-on", false);
  }

  /** It is unknown whether Ollama can use a card behind /dev/dri, so only NVIDIA cards count. */
  #machine(gpu: boolean, sidecar: boolean): ModelMachine {
    const usable = usableMemory();
    const most = sidecar ? (this.#plan.container.HostConfig?.Memory ?? usable) : usable;
    return { memory: Math.min(usable, most), cores: availableParallelism(), gpu };
  }

  async #keep(model: string): Promise<void> {
    const [file] = this.#context.host.places.configFiles;
    try {
      await setSetting(file, "chat_model", model);
      this.#notes.push(`chat_model is ${model} from now on (${file})`);
    } catch (thrown) {
      if (!(thrown instanceof HarnessError)) throw thrown;
      this.#notes.push(`the choice could not be saved: ${thrown.message}`);
    }
  }

  /** Null once the model is on the server. Consent to its download includes the model for search. */
  async #pulled({ model, agreed }: Chosen): Promise<Lacking | null> {
    const { server } = this.#where;
    const { signal } = this.#context;
    const status = await ollamaStatus({ baseUrl: server, model, signal, timeoutMs: 5000 });
    if (status.kind !== "model-missing") return null;
    const begun = await pendingDownload(this.#context, server, model);
    const part =
      begun !== undefined && begun.completed > 0 ? `; ${partOf(begun)} of it are already here` : "";
    if (!agreed && !(await this.#agreed(model, begun !== undefined))) {
      const size = downloadOf(model);
      const bytes = size === null ? "" : ` (${formatSize(size)})`;
      const named = (await health(model, this.#context)).find(({ id }) => id === "model.name");
      const there = named === undefined ? `${model} is not on the server` : named.detail;
      const others = named === undefined ? "" : `   or: ${named.remedy}`;
      return {
        detail: `${there}; nothing was downloaded${part}`,
        remedy: `${AGREE}   loads ${model}${bytes}${others}`,
      };
    }
    const loaded = await download(server, model, this.#context);
    if (loaded.kind === "failed")
      return { detail: loaded.reason, remedy: `${loaded.remedy}   or again: ./start.sh` };
    await this.#embedder();
    return null;
  }

  /** A download that was begun continues without another question, if a person is there or has said yes. */
  async #agreed(model: string, begun: boolean): Promise<boolean> {
    const { attended, yes, confirm } = this.#context;
    if (begun && (attended || yes)) return true;
    const size = downloadOf(model);
    const bytes = size === null ? "" : `, ${formatSize(size)}`;
    return confirm(
      `The model ${model} is not on the server. Load it now${bytes}? Ctrl-C keeps what has arrived, and the next start continues.`,
    );
  }

  /** Without this model, searches use words alone, so a failure never prevents a run. */
  async #embedder(): Promise<void> {
    const { server } = this.#where;
    const { config, signal } = this.#context;
    const { embed_model: model } = config.settings;
    const found = await ollamaModels({ baseUrl: server, signal, timeoutMs: 10_000 });
    if (found.kind === "none" || found.models.some(({ name }) => isSameModel(name, model))) return;
    const loaded = await download(server, model, this.#context);
    this.#notes.push(
      loaded.kind === "done" ? `${model} for search` : `search uses words only: ${loaded.reason}`,
    );
  }
}

interface Chosen {
  readonly model: string;
  /** Its download was agreed to with the choice. */
  readonly agreed: boolean;
}

interface Offer {
  readonly model: string;
  readonly row: string;
  /** Bytes to download; 0 if the model is already there. */
  readonly bytes: number;
}

/** Present models come before downloads; among present models, those that call tools come first. */
function offersOf(there: readonly ServerModel[], machine: ModelMachine): readonly Offer[] {
  const chats = there
    .filter(({ kind, size }) => kind === "chat" && (size ?? 0) <= machine.memory)
    .toSorted((a, b) => Number(b.tools) - Number(a.tools));
  const present = chats.map(({ name, size, tools }): Offer => ({
    model: name,
    bytes: 0,
    row: `${padded(name, 16)} on the server${size === null ? "" : `, ${formatSize(size)}`}${tools === false ? "; not trained to call tools" : ""}`,
  }));
  const names = new Set(chats.map(({ name }) => fullName(name)));
  const loads = fittingModels(machine)
    .filter(({ name }) => !names.has(fullName(name)))
    .map((choice): Offer => ({
      model: choice.name,
      bytes: choice.download,
      row: `${choice.name.padEnd(16)} ${formatSize(choice.download)} to load, ${formatSize(choice.memory)} of memory${paceOf(choice, machine)}`,
    }));
  return [...present, ...loads];
}

function paceOf(choice: ModelChoice, machine: ModelMachine): string {
  if (machine.gpu) return "";
  const first = formatDuration(secondsToFirstWord(choice, machine) * 1000);
  const rate = tokensPerSecond(choice, machine);
  return `; about ${first} to its first word here, then ${rate < 10 ? rate.toFixed(1) : Math.round(rate)} tokens a second`;
}

const nameWithSize = ({ name, download: bytes }: ModelChoice): string => `${name} (${formatSize(bytes)})`;

function questionOf(offers: readonly Offer[], { memory, cores, gpu }: ModelMachine): string {
  const processor = gpu ? "a graphics card" : plural(cores, "processor");
  const beside = offers.some(({ bytes }) => bytes > 0)
    ? " A small model for search by meaning is downloaded along with one that is not there yet."
    : "";
  return `A run needs a chat model. These fit ${formatSize(memory)} of memory and ${processor}; your choice is kept as chat_model.${beside}`;
}

function declined(offers: readonly Offer[], server: string): Lacking {
  const [first] = offers;
  const name = first?.model ?? "";
  const what =
    first === undefined || first.bytes === 0
      ? `uses ${name}, which is already there`
      : `loads ${name} (${formatSize(first.bytes)})`;
  return {
    detail: `no chat model is chosen for ${server}; nothing was downloaded`,
    remedy: `${AGREE}   ${what}; or another: harness config set chat_model NAME`,
  };
}

const tooSmall = (machine: ModelMachine): Lacking => ({
  detail: `no listed model fits ${formatSize(machine.memory)} of memory and ${machine.cores} processors`,
  remedy:
    "harness config set base_url http://HOST:11434   (an Ollama on another machine), or: harness config set provider openai",
});

const health = (model: string, { config, host, signal }: SetupContext): Promise<readonly Health[]> =>
  modelHealth({
    provider: config.settings.provider,
    baseUrl: config.settings.base_url,
    model,
    maxContext: config.settings.max_context_tokens,
    env: host.env,
    keysFile: host.keysFile,
    signal,
  });

function described(checks: readonly Health[], notes: readonly string[]): StepResult {
  const bad = checks.find(({ state }) => state === "fail");
  if (bad !== undefined) return replacedStep(INSTEAD.ollama, [bad.detail, ...notes].join("; "), bad.remedy);
  return doneStep([checks.map(({ detail }) => detail).join(", "), ...notes].join("; "));
}
