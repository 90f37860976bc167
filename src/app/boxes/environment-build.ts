import { createWriteStream, type WriteStream } from "node:fs";
import { lstat } from "node:fs/promises";
import { once } from "node:events";
import { makeFolder } from "../../platform/folders.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { engineText } from "../../core/addresses.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { OwnedBox } from "../../core/ports.ts";
import { AbsentImage } from "../../docker/box-image.ts";
import { startBox } from "../../docker/box/start-box.ts";
import { isElsewhere } from "../../docker/engine-endpoint.ts";
import type { Engine } from "../../docker/engine.ts";
import { type Bases, type Recipe } from "../../docker/environments/recipe.ts";
import {
  type BuildingRecord,
  type EnvironmentFiles,
  type EnvironmentRecord,
  filesOf,
  finishRecord,
  noteBuilding,
  readBuilding,
  readRecord,
} from "../../docker/environments/environment-record.ts";
import { makeVolume, removeVolume, volumesOf } from "../../docker/environments/environment-store.ts";
import { namedHosts } from "../../docker/environments/project-needs.ts";
import { buildInPlace, byProductsLast } from "../../docker/environments/python-project.ts";
import {
  type FailedStep,
  Silence,
  SILENT_MS,
  stepFailed,
  stepTitle,
} from "../../docker/environments/system-layer.ts";
import { VERSIONS_SCRIPT, versionsGot } from "../../docker/environments/system-steps.ts";
import { CACHE, toolVariables } from "../../docker/environments/tool-variables.ts";
import {
  installedSince,
  type ListedPackages,
  listPackages,
} from "../../docker/environments/installed-packages.ts";
import { forgetMountPoints } from "../../docker/environments/environment-mounts.ts";
import { listBoxes } from "../../docker/box/box-list.ts";
import { FileLock } from "../../platform/sqlite.ts";
import { requireEngine } from "./box-access.ts";
import { askerIn, networkOf, systemLayer, warnOfAgeless } from "./system-layers.ts";
import {
  buildCommand,
  chooseRecipe,
  type ChosenRecipe,
  keyOf,
  missingPart,
} from "./workspace-environment.ts";
import { engineOfEnvironments, type Host, namedCluster, packageRoot } from "../host.ts";
import { NAME_REGISTRY, type PushedEnvironment, pushEnvironment } from "./pod-environment.ts";

export interface EnvironmentBuildRequest {
  readonly host: Host;
  readonly settings: Settings;
  /** A real path. */
  readonly workspace: string;
  /** Rebuild even if everything is in place. */
  readonly rebuild: boolean;
  /** A step without output for this long is ended; left out: SILENT_MS. */
  readonly silentMs?: number;
  /** Called when a step begins: its number, the number of steps, and its title. */
  readonly onStep: (step: { readonly at: number; readonly of: number; readonly title: string }) => void;
  readonly onOutput: (bytes: Uint8Array) => void;
  readonly warn: (text: string) => void;
}

export interface BuiltEnvironment {
  readonly record: EnvironmentRecord;
  readonly how: "kept" | "built";
  readonly chosen: ChosenRecipe;
  /** The outcome in the registry for pods; null if no registry is named. */
  readonly pushed: PushedEnvironment | null;
  /** Files that set-up wrote in the workspace outside of the environment's folders; they are not kept. */
  readonly lost: readonly string[];
  /** The command that makes those of them again that a build of the project writes. */
  readonly again?: string | undefined;
  /** Some projects of the workspace could not be set up: the environment has what the others need. */
  readonly partly?: HarnessError | undefined;
}

interface Build extends EnvironmentBuildRequest {
  readonly engine: Engine;
  readonly chosen: ChosenRecipe;
  readonly files: EnvironmentFiles;
  readonly key: string;
  readonly bases: Bases;
  readonly log: WriteStream;
  readonly signal: AbortSignal;
  /** The number of steps in the system layer; the numbers of the set-up steps continue from there. */
  layerSteps: number;
}

