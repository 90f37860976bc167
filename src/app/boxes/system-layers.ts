/**
 * Builds the system layers of a recipe: those of its stages, then the one that boxes start from. Stages exist only
 * until that one is complete. A resumed build finds the stages that were made. The network of these and all other steps
 * of a set-up is granted here.
 */
import type { Settings } from "../../config/settings-schema.ts";
import { ownerLabels, thisProcess } from "../../boxes/box-record.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { type Engine, findEngine, isEngine, isMissing } from "../../docker/engine.ts";
import { pinnedBytes } from "../../docker/environments/context-files.ts";
import { removeSystemImage } from "../../docker/environments/environment-store.ts";
import { isImageThere } from "../../docker/image-progress.ts";
import { type Bases, type Recipe, stageRecipe, systemKey } from "../../docker/environments/recipe.ts";
import { makeSystemLayer, SILENT_MS, stageTag, systemTag } from "../../docker/environments/system-layer.ts";
import { systemRegistries, type SystemStep, systemSteps } from "../../docker/environments/system-steps.ts";
import type { ChosenRecipe } from "./workspace-environment.ts";
import { unstartedContainer } from "../../docker/unstarted-container.ts";
import { type Host, packageRoot } from "../host.ts";
import { isPreset, parseGrant } from "../../core/network.ts";
import { askRegistries, type RegistryQuestion } from "../../docker/egress/registries.ts";
import { boxImage } from "../../docker/box-image.ts";
import { askHost } from "../../platform/host-programs.ts";
import { runOnce } from "../../docker/engine-health.ts";
import type { NetworkRequest } from "../../docker/egress/box-network.ts";
import { hostTrust } from "../../docker/egress/host-trust.ts";
import {
  ageNote,
  ageVariables,
  managersWithoutAge,
  withoutAge,
} from "../../docker/environments/tool-variables.ts";
import { boundsOf, registryFiles, registryVariables } from "./granted-network.ts";

interface LayersRequest {
  readonly host: Host;
  readonly settings: Settings;
  /** A real path. */
  readonly workspace: string;
  readonly engine: Engine;
  readonly chosen: ChosenRecipe;
  readonly bases: Bases;
  readonly rebuild: boolean;
  readonly silentMs?: number;
  readonly warn: (text: string) => void;
  /** Called before the first step with the number of steps. */
  readonly onPlan: (steps: number) => void;
  readonly onStep: (title: string) => void;
  readonly onOutput: (bytes: Uint8Array) => void;
  readonly signal: AbortSignal;
}

interface Layer {
  readonly recipe: Recipe;
  readonly key: string;
  readonly tag: string;
  readonly steps: readonly SystemStep[];
  readonly registries: readonly string[];
}

/** The id of the image; null if the sandbox image is enough. */
export async function systemLayer(wanted: LayersRequest): Promise<string | null> {
  const { engine, chosen, bases, rebuild, onPlan } = wanted;
  const { recipe } = chosen;
  const own = await layerOf(wanted, recipe, { bases, tagOf: systemTag });
  if (own.steps.length === 0) return recipe.image === null ? null : bases.base;
  if (rebuild || !(await isImageThere(engine.api, own.tag))) {
    const stages = await stagesOf(wanted);
    const missing = await missingOf(wanted, stages);
    onPlan([...missing, own].reduce((sum, { steps }) => sum + steps.length + 1, 0));
    const images: string[] = [];
    await using stack = new AsyncDisposableStack();
    for (const [at, stage] of stages.entries()) {
      const isMade = stage.steps.length === 0;
      if (!isMade && missing.has(stage)) await make(wanted, stage, images);
      images.push(isMade ? (bases.stages[at] ?? "") : await holdStage(wanted, stage, images, stack));
    }
    await make(wanted, own, images);
    await stack.disposeAsync();
    // Another build may still hold a stage; that build then removes it.
    for (const { tag, steps } of stages) if (steps.length > 0) await removeSystemImage(engine, tag);
  }
  return idOf(engine, own);
}

