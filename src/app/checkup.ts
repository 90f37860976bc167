import { qdrantOf } from "./project/search-access.ts";
import type { Config } from "../config/load-config.ts";
import { DEFAULTS, type Settings } from "../config/settings-schema.ts";
import { unhealthy, EXIT, type ExitCode, HarnessError, type Health, healthy } from "../core/errors.ts";
import { boxHealth, diskHealth, engineHealth, imageHealth } from "../docker/engine-health.ts";
import { engineRemedy } from "../docker/engine-install.ts";
import { type Engine, isEngine } from "../docker/engine.ts";
import { readSystem } from "../platform/host-programs.ts";
import { listBoxes } from "../docker/box/box-list.ts";
import { modelHealth } from "../models/model-server.ts";
import { storeHealth } from "../search/stores/search-health.ts";
import { type Host, namedEngine, packageRoot } from "./host.ts";
import { trustHealth } from "./project/project-trust.ts";
import { lookForEngine, noEngine } from "./boxes/box-access.ts";
import { waitingTimeout } from "../platform/waits.ts";

/** Checks everything `run` depends on, side by side. */
export async function checkUp(
  host: Host,
  workspace: string,
  load: () => Promise<Config>,
): Promise<readonly Health[]> {
  const config = await load().catch(asFailure);
  const { settings } = config instanceof HarnessError ? { settings: DEFAULTS } : config;
  const configCheck =
    config instanceof HarnessError
      ? unhealthy("config", config.message, config.remedy)
      : healthy("config", describeOrigins(config));
  const groups = await Promise.all([
    engineChecks(host, settings, { unread: config instanceof HarnessError, workspace }),
    diskHealth("disk", host.places.state),
    modelChecks(host, settings),
    storeHealth({ store: settings.search.store, ...qdrantOf(host.env, settings.search) }),
  ]);
  const project = await trustHealth(host, workspace);
  return [
    configCheck,
    ...project,
    healthy("node", `${process.version} at ${process.execPath}`),
    ...groups.flat(),
  ];
}

/** Checks of the configured model: whether its server answers, and has the model. */
export const modelChecks = (host: Host, settings: Settings): Promise<readonly Health[]> =>
  modelHealth({
    provider: settings.provider,
    baseUrl: settings.base_url,
    model: settings.chat_model,
    maxContext: settings.max_context_tokens,
    env: host.env,
    keysFile: host.keysFile,
    signal: waitingTimeout(10_000),
  });

/** The requirements of every run, checked without starting a box. */
export async function firstChecks(host: Host, settings: Settings): Promise<readonly Health[]> {
  const [engine, model] = await Promise.all([engineAndImage(host, settings), modelChecks(host, settings)]);
  return [...engine, ...model];
}

async function engineAndImage(host: Host, settings: Settings): Promise<readonly Health[]> {
  const found = await lookForEngine(host).catch(asFailure);
  if (found instanceof HarnessError || !isEngine(found)) return engineChecks(host, settings);
  const health = imageHealth(found, packageRoot, settings.image).catch(engineTrouble);
  return [
    ...(await engineHealth(found).catch((thrown: unknown) => [engineTrouble(thrown)])),
    await health,
  ].filter(({ id, state }) => id === "engine" || id === "image" || state === "fail");
}

/** The code `run` would end with: config first, then the box, then the model. */
export function exitFor(checks: readonly Health[]): ExitCode {
  const failed = checks.filter(({ state }) => state === "fail").map(({ id }) => id);
  if (failed.includes("config")) return EXIT.usage;
  if (failed.some((id) => !id.startsWith("model"))) return EXIT.sandbox;
  return failed.length > 0 ? EXIT.model : EXIT.done;
}

/** `unread`: the settings cannot be read, which is reported separately; the engine that they name is unknown then. */
async function engineChecks(
  host: Host,
  settings: Settings,
  { unread = false, workspace }: { readonly unread?: boolean; readonly workspace?: string } = {},
): Promise<readonly Health[]> {
  const { image } = settings;
  const named = unread && host.engine === null ? Promise.resolve(undefined) : namedEngine(host);
  const cluster = await named.catch(() => undefined);
  if (cluster?.address.kind === "kubernetes") {
    const { podHealth } = await import("./boxes/pod-access.ts");
    return podHealth(host, settings, cluster.address, workspace).catch((thrown: unknown) => [
      engineTrouble(thrown),
    ]);
  }
  const found = await lookForEngine(host, undefined, named).catch(asFailure);
  if (found instanceof HarnessError) return [unhealthy("engine", found.message, found.remedy)];
  if (!isEngine(found)) {
    const remedy = engineRemedy(await readSystem(host.env), found);
    return [unhealthy("engine", noEngine(found, remedy).message, remedy)];
  }
  const checks = [engineHealth(found), imageAndBox(host, found, image), waitingBoxes(host, found)];
  const settled = await Promise.all(
    checks.map((check) => check.catch((thrown: unknown) => [engineTrouble(thrown)])),
  );
  return settled.flat();
}

async function imageAndBox({ uid }: Host, engine: Engine, own: string | null): Promise<readonly Health[]> {
  const check = await imageHealth(engine, packageRoot, own);
  if (check.state === "fail") return [check];
  return [check, await boxHealth(engine, { root: packageRoot, uid, image: own })];
}

/** Frozen boxes hold memory; without any, nothing is reported. */
async function waitingBoxes({ uid }: Host, engine: Engine): Promise<readonly Health[]> {
  const waiting = (await listBoxes(engine, uid)).flatMap(({ parked }) => parked ?? []);
  const [next] = waiting.map(({ until }) => until).toSorted();
  if (next === undefined) return [];
  const many = waiting.length === 1 ? "1 frozen box waits" : `${waiting.length} frozen boxes wait`;
  return [healthy("parked", `${many} for approval; the next one is given up at ${next}`)];
}

const engineTrouble = (thrown: unknown): Health =>
  thrown instanceof HarnessError
    ? unhealthy("engine", thrown.message, thrown.remedy)
    : unhealthy("engine", `the engine failed while it was checked: ${String(thrown)}`, "./start.sh");

function asFailure(thrown: unknown): HarnessError {
  if (thrown instanceof HarnessError) return thrown;
  throw thrown;
}

function describeOrigins({ origins }: Config): string {
  const named = [...new Set(Object.values(origins))].filter((origin) => origin !== "default");
  return named.length === 0 ? "defaults" : `defaults, ${named.join(", ")}`;
}
