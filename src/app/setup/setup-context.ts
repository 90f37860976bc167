import type { Config } from "../../config/load-config.ts";
import type { Engine } from "../../docker/engine.ts";
import {
  type ListedEnvironment,
  ownEnvironments,
  removeEnvironments,
} from "../environments/own-environments.ts";
import { removeBoxes, removeImages } from "../../docker/box/box-list.ts";
import { downSidecars, upSidecar } from "../../docker/sidecar-lifecycle.ts";
import {
  healthOfSidecar,
  planSidecar,
  SIDECAR_LABEL,
  type SidecarName,
  type SidecarProject,
  SIDECARS,
} from "../../docker/sidecars.ts";
import type { Advance } from "../../render/tty/progress-line.ts";
import type { StepLine } from "../../render/lists/search-lines.ts";
import { requireEngine } from "../box-access.ts";
import type { Host } from "../host.ts";

export interface SetupContext {
  readonly host: Host;
  /** The installed package. */
  readonly root: string;
  /** The folder that a run would work on; no file in it is ever started on the host. */
  readonly workspace: string;
  readonly config: Config;
  readonly signal: AbortSignal;
  readonly mayInstall: boolean;
  /** Answer offers with yes if there is no person to ask. */
  readonly yes: boolean;
  /** A person is there to be asked. */
  readonly attended: boolean;
  /** The sidecar services; left out: those of harness itself. */
  readonly project?: SidecarProject<SidecarName>;
  /** Shows what a step is doing. */
  readonly onLine: (line: string) => void;
  /** Shows the progress of a step, if known. */
  readonly onAdvance: (far: Advance) => void;
  /** Without a person, only `yes` agrees. */
  readonly confirm: (question: string) => Promise<boolean>;
  /** The chosen row: the first one with `yes`; null if none is chosen, or there is no person. */
  readonly choose: (question: string, rows: readonly string[]) => Promise<number | null>;
}

export type StepResult = Omit<StepLine, "name">;

export const done = (detail: string): StepResult => ({ state: "ok", detail, remedy: "", short: detail });

/** `short`, for the closing table, says what replaces what. */
export const standIn = (short: string, detail: string, remedy = ""): StepResult => ({
  state: "stand-in",
  detail,
  remedy,
  short,
});

export const INSTEAD = {
  qdrant: "the embedded index, instead of Qdrant",
  ollama: "the demo's own script, instead of a model",
} as const;

/** Starts one sidecar; an unavailable sidecar is not a failure. */
export async function sidecarStep(
  service: SidecarName,
  engine: Engine,
  context: SetupContext,
): Promise<StepResult> {
  const { signal, onLine } = context;
  onLine(`starting the sidecar ${service}`);
  const sidecar = await upSidecar(engine.api, planSidecar(context.project ?? SIDECARS, service), {
    signal,
    onLine,
  });
  signal.throwIfAborted();
  const { state, detail } = healthOfSidecar(sidecar);
  return state === "ok" ? done(detail) : standIn(INSTEAD[service], detail);
}

export interface TeardownResult {
  readonly boxes: number;
  readonly sidecars: Awaited<ReturnType<typeof downSidecars>>;
  readonly images: readonly string[];
  /** Environments of this user; `removed` has their ids. */
  readonly environments: { readonly removed: readonly string[]; readonly kept: readonly ListedEnvironment[] };
}

/** What is removed for good, in addition to what is stopped. */
export interface Purge {
  readonly images: boolean;
  /** The data of the sidecars, except models: these are another download, so they have a flag of their own. */
  readonly volumes: boolean;
  readonly models: boolean;
}

const MODELS_VOLUME = "ollama_models";

/** Whether the Ollama sidecar has a volume, which may contain models. */
export async function hasModels(host: Host): Promise<boolean> {
  const engine = await requireEngine(host);
  const ours = [`${SIDECAR_LABEL.project}=${SIDECARS.name}`, `${SIDECAR_LABEL.sidecar}=${MODELS_VOLUME}`];
  const filters = { label: ours };
  // The engine answers null for an empty list.
  return ((await engine.api.listVolumes({ filters })).Volumes ?? []).length > 0;
}

/** Stops the sidecars and removes the boxes of this user, and removes whatever else is to be purged. */
export async function tearDown(
  host: Host,
  { images: purge, volumes, models }: Purge,
): Promise<TeardownResult> {
  const engine = await requireEngine(host);
  const boxes = await removeBoxes(engine, host.uid);
  const keep = models ? [] : [MODELS_VOLUME];
  const sidecars = await downSidecars(engine.api, SIDECARS.name, { volumes, keep });
  const pulled = Object.values(SIDECARS.services).map(({ image }) => image);
  const removed = purge ? await removeEnvironments(host, "all") : [];
  const images = purge ? await removeImages(engine, pulled) : [];
  const environments = { removed, kept: await ownEnvironments(host) };
  return { boxes, sidecars, images, environments };
}