const HOLD_TRIES = 3;

/**
 * The id of the stage's image, held by a container so that no other build can remove it. A stage that was removed
 * before that is made again.
 */
async function holdStage(
  wanted: LayersRequest,
  stage: Layer,
  stages: readonly string[],
  stack: AsyncDisposableStack,
): Promise<string> {
  const { engine, host } = wanted;
  const labels = ownerLabels(host.uid, await thisProcess());
  for (let tries = 1; ; tries += 1) {
    try {
      const image = await idOf(engine, stage);
      stack.use(await unstartedContainer(engine, { image, labels }));
      return image;
    } catch (thrown) {
      if (!isMissing(thrown) || tries === HOLD_TRIES) throw thrown;
    }
    await make(wanted, stage, stages);
  }
}

const idOf = async ({ api }: Engine, { tag }: Layer): Promise<string> =>
  (await api.getImage(tag).inspect()).Id;

const stagesOf = (wanted: LayersRequest): Promise<readonly Layer[]> =>
  Promise.all(
    wanted.chosen.recipe.stages.map((_, at) => {
      const { stages } = wanted.bases;
      const bases = { base: stages[at] ?? "", stages: stages.slice(0, at) };
      return layerOf(wanted, stageRecipe(wanted.chosen.recipe, at), { bases, tagOf: stageTag });
    }),
  );

async function missingOf(
  { engine, rebuild }: LayersRequest,
  stages: readonly Layer[],
): Promise<ReadonlySet<Layer>> {
  const looked = await Promise.all(
    stages.map(async (stage) => {
      const there = stage.steps.length === 0 || (!rebuild && (await isImageThere(engine.api, stage.tag)));
      return there ? [] : [stage];
    }),
  );
  return new Set(looked.flat());
}

async function layerOf(
  wanted: LayersRequest,
  recipe: Recipe,
  { bases, tagOf }: { readonly bases: Bases; readonly tagOf: (key: string) => string },
): Promise<Layer> {
  const { engine, host, workspace } = wanted;
  const goProxy = recipe.toolchains.go === undefined ? "" : await goProxyOf(wanted);
  const wishes = { recipe, goProxy, arch: engine.version.arch };
  const key = systemKey(bases, recipe, `${host.places.state}\0${workspace}`);
  return {
    recipe,
    key,
    tag: tagOf(key),
    steps: systemSteps(wishes),
    registries: systemRegistries(wishes),
  };
}

const LAYER_MEMORY = 2 * 2 ** 30;

async function make(
  wanted: LayersRequest,
  { recipe, key, tag, steps, registries }: Layer,
  stages: readonly string[],
): Promise<void> {
  const { engine, host, settings, chosen, silentMs = SILENT_MS, onStep, onOutput, signal } = wanted;
  await makeSystemLayer({
    engine,
    root: packageRoot,
    uid: host.uid,
    stateDir: host.places.state,
    image: recipe.image,
    key,
    tag,
    stages,
    steps,
    bytesOf: (file) => readPinned(chosen, file),
    limits: { memory: Math.max(settings.memory, LAYER_MEMORY), cpus: settings.cpus, pids: settings.pids },
    network: await networkOf(wanted, registries),
    silentMs,
    onStep,
    onOutput,
    signal,
  });
}

