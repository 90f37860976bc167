import { readFile } from "node:fs/promises";
import path from "node:path";
import type { Config } from "../config/load-config.ts";
import type { Places } from "../config/places.ts";
import { findCompose } from "../docker/compose/compose-cli.ts";
import { type ComposeFile, parseComposeFile } from "../docker/compose/compose-file.ts";
import { upSidecars } from "../docker/compose/compose-up.ts";
import { healthOfSidecar } from "../docker/compose/sidecar.ts";
import type { Engine } from "../docker/engine.ts";
import type { StepLine } from "../render/tty/search-lines.ts";

/** What every step of the set-up is given. */
export interface SetupContext {
  /** The installed package. */
  readonly root: string;
  /** The folder that a run would work on; nothing in it is ever started on the host. */
  readonly workspace: string;
  readonly places: Places;
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly mayInstall: boolean;
  /** Answers offers with yes, where nobody is there to be asked. */
  readonly yes: boolean;
  /** Progress within a step; shown only where somebody watches. */
  readonly onLine: (line: string) => void;
  readonly confirm: (question: string) => Promise<boolean>;
}

export type StepResult = Omit<StepLine, "name">;

export const done = (detail: string): StepResult => ({ state: "ok", detail, remedy: "", short: detail });

/** `short` says in the closing table what stands in for what. */
export const standIn = (short: string, detail: string, remedy = ""): StepResult => ({
  state: "stand-in",
  detail,
  remedy,
  short,
});

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
