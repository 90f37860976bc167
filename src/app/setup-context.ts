import type { Config } from "../config/load-config.ts";
import type { Engine } from "../docker/engine.ts";
import { removeBoxes, removeImages } from "../docker/remove-all.ts";
import { downSidecars, upSidecar } from "../docker/sidecar-lifecycle.ts";
import { healthOfSidecar, planSidecar, type SidecarName, SIDECARS } from "../docker/sidecars.ts";
import type { StepLine } from "../render/tty/search-lines.ts";
import { requireEngine } from "./box-access.ts";
import type { Host } from "./host.ts";

/** What every step of the set-up is given. */
export interface SetupContext {
  readonly host: Host;
  /** The installed package. */
  readonly root: string;
  /** The folder that a run would work on; nothing in it is ever started on the host. */
  readonly workspace: string;
  readonly config: Config;
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

export const INSTEAD = {
  qdrant: "the embedded index, for Qdrant",
  ollama: "the demo's own script, for a model",
} as const;

/** Starts one sidecar; that it cannot be had is no failure. */
export async function sidecarStep(
  service: SidecarName,
  engine: Engine,
  context: SetupContext,
): Promise<StepResult> {
  const { signal } = context;
  context.onLine(`starting the sidecar ${service}`);
  const sidecar = await upSidecar(engine.api, planSidecar(SIDECARS, service), { signal });
  signal.throwIfAborted();
  const { state, detail } = healthOfSidecar(sidecar);
  return state === "ok" ? done(detail) : standIn(INSTEAD[service], detail);
}

export interface TornDown {
  readonly boxes: number;
  readonly sidecars: Awaited<ReturnType<typeof downSidecars>>;
  readonly images: readonly string[];
}

/** Stops the sidecars and removes the boxes of this user; with `purge` images and volumes too. */
export async function tearDown(host: Host, purge: boolean): Promise<TornDown> {
  const engine = await requireEngine(host);
  const boxes = await removeBoxes(engine, host.uid);
  const sidecars = await downSidecars(engine.api, SIDECARS.name, { volumes: purge });
  const pulled = Object.values(SIDECARS.services).map(({ image }) => image);
  const images = purge ? await removeImages(engine, pulled) : [];
  return { boxes, sidecars, images };
}
