import path from "node:path";
import { EXIT, HarnessError } from "../core/errors.ts";
import { engineRemedy, installEngine, startDaemon } from "../docker/engine-install.ts";
import { type Engine, isEngine, type NoEngine } from "../docker/engine.ts";
import { isDebianLike, readSystem, type System } from "../platform/host-programs.ts";
import { ensureImage, imageExists } from "../docker/box-image.ts";
import { checkImage } from "../docker/engine-health.ts";
import { stderr } from "../render/tty/output.ts";
import { type Advance, ProgressLine } from "../render/tty/live-lines.ts";
import { stepLine, type StepLine } from "../render/search-lines.ts";
import { lookForEngine, noEngine, requireEngine } from "./boxes/box-access.ts";
import { describeFailure } from "./stderr-messages.ts";
import type { Config } from "../config/load-config.ts";
import { type ListedEnvironment, ownEnvironments, removeEnvironments } from "./boxes/own-boxes.ts";
import { removeBoxes, removeImages } from "../docker/box/box-list.ts";
import { downSidecars, upSidecar } from "../docker/sidecar-lifecycle.ts";
import {
  healthOfSidecar,
  planSidecar,
  SIDECAR_LABEL,
  type SidecarName,
  type SidecarProject,
  SIDECARS,
} from "../docker/sidecars.ts";
import type { Host } from "./host.ts";

/** Prints each step as one line with its time; a failed step is printed too, and ends the set-up. */
export class SetupSteps {
  readonly #quiet: boolean;
  readonly #signal: AbortSignal;
  #line: ProgressLine | undefined;
  /** Every step that did not fail, in order. */
  readonly taken: StepLine[] = [];

  constructor(quiet: boolean, signal: AbortSignal) {
    this.#quiet = quiet;
    this.#signal = signal;
  }

  /** Shows what the step is doing. */
  readonly progress = (text: string): void => this.#line?.line(text);
  readonly advance = (far: Advance): void => this.#line?.take(far);

  /** Asks a question while the step's progress is off the screen. */
  async asking<T>(question: () => Promise<T>): Promise<T> {
    const resume = this.#line?.pause();
    try {
      return await question();
    } finally {
      resume?.();
    }
  }

  async run<T>(name: string, work: () => Promise<T>, say: (value: T) => StepResult): Promise<T> {
    const start = performance.now();
    this.#line = new ProgressLine(stderr, { what: `  ${name}`, quiet: this.#quiet, endIsReported: true });
    try {
      const value = await work();
      this.#signal.throwIfAborted();
      this.#print(name, say(value), start);
      return value;
    } catch (thrown) {
      if (!(thrown instanceof HarnessError)) throw thrown;
      const { message, remedy } = describeFailure(thrown, []);
      this.#print(name, { state: "fail", detail: message, remedy, short: message }, start);
      throw new HarnessError(thrown.exit, "", "", thrown);
    } finally {
      this.#line.end();
    }
  }

  #print(name: string, result: StepResult, start: number): void {
    this.#line?.end();
    this.taken.push({ name, ...result });
    if (this.#quiet && result.state !== "fail") return;
    stderr.write(stepLine({ name, ...result }, performance.now() - start, stderr));
  }
}

/** An engine that answers: the existing one, or one that is started or installed; otherwise exit 6. */
export async function engineStep(context: SetupContext): Promise<Engine> {
  const found = await lookForEngine(context.host);
  if (isEngine(found)) return found;
  const system = await readSystem(context.host.env);
  if (!mayMend(found, system, context.mayInstall)) throw noEngine(found, engineRemedy(system, found));
  if (!system.dockerd) {
    context.onLine("installing docker.io from the distribution");
    await installEngine({ ...context, env: context.host.env });
    const started = await lookForEngine(context.host);
    if (isEngine(started)) return started;
  }
  context.onLine("starting the engine");
  return startDaemon(system, {
    ...context,
    env: context.host.env,
    logFile: path.join(context.host.places.state, "dockerd.log"),
  });
}

/** An engine that the user named is never replaced, and a protected socket is never worked around. */
function mayMend(found: NoEngine, system: System, mayInstall: boolean): boolean {
  if (found.origin !== "usual socket" || found.kind === "denied" || !system.root) return false;
  return mayInstall && (system.dockerd || isDebianLike(system));
}

export const describeEngine = ({ version, endpoint }: Engine): string =>
  `${version.name} ${version.version} at ${endpoint.host}${endpoint.origin === "usual socket" ? "" : ` (${endpoint.origin})`}`;

/** Our image, built if missing; or the user's own, checked for what the runner needs. */
export async function imageStep(engine: Engine, context: SetupContext): Promise<StepResult> {
  const own = context.config.settings.image;
  if (own !== null) return foreignImage(engine, context.root, own);
  const built = await ensureImage(engine, {
    ...context,
    env: context.host.env,
    cache: context.host.places.cache,
  });
  if (built.how === "kept") return doneStep(`${built.tag} (${built.how})`);
  const check = await checkImage(engine, context.root, built.tag);
  const lacking = [...check.missing, ...check.absent];
  if (lacking.length === 0) return doneStep(`${built.tag} (${built.how})`);
  const message = `the image that was built lacks ${lacking.join(", ")}`;
  throw new HarnessError(EXIT.sandbox, message, "harness sandbox build --rebuild");
}

async function foreignImage(engine: Engine, root: string, image: string): Promise<StepResult> {
  if (!(await imageExists(engine, image))) {
    const message = `no image ${image} on this engine`;
    throw new HarnessError(
      EXIT.sandbox,
      message,
      `docker pull ${image}   (or: harness config set image null)`,
    );
  }
  const check = await checkImage(engine, root, image);
  if (check.missing.length > 0) {
    const message = `the image ${image} lacks what the runner needs: ${check.missing.join(", ")}`;
    throw new HarnessError(EXIT.sandbox, message, `add it to ${image}, or: harness config set image null`);
  }
  if (check.absent.length === 0) return doneStep(`${image} (yours)`);
  const lacking = check.absent.join(", ");
  return replacedStep(
    `${image}, instead of ours`,
    `${image} (yours); without ${lacking}, which some tasks need`,
  );
}

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

export const doneStep = (detail: string): StepResult => ({ state: "ok", detail, remedy: "", short: detail });

/** `short`, for the closing table, says what replaces what. */
export const replacedStep = (short: string, detail: string, remedy = ""): StepResult => ({
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
  return state === "ok" ? doneStep(detail) : replacedStep(INSTEAD[service], detail);
}

interface TeardownResult {
  readonly boxes: number;
  readonly sidecars: Awaited<ReturnType<typeof downSidecars>>;
  readonly images: readonly string[];
  /** Environments of this user; `removed` has their ids. */
  readonly environments: { readonly removed: readonly string[]; readonly kept: readonly ListedEnvironment[] };
}

/** What is removed for good, in addition to what is stopped. */
interface Purge {
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