/** The bytes that were trusted; anything else is refused. */
async function readPinned(
  { top, file: recipe }: ChosenRecipe,
  file: Parameters<typeof pinnedBytes>[1],
): Promise<Uint8Array> {
  try {
    return await pinnedBytes(top, file);
  } catch (thrown) {
    const message = `${file.path}, which ${recipe} puts into the system layer: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.failed, message, "harness trust, then: harness env build", thrown);
  }
}

/** What an environment's set-up needs for its network. */
interface SetUp {
  readonly host: Host;
  readonly settings: Settings;
  readonly workspace: string;
  readonly warn: (text: string) => void;
  readonly signal: AbortSignal;
}

/** Grants exactly the registries of the recipe, and whatever else the user granted. */
export async function networkOf(
  { host, settings, workspace, warn, signal }: SetUp,
  registries: readonly string[],
  askBox?: RegistryQuestion["askBox"],
): Promise<NetworkRequest | undefined> {
  const names = [...new Set([...registries, ...settings.allow_domains])];
  if (names.length === 0) return undefined;
  const question = { env: host.env, workspace, uid: host.uid, state: host.places.state, signal };
  const [presetGrants, roots] = await Promise.all([
    askRegistries({
      ...question,
      presets: names.filter(isPreset),
      ...(askBox === undefined ? {} : { askBox, boxHasYarn: true }),
    }),
    hostTrust(host.env, warn),
  ]);
  const hosts = names.filter((name) => !isPreset(name)).map((name) => parseGrant(name));
  const presets = new Set<string>(names.filter(isPreset));
  return {
    grants: [...hosts, ...presetGrants.flatMap(({ grants }) => grants)],
    ...boundsOf(settings),
    // The host's variables, for the proxies that they name; the box gets none of them.
    env: host.env,
    // A recipe decides whether install scripts run; detected recipes leave them out.
    variables: {
      ...registryVariables(presetGrants),
      ...ageVariables(presets, settings.min_release_age, Date.now()),
    },
    files: registryFiles(presetGrants),
    roots,
    trust: () => Promise.resolve(roots),
  };
}

/** The label of every container that only looks at an image. */
const LABELS = { "dev.harness.check": "1" };

/** Asks tools of an image in a container without network or workspace. */
export const askerIn =
  (engine: Engine, image: string): NonNullable<RegistryQuestion["askBox"]> =>
  async (argv) => {
    const words = ["sh", "-c", 'command -v "$1" >/dev/null 2>&1 && exec "$@"', "sh", ...argv];
    const once = { root: packageRoot, image, argv: words, memory: 512 * 2 ** 20, pids: 128, labels: LABELS };
    // An image without a shell has no tool to ask either.
    const output = await runOnce(engine, once, 30_000).catch(() => undefined);
    return output?.exit_code === 0 ? output.stdout : null;
  };

/**
 * Asks tools of the image that boxes with these settings start from; answers null if there is no engine or no image.
 */
export async function askerOf(
  host: Host,
  image: string | null,
  signal: AbortSignal,
): Promise<NonNullable<RegistryQuestion["askBox"]>> {
  const engine = await findEngine(host.env, host.uid, signal);
  if (!isEngine(engine)) return () => Promise.resolve(null);
  const found = await boxImage(engine, packageRoot, image).catch(() => undefined);
  return found === undefined ? () => Promise.resolve(null) : askerIn(engine, found.id);
}

/** The GOPROXY of the user's own Go; empty if there is none. */
async function goProxyOf({ host, workspace, signal }: SetUp): Promise<string> {
  const answer = await askHost(["go", "env", "GOPROXY"], {
    env: host.env,
    cwd: "/",
    apart: workspace,
    signal,
  });
  return answer?.code === 0 ? answer.stdout.trim() : "";
}

/** Warns about registries and package managers to which the minimum release age does not apply. */
export function warnOfAgeless(recipe: Recipe, { settings, warn }: Pick<SetUp, "settings" | "warn">): void {
  if (settings.min_release_age === 0) return;
  const presets = [...new Set([...recipe.registries, ...systemRegistries({ recipe })])];
  const { php, ruby } = recipe.toolchains;
  const note = ageNote([
    ...withoutAge(presets),
    ...managersWithoutAge(recipe.managers),
    ...(php === undefined ? [] : ["composer"]),
    ...(ruby === undefined ? [] : ["bundler"]),
  ]);
  if (note !== undefined) warn(note);
}