/** Makes the environment of a workspace unless one of the same inputs exists. Continues a build that was killed. */
export async function buildEnvironment(
  wanted: EnvironmentBuildRequest,
  signal: AbortSignal,
): Promise<BuiltEnvironment> {
  const { host, settings, workspace, rebuild } = wanted;
  await refuseUnpushed(host, settings);
  const [engine, chosen] = await Promise.all([
    requireEngine(host, signal, engineOfEnvironments(host)),
    chooseRecipe(host, workspace, settings.env),
  ]);
  const files = filesOf(host.places.state, workspace, settings.env ?? "");
  const { key, bases } = await keyOf(engine, chosen).catch((thrown: unknown) => {
    throw thrown instanceof AbsentImage ? absentFor(thrown, settings.env) : thrown;
  });
  const there = await readRecord(files);
  const kept =
    !rebuild &&
    there?.key === key &&
    there.failed === undefined &&
    (await missingPart(engine, there)) === undefined
      ? there
      : undefined;
  const { registry } = settings.kubernetes;
  if (kept !== undefined && registry === null)
    return { record: kept, how: "kept", chosen, pushed: null, lost: [] };
  makeFolder(files.folder);
  using _ = locked(files, settings.env);
  const log = createWriteStream(files.log, { mode: 0o600 });
  // A log that cannot be written is no reason to stop.
  log.on("error", () => undefined);
  try {
    const making = { ...wanted, engine, chosen, files, key, bases, log, signal, layerSteps: 0 };
    const built = kept === undefined ? await build(making, there) : { record: kept, lost: [] };
    const how = kept === undefined ? "built" : "kept";
    if (registry === null) return { ...built, how, chosen, pushed: null };
    reportStep(making, { at: 1, of: 1, title: `pushing to ${registry}` });
    const onLine = (text: string): void => writeOutput(making, Buffer.from(`${text}\n`));
    const sent = await pushEnvironment({ ...making, registry, record: built.record, onLine });
    return { ...built, record: sent.record, how, chosen, pushed: sent };
  } catch (thrown) {
    signal.throwIfAborted();
    throw thrown;
  } finally {
    log.end();
    await once(log, "close").catch(() => undefined);
  }
}

/** If boxes are pods, an environment that stays on this machine is of no use. */
async function refuseUnpushed(host: Host, { kubernetes }: Settings): Promise<void> {
  const cluster = kubernetes.registry === null ? await namedCluster(host) : undefined;
  if (cluster === undefined) return;
  throw new HarnessError(
    EXIT.usage,
    `boxes are pods of ${engineText(cluster)}, which get environments from a registry, and none is set`,
    `${NAME_REGISTRY}; or, for boxes of a container engine: harness env build --engine unix:///var/run/docker.sock`,
  );
}

const absentFor = ({ image, exit, remedy }: AbsentImage, name: string | null): HarnessError =>
  new HarnessError(
    exit,
    `the image ${image}, from which the environment is built, is not on this engine`,
    `${remedy}, then: ${buildCommand(name)}`,
  );

function locked(files: EnvironmentFiles, name: string | null): Disposable {
  const lock = new FileLock(files.lock, 200);
  try {
    lock.take("exclusive");
    return lock;
  } catch (thrown) {
    lock[Symbol.dispose]();
    const message = "another harness is building the environment of this workspace";
    throw new HarnessError(EXIT.failed, message, `wait for it, then: ${buildCommand(name)}`, thrown);
  }
}

async function build(
  making: Build,
  before: EnvironmentRecord | undefined,
): Promise<Pick<BuiltEnvironment, "record" | "lost" | "again" | "partly">> {
  const { engine, chosen, files, key, workspace, settings } = making;
  const began = Date.now();
  warnOfAgeless(chosen.recipe, making);
  const image = await buildSystemLayer(making);
  const building = await volumesFor(making, image);
  const { versions, lost, installed, failed } = await runSetup(making, building);
  const record: EnvironmentRecord = {
    form: 1,
    id: files.id,
    workspace,
    name: settings.env ?? "",
    key,
    image,
    volumes: building.volumes,
    recipe: chosen.recipe,
    file: chosen.file,
    versions: [...versions],
    ...(failed.length === 0 ? {} : { failed: failed.map(({ title }) => title) }),
    installed: installed === undefined ? null : sinceRecord(before, installed),
    made: new Date().toISOString(),
    seconds: Math.round((Date.now() - began) / 1000),
    pushed: null,
  };
  await finishRecord(files, record);
  const kept = new Set(record.volumes.map(({ volume }) => volume));
  for (const { volume } of before?.volumes ?? [])
    if (!kept.has(volume))
      await removeVolume(engine, volume).catch(() =>
        making.warn(`${volume} is in use and was not removed: harness env rm`),
      );
  const again = buildInPlace(chosen.recipe, lost);
  return { record, lost, again, ...(failed.length === 0 ? {} : { partly: setupFailed(failed, true) }) };
}

/** All packages are kept, so that the next build can tell which are new: those that the previous build did not have. */
function sinceRecord(
  before: EnvironmentRecord | undefined,
  listed: ListedPackages,
): EnvironmentRecord["installed"] {
  const since = installedSince(before?.installed?.packages ?? [], listed);
  const packages = listed.packages.slice(0, MAX_PACKAGES);
  return { ...since, packages, programs: listed.programs.slice(0, MAX_PACKAGES) };
}

