import type { Settings } from "../../config/settings-schema.ts";
import { ownerLabels, thisProcess } from "../../boxes/box-record.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { type Engine, isMissing } from "../../docker/engine.ts";
import { pinnedBytes } from "../../docker/environments/context-files.ts";
import { imageIsThere, removeSystemImage } from "../../docker/environments/environment-store.ts";
import { type Bases, type Recipe, stageRecipe, systemKey } from "../../docker/environments/recipe.ts";
import { makeSystemLayer, SILENT_MS, stageTag, systemTag } from "../../docker/environments/system-layer.ts";
import { type SystemStep, systemRegistries, systemSteps } from "../../docker/environments/system-steps.ts";
import { goProxyOf, networkOf } from "./environment-network.ts";
import type { ChosenRecipe } from "./environment-recipe.ts";
import { unstartedContainer } from "../../docker/unstarted-container.ts";
import { type Host, packageRoot } from "../host.ts";

/**
 * Builds the system layers of a recipe: those of its stages, then the one that boxes start from. Stages exist only
 * until that one is complete. A resumed build finds the stages that were made.
 */

export interface LayersRequest {
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
  if (rebuild || !(await imageIsThere(engine, own.tag))) {
    const stages = await stagesOf(wanted);
    const missing = await missingOf(wanted, stages);
    onPlan([...missing, own].reduce((sum, { steps }) => sum + steps.length + 1, 0));
    const images: string[] = [];
    await using held = new AsyncDisposableStack();
    for (const [at, stage] of stages.entries()) {
      const isMade = stage.steps.length === 0;
      if (!isMade && missing.has(stage)) await make(wanted, stage, images);
      images.push(isMade ? (bases.stages[at] ?? "") : await holdStage(wanted, stage, images, held));
    }
    await make(wanted, own, images);
    await held.disposeAsync();
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
  held: AsyncDisposableStack,
): Promise<string> {
  const { engine, host } = wanted;
  const labels = ownerLabels(host.uid, await thisProcess());
  for (let tries = 1; ; tries += 1) {
    try {
      const image = await idOf(engine, stage);
      held.use(await unstartedContainer(engine, { image, labels }));
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
      const there = stage.steps.length === 0 || (!rebuild && (await imageIsThere(engine, stage.tag)));
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
    bytesOf: (file) => pinned(chosen, file),
    limits: { memory: Math.max(settings.memory, LAYER_MEMORY), cpus: settings.cpus, pids: settings.pids },
    network: await networkOf(wanted, registries),
    silentMs,
    onStep,
    onOutput,
    signal,
  });
}

/** The bytes that were trusted; anything else is refused. */
async function pinned(
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
