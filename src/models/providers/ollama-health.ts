import { formatCount, formatSize } from "../../core/text/bounds.ts";
import { ailing, broken, type Health, healthy } from "../../core/health.ts";
import { firstOf } from "../../core/text/short-lists.ts";
import { isLoopback } from "./ollama-address.ts";
import { ollamaModels, type ServerModel } from "./ollama-models.ts";
import { findOllama } from "./ollama-setup.ts";
import {
  MIN_OLLAMA,
  ollamaLine,
  quoted,
  type OllamaStatus,
  ollamaStatus,
  type ReadyModel,
  type StatusRequest,
} from "./ollama-server.ts";
import { contextInForce, serverMemory } from "./ollama-session.ts";

interface OllamaHealthRequest extends StatusRequest {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly maxContext: number | null;
  /** Memory of the server's machine in bytes; detected if left out. */
  readonly memory?: number | null;
}

/** In a smaller window, the system prompt, the tools and one file leave no room to work. */
export const SMALL_CONTEXT = 16_384;
const NAMES_SHOWN = 5;
const DEFAULT_ADDRESS = "http://127.0.0.1:11434";
const DOWNLOAD = "https://ollama.com/download";
const OTHER_MODEL = "harness config set chat_model NAME";

/** What prevents the use of the model. Leaves out what cannot be known yet. */
export async function ollamaHealth(request: OllamaHealthRequest): Promise<readonly Health[]> {
  const status = await ollamaStatus(request);
  const server = await serverHealth(status, request);
  if (status.kind === "model-missing") return [server, missingModel(await modelsOfServer(request), request)];
  if (status.kind !== "ready") return [server];
  const named = modelHealth(status, isChatting(status) ? [] : await modelsOfServer(request));
  return [server, named, contextHealth(status, request)];
}

async function serverHealth(status: OllamaStatus, request: OllamaHealthRequest): Promise<Health> {
  const { baseUrl } = request;
  switch (status.kind) {
    case "down":
      return fail(`no Ollama answers at ${baseUrl}: ${status.reason}`, await startLine(request));
    case "not-ollama":
      return fail(
        `what answers at ${baseUrl} is not Ollama: ${status.reason}`,
        "harness config set base_url http://HOST:11434",
      );
    case "too-old":
      return fail(
        `Ollama ${status.version} at ${baseUrl} cuts long prompts without saying so; ${MIN_OLLAMA} or newer is needed`,
        `update Ollama: ${DOWNLOAD}`,
      );
    case "failing":
      return fail(
        `Ollama ${status.version} at ${baseUrl} fails: ${status.reason}`,
        `restart Ollama (${ollamaLine(baseUrl, "serve")})`,
      );
    default:
      return healthy("model.server", `Ollama ${status.version} at ${baseUrl}`);
  }
}

const fail = (detail: string, remedy: string): Health => broken("model.server", detail, remedy);

async function startLine({ baseUrl, env }: OllamaHealthRequest): Promise<string> {
  if (!isLoopback(baseUrl)) return "harness config set base_url http://HOST:11434";
  const line = ollamaLine(baseUrl, "serve");
  if ((await findOllama(env)) !== undefined) return line;
  const install = `install Ollama from ${DOWNLOAD}, then: ${line}`;
  // No sidecar is published at any other address.
  return baseUrl === DEFAULT_ADDRESS ? `./start.sh   (offers one in a container; or ${install})` : install;
}

/** The server's models, for proposing one instead of the configured model. */
async function modelsOfServer(request: OllamaHealthRequest): Promise<readonly ServerModel[]> {
  const found = await ollamaModels(request);
  return found.kind === "models" ? found.models : [];
}

/** Offers a model that the server has before a download, since it costs none. */
function missingModel(models: readonly ServerModel[], { baseUrl, model }: OllamaHealthRequest): Health {
  const chats = models.filter(({ kind }) => kind === "chat");
  const others = models.length - chats.length;
  const beside = others === 0 ? "" : ` (${others} more cannot chat)`;
  const there =
    models.length === 0
      ? "no model is"
      : chats.length === 0
        ? `no chat model is (${namesOf(models)} cannot)`
        : `${namesOf(chats)} ${chats.length === 1 ? "is" : "are"}${beside}`;
  const pull = ollamaLine(baseUrl, "pull", model);
  const remedy = chats.length === 0 ? pull : `${chooseLine(models)}   (or a download: ${pull})`;
  return broken("model.name", `${model} is not installed; ${there}`, remedy);
}

const namesOf = (models: readonly ServerModel[]): string => firstOf(models, NAMES_SHOWN, ({ name }) => name);

/** The command that chooses one of the server's models: one that calls tools if possible. */
function chooseLine(models: readonly ServerModel[]): string {
  const chats = models.filter(({ kind }) => kind === "chat");
  const chosen = chats.find(({ tools }) => tools === true) ?? chats[0];
  return chosen === undefined ? OTHER_MODEL : `harness config set chat_model ${quoted(chosen.name)}`;
}

const isChatting = ({ capabilities }: ReadyModel): boolean =>
  capabilities === null || capabilities.includes("completion");

function modelHealth(status: ReadyModel, others: readonly ServerModel[]): Health {
  const { model, capabilities, size } = status;
  const detail = size === null ? model : `${model}, ${formatSize(size)}`;
  if (capabilities === null) return healthy("model.name", detail);
  if (!isChatting(status))
    return broken("model.name", `${detail}, cannot chat (${capabilities.join(", ")})`, chooseLine(others));
  return capabilities.includes("tools")
    ? healthy("model.name", detail)
    : ailing(
        "model.name",
        `${detail}, does not call tools natively on this server; its calls are read from its text`,
        OTHER_MODEL,
      );
}

function contextHealth({ context, size }: ReadyModel, request: OllamaHealthRequest): Health {
  const memory = request.memory === undefined ? serverMemory(request.baseUrl) : request.memory;
  const { maxContext } = request;
  const { tokens, limit } = contextInForce({ trained: context.trained, maxContext, memory, modelSize: size });
  const because = {
    trained: "all that the model was trained for",
    setting: "max_context_tokens",
    memory: "what fits in this machine's memory",
    default: "the default; max_context_tokens raises it",
  }[limit];
  const reload =
    context.loaded === null || context.loaded === tokens
      ? ""
      : `; now loaded with ${formatCount(context.loaded)}, so the first request loads it again`;
  const detail = `${formatCount(tokens)} tokens (${because})${reload}`;
  if (tokens >= SMALL_CONTEXT) return healthy("model.context", detail);
  const remedy = limit === "setting" ? "harness config set max_context_tokens 32768" : OTHER_MODEL;
  return ailing("model.context", `${detail}; too few for most tasks`, remedy);
}
