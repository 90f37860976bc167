import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Health } from "../../core/health.ts";
import type { Engine } from "../../docker/engine.ts";
import { modelHealth } from "../../models/health.ts";
import { isLoopback, ollamaAddress } from "../../models/ollama/address.ts";
import { pullModel } from "../../models/ollama/pull.ts";
import { startInstalledOllama } from "../../models/ollama/serve.ts";
import { ollamaStatus } from "../../models/ollama/server.ts";
import { progressBar } from "../../render/tty/progress.ts";
import { formatSize } from "../../core/bounds.ts";
import { keysFile } from "../keys-file.ts";
import { done, type SetupContext, standIn, type StepResult } from "./context.ts";
import { INSTEAD, sidecarStep } from "./sidecars.ts";

/** The configured model if it can be had; else what stands in for it. It never fails the set-up. */
export async function modelStep(
  engine: Engine,
  sidecars: boolean,
  context: SetupContext,
): Promise<StepResult> {
  const { settings } = context.config;
  if (settings.provider !== "ollama") return describe(await health(context));
  const baseUrl = ollamaAddress(context.env, settings.base_url);
  if ((await statusOf(baseUrl, context)).kind === "down")
    await bringServer(baseUrl, engine, sidecars, context);
  if ((await statusOf(baseUrl, context)).kind === "model-missing") await offerPull(baseUrl, context);
  return describe(await health(context));
}

const statusOf = (baseUrl: string, { config, signal }: SetupContext): ReturnType<typeof ollamaStatus> =>
  ollamaStatus({ baseUrl, model: config.settings.chat_model, signal, timeoutMs: 5000 });

const health = ({ config, env, signal }: SetupContext): Promise<readonly Health[]> =>
  modelHealth({
    provider: config.settings.provider,
    baseUrl: config.settings.base_url,
    model: config.settings.chat_model,
    maxContext: config.settings.max_context_tokens,
    env,
    keysFile: keysFile(),
    signal,
  });

function describe(checks: readonly Health[]): StepResult {
  const bad = checks.find(({ state }) => state === "fail");
  if (bad !== undefined) return standIn(INSTEAD.ollama, bad.detail, bad.remedy);
  return done(checks.map(({ detail }) => detail).join(", "));
}

/** An Ollama that is installed, else the sidecar. Its image is several gigabytes, so that one is offered first. */
async function bringServer(
  baseUrl: string,
  engine: Engine,
  sidecars: boolean,
  context: SetupContext,
): Promise<void> {
  if (!isLoopback(baseUrl)) return;
  context.onLine("starting ollama");
  const started = await startInstalledOllama({
    env: context.env,
    baseUrl,
    logFile: path.join(context.places.state, "ollama.log"),
    signal: context.signal,
    workspace: context.workspace,
  });
  if (started.kind !== "not-installed" || !sidecars) return;
  if (await context.confirm("No Ollama is installed. Start it as a sidecar (a download of several GB)?"))
    await sidecarStep("ollama", engine, context);
}

async function offerPull(baseUrl: string, context: SetupContext): Promise<void> {
  const { chat_model: model } = context.config.settings;
  if (!(await context.confirm(`The model ${model} is not on the server. Pull it now?`))) return;
  const result = await pullModel({
    baseUrl,
    model,
    signal: context.signal,
    onProgress: ({ status, completed, total }) =>
      context.onLine(
        completed === null || total === null
          ? `${model}: ${status}`
          : `${model} ${progressBar(completed, total)} ${formatSize(completed)} of ${formatSize(total)}`,
      ),
  });
  if (result.kind === "cancelled") throw new HarnessError(EXIT.interrupted, "interrupted", "./start.sh");
  if (result.kind === "failed") context.onLine(`${model}: ${result.reason}`);
}
