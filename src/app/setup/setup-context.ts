import type { Config } from "../../config/load-config.ts";
import type { Engine } from "../../docker/engine.ts";
import {
  type ListedEnvironment,
  ownEnvironments,
  removeEnvironments,
} from "../environments/own-environments.ts";
import { removeBoxes, removeImages } from "../../docker/remove-all.ts";
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
  /** Somebody is there to be asked. */
  readonly attended: boolean;
  /** The services beside the boxes; those of harness itself when left out. */
  readonly project?: SidecarProject<SidecarName>;
  /** What a step is at. */
  readonly onLine: (line: string) => void;
  /** How far it is, where that is known. */
  readonly onAdvance: (far: Advance) => void;
  /** Where nobody is there, it is agreed to with `yes` alone. */
  readonly confirm: (question: string) => Promise<boolean>;
  /** The row that is chosen: the first one with `yes`; null for none of them, and where nobody is there. */
  readonly choose: (question: string, rows: readonly string[]) => Promise<number | null>;
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

export interface TornDown {
  readonly boxes: number;
  readonly sidecars: Awaited<ReturnType<typeof downSidecars>>;
  readonly images: readonly string[];
  /** Of this user; `removed` by their ids. */
  readonly environments: { readonly removed: readonly string[]; readonly kept: readonly ListedEnvironment[] };
}

/** What is removed for good, beside what is only stopped. */
export interface Purge {
  readonly images: boolean;
  /** What the sidecars keep; of that the models are another download, so they have a word of their own. */
  readonly volumes: boolean;
  readonly models: boolean;
}

const MODELS_VOLUME = "ollama_models";

/** Whether the Ollama sidecar has a volume, and so perhaps models. */
export async function hasModels(host: Host): Promise<boolean> {
  const engine = await requireEngine(host);
  const ours = [`${SIDECAR_LABEL.project}=${SIDECARS.name}`, `${SIDECAR_LABEL.sidecar}=${MODELS_VOLUME}`];
  const filters = { label: ours };
  // The engine answers null for an empty list.
  return ((await engine.api.listVolumes({ filters })).Volumes ?? []).length > 0;
}

/** Stops the sidecars and removes the boxes of this user, and of the rest what is to be purged. */
export async function tearDown(host: Host, { images: purge, volumes, models }: Purge): Promise<TornDown> {
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