const MAX_PACKAGES = 20_000;

/** Builds the system layer, whose steps come first. */
function buildSystemLayer(making: Build): Promise<string | null> {
  let at = 0;
  const { setup } = making.chosen.recipe;
  return systemLayer({
    ...making,
    onPlan: (steps) => void (making.layerSteps = steps),
    onStep: (title) => reportStep(making, { at: (at += 1), of: making.layerSteps + setup.length, title }),
    onOutput: (bytes) => writeOutput(making, bytes),
  });
}

function reportStep({ onStep, log }: Build, step: Parameters<EnvironmentBuildRequest["onStep"]>[0]): void {
  log.write(`\n# ${step.at}/${step.of} ${step.title}\n`);
  onStep(step);
}

function writeOutput({ onOutput, log }: Build, bytes: Uint8Array): void {
  log.write(bytes);
  onOutput(bytes);
}

/** The volumes of an unfinished build with the same key, or new ones. */
async function volumesFor(making: Build, image: string | null): Promise<BuildingRecord> {
  const { engine, chosen, files, key, bases, host, workspace, settings, rebuild } = making;
  const there = await volumesOf(engine, files.id);
  const half = await readBuilding(files);
  if (
    !rebuild &&
    half?.key === key &&
    half.image === image &&
    half.volumes.every(({ volume }) => there.has(volume))
  )
    return half;
  for (const { volume } of half?.volumes ?? []) await removeVolume(engine, volume);
  const { recipe } = chosen;
  const nonce = Date.now().toString(36);
  const targets =
    recipe.setup.length === 0 && image === null
      ? []
      : [CACHE, ...recipe.folders.map((folder) => `${workspace}/${folder}`)];
  const volumes = targets.map((target, index) => ({
    volume: `harness-env-${files.id}-${nonce}-${index}`,
    target,
  }));
  const name = settings.env ?? "";
  const building: BuildingRecord = { form: 1, id: files.id, workspace, name, key, image, volumes, steps: 0 };
  // Recorded first, so that a kill leaves no unknown volume.
  await noteBuilding(files, building);
  const { uid, gid } = await lstat(workspace);
  for (const { volume } of volumes)
    await makeVolume(engine, {
      id: files.id,
      stateDir: host.places.state,
      name: volume,
      layer: image,
      image: bases.base,
      owner: { uid, gid },
    });
  return building;
}

/**
 * Runs the set-up commands in a box whose workspace is a layer, or a copy, that is thrown away: what they install goes
 * to the volumes.
 */
async function runSetup(
  making: Build,
  building: BuildingRecord,
): Promise<{
  readonly versions: readonly string[];
  readonly lost: readonly string[];
  readonly installed?: ListedPackages | undefined;
  readonly failed: readonly FailedStep[];
}> {
  const { chosen, signal } = making;
  const { recipe } = chosen;
  const needsBox = recipe.setup.length > 0 || Object.keys(recipe.toolchains).length > 0;
  // The versions in a system layer are read even if there is nothing to set up.
  if (!needsBox && building.image === null) return { versions: [], lost: [], failed: [] };
  const box = await setupBox(making, building);
  try {
    const failed = await runSteps(box, making, building);
    const versions = versionsGot(recipe, await outputOf(box, VERSIONS_SCRIPT, signal));
    const { all } = await box.changes();
    const lost = [...all]
      .map((change) => change.path)
      .filter((file) => !recipe.folders.some((folder) => `${file}/`.startsWith(`${folder}/`)));
    const folders = recipe.folders.map((folder) => `${making.workspace}/${folder}`);
    return {
      versions,
      lost: byProductsLast(lost),
      installed: await listPackages(box, folders, signal),
      failed,
    };
  } finally {
    await box[Symbol.asyncDispose]();
    // Only if no other box can have something mounted on the mount points.
    const boxes = await listBoxes(making.engine, making.host.uid).catch(() => undefined);
    if (boxes?.every(({ workspace }) => workspace !== making.workspace) === true)
      await forgetMountPoints(making.files.points, making.workspace);
  }
}

