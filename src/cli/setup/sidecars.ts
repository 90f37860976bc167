import { readFile } from "node:fs/promises";
import path from "node:path";
import { findCompose } from "../../docker/compose/cli.ts";
import { type ComposeFile, parseComposeFile } from "../../docker/compose/file.ts";
import { healthOfSidecar } from "../../docker/compose/sidecar.ts";
import { upSidecars } from "../../docker/compose/up.ts";
import type { Engine } from "../../docker/engine.ts";
import { type SetupContext, standIn, type StepResult, done } from "./context.ts";

export async function readCompose(root: string): Promise<ComposeFile> {
  const file = path.join(root, "docker-compose.yml");
  return parseComposeFile(await readFile(file, "utf8"), file);
}

export const INSTEAD = {
  qdrant: "the embedded index, for Qdrant",
  ollama: "the demo's own script, for a model",
} as const;

/** Starts one sidecar; that it cannot be had is no failure. */
export async function sidecarStep(
  service: "qdrant" | "ollama",
  engine: Engine,
  context: SetupContext,
): Promise<StepResult> {
  const { env, signal } = context;
  const file = await readCompose(context.root);
  const compose = await findCompose(engine.endpoint, env, signal);
  context.onLine(`starting the sidecar ${service}`);
  const [sidecar] = await upSidecars(engine.api, file, { services: [service], compose, signal });
  signal.throwIfAborted();
  if (sidecar === undefined) return standIn(INSTEAD[service], `docker-compose.yml has no service ${service}`);
  const { state, detail } = healthOfSidecar(sidecar);
  return state === "ok" ? done(detail) : standIn(INSTEAD[service], detail);
}