/** A failure ends only the steps of its own project, as long as another one is set up. */
async function runSteps(
  box: OwnedBox,
  making: Build,
  building: BuildingRecord,
): Promise<readonly FailedStep[]> {
  const { recipe, projects } = making.chosen;
  const failed = new Map<string, FailedStep>();
  for (const [index, step] of recipe.setup.entries()) {
    const project = projects?.[index] ?? "";
    if (index < building.steps || failed.has(project)) continue;
    reportStep(making, {
      at: making.layerSteps + index + 1,
      of: making.layerSteps + recipe.setup.length,
      title: stepTitle(step),
    });
    const fault = await runStep(box, step, making);
    if (fault !== undefined && step.optional === true)
      making.warn(`${stepFailed(fault).message}\nthe environment is kept without this step`);
    else if (fault !== undefined) failed.set(project, fault);
    // The next build continues at the first step that failed.
    if (failed.size === 0) await noteBuilding(making.files, { ...building, steps: index + 1 });
  }
  const all = [...failed.values()];
  if (all.length > 0 && all.length === new Set(projects ?? [""]).size) throw setupFailed(all, false);
  return all;
}

/** `partly`: a record of the environment was made all the same, so the next build begins anew. */
function setupFailed(all: readonly FailedStep[], partly: boolean): HarnessError {
  const errors = all.map((fault) => stepFailed({ ...fault, continues: !partly }));
  const [first] = errors;
  const rest = partly ? ["the environment has what the other projects need"] : [];
  const message = [...errors.map(({ message: text }) => text), ...rest].join("\n");
  return new HarnessError(EXIT.failed, message, first?.remedy);
}

async function setupBox(making: Build, { image, volumes }: BuildingRecord): Promise<OwnedBox> {
  const { engine, host, settings, workspace, chosen, files, signal, warn } = making;
  const { recipe } = chosen;
  // Yarn is installed by the system layer, with its own registry setting.
  const askBox = recipe.managers.yarn === undefined || image === null ? undefined : askerIn(engine, image);
  const network = await networkOf(making, recipe.registries, askBox);
  const variables = toolVariables(recipe, { workspace, granted: true, minAge: settings.min_release_age });
  const { home, state } = host.places;
  return startBox(
    { engine, root: packageRoot, uid: host.uid, home, stateDir: state, onWarning: warn },
    {
      workspace,
      mode: "workspace-write",
      image: null,
      isolation: isElsewhere(engine.endpoint) ? "copy" : "overlay",
      limits: { memory: settings.memory, cpus: settings.cpus, pids: settings.pids },
      runtime: null,
      watchChanges: true,
      keep: null,
      // /tmp and HOME of a box are small.
      environment: {
        image,
        volumes,
        env: { ...variables, TMPDIR: `${CACHE}/tmp` },
        use: "fill",
        services: [],
        notes: files.points,
      },
      ...(network === undefined ? {} : { network }),
    },
    signal,
  );
}

const KEEP = { head: 0, tail: 64 * 1024 };
const STEP_MS = 3_600_000;

/** Undefined if it succeeded. */
async function runStep(
  box: OwnedBox,
  step: Recipe["setup"][number],
  making: Build,
): Promise<FailedStep | undefined> {
  const last: Buffer[] = [];
  using silence = new Silence(making.silentMs ?? SILENT_MS);
  const onOutput = (_: string, bytes: Uint8Array): void => {
    silence.broken();
    last.push(Buffer.from(bytes));
    if (last.length > 60) last.shift();
    writeOutput(making, bytes);
  };
  const words = ["sh", "-c", `mkdir -p "$TMPDIR" 2>/dev/null; ${step.run}`];
  const folder = step.folder === "." ? box.workspace : `${box.workspace}/${step.folder}`;
  const keep = { ...KEEP, head: Number.MAX_SAFE_INTEGER };
  const {
    exit_code,
    reason,
    blocked_connections = [],
  } = await box.exec(
    { words, folder, timeoutMs: STEP_MS, keep, onOutput },
    AbortSignal.any([making.signal, silence.signal]),
  );
  making.signal.throwIfAborted();
  const refused = blocked_connections.map(({ host, reason: why }) => `refused: ${host}: ${why}\n`).join("");
  return exit_code === 0
    ? undefined
    : {
        title: stepTitle(step),
        output: Buffer.concat(last).toString("utf8"),
        reason: silence.why ?? reason,
        refused,
        named: namedHosts(making.chosen.notTaken, step.folder).filter(
          (host) => !making.settings.allow_domains.includes(host),
        ),
      };
}

async function outputOf(box: OwnedBox, script: string, signal: AbortSignal): Promise<string> {
  const words = ["sh", "-c", `${script}; rm -rf "${CACHE}/tmp"`];
  const { stdout } = await box.exec({ words, timeoutMs: 60_000, keep: { head: 16_384, tail: 0 } }, signal);
  return Buffer.from(stdout.head).toString("utf8");
}
