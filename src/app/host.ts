import { existsSync, realpathSync, statSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { type Env, type Places, placesFrom } from "../config/places.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { type Config, loadConfig } from "../config/load-config.ts";
import { type EngineAddress, readEngineAddress } from "../core/addresses.ts";
import type { NamedEngine } from "../docker/engine-endpoint.ts";

/** The user and the machine that a command works for: read once at the start of the command, and handed down. */
export interface Host {
  readonly env: Env;
  readonly places: Places;
  readonly uid: number;
  /** The file of the user's keys: next to the settings, but not part of them, because settings are shown. */
  readonly keysFile: string;
  /** The engine that --engine names; null: as the environment and the settings say. */
  readonly engine: string | null;
}

export function hostFrom(env: Env, engine: string | null = null): Host {
  const places = placesFrom(env);
  const keysFile = path.join(path.dirname(places.configFiles[0]), "keys.json");
  return { env, places, uid: process.getuid?.() ?? 0, keysFile, engine };
}

/** The installed package: the nearest folder above this file that holds Dockerfile.sandbox. */
export const packageRoot = nearest(import.meta.dirname);

function nearest(folder: string): string {
  const parent = path.dirname(folder);
  return existsSync(path.join(folder, "Dockerfile.sandbox")) || parent === folder ? folder : nearest(parent);
}

/** The program of a worker: a file of its own in the bundle; from sources, Node runs the source file. */
export function workerProgram(name: string, source: string): URL {
  const file = path.join(packageRoot, source);
  const isSource = import.meta.url.endsWith(".ts") && existsSync(file);
  return pathToFileURL(isSource ? file : path.join(packageRoot, `dist/${name}.cjs`));
}

/** The folder that a run works in, as its sessions name it. `next` is the remedy if there is no such folder. */
export function runWorkspace(folder: string, next = NEXT): string {
  const real = realFolder(folder, next);
  if (statSync(real).isDirectory()) return real;
  throw new HarnessError(EXIT.usage, `${folder} is not a folder`, next);
}

function realFolder(folder: string, next: string): string {
  try {
    return realpathSync.native(folder);
  } catch (thrown) {
    throw new HarnessError(EXIT.usage, `there is no folder ${folder}: ${reasonOf(thrown)}`, next, thrown);
  }
}

const NEXT = 'harness run --cwd FOLDER "…"';

/**
 * The engine that the user named: --engine, else HARNESS_ENGINE, else the user's settings. Undefined: as DOCKER_HOST,
 * contexts and the usual sockets say. A project cannot name an engine.
 */
export async function namedEngine(host: Host): Promise<NamedEngine | undefined> {
  if (host.engine !== null) return readNamed(host.engine, "--engine");
  const { settings, origins } = await loadConfig({ env: host.env, project: undefined, flags: new Map() });
  return settings.engine === null ? undefined : readNamed(settings.engine, origins["engine"] ?? "engine");
}

/** The cluster, if boxes are pods. */
export async function namedCluster(host: Host): Promise<ClusterName | undefined> {
  const named = await namedEngine(host);
  return named?.address.kind === "kubernetes" ? named.address : undefined;
}

/** The engine that environments are built on: if boxes are pods, this machine's usual engine. */
export async function engineOfEnvironments(host: Host): Promise<NamedEngine | undefined> {
  const named = await namedEngine(host);
  return named?.address.kind === "kubernetes" ? undefined : named;
}

export type ClusterName = Extract<EngineAddress, { readonly kind: "kubernetes" }>;

function readNamed(text: string, origin: string): NamedEngine {
  const read = readEngineAddress(text);
  if (read.kind === "address") return { address: read.address, origin };
  throw new HarnessError(
    EXIT.usage,
    `${origin}: ${read.message}`,
    "--engine ssh://user@host, or leave it out to use this machine's engine",
  );
}

/**
 * The settings, adapted to the engine that makes the boxes. An engine on another machine sees no file of this one, so
 * its boxes work on a copy; an explicit other isolation is refused before anything is made.
 */
export async function settingsOnEngine(host: Host, config: Config): Promise<Config> {
  const { settings, origins } = config;
  const { isolation } = settings;
  if (isolation === "copy") return config;
  const at = await remoteEngineName(host, config);
  if (at === undefined) return config;
  const origin = origins["isolation"] ?? "default";
  if (origin !== "default" && origin !== config.project?.file)
    throw new HarnessError(
      EXIT.usage,
      `isolation ${isolation} (from ${origin}): ${at} cannot see this machine's files, which ${isolation === "bind" ? "a bind mount" : "an overlay"} needs`,
      "leave it out, or use --isolation copy: the folder is copied there, and harness apply brings the changes back",
    );
  return { ...config, settings: { ...settings, isolation: "copy" }, origins: { ...origins, isolation: at } };
}

/**
 * Whether docker's own settings may name an engine. Without such settings, neither their files nor the code that reads
 * them is loaded.
 */
function mayBeNamed({ env }: Host): boolean {
  if (env["DOCKER_HOST"]) return !env["DOCKER_HOST"].startsWith("unix:");
  if (env["DOCKER_CONTEXT"]) return true;
  const folder = env["DOCKER_CONFIG"] || path.join(env["HOME"] || "/", ".docker");
  return existsSync(path.join(folder, "config.json"));
}

/** Where a session's changes are, as recorded in its layer. */
interface LayerPlace {
  /** The engine's address as it was dialled. */
  readonly at?: string | undefined;
  /** The docker context that named the engine then. */
  readonly context?: string | undefined;
}

/**
 * The host, set to the engine that holds a session's changes: an engine named for the session's first run need not be
 * named again to look at them. --engine takes precedence.
 */
export async function hostAt(host: Host, place: LayerPlace | undefined): Promise<Host> {
  const { at, context } = place ?? {};
  if (at === undefined || host.engine !== null || readEngineAddress(at).kind === "wrong") return host;
  if (await isDefaultEngine(host, at)) return host;
  const { leadsTo } = await import("../docker/engine-endpoint.ts");
  // The engine's certificates may be the context's own.
  const named = context !== undefined && (await leadsTo(context, host.env, at)) ? context : at;
  return { ...host, engine: named };
}

/** Whether the engine at this address is used without being named. */
export async function isDefaultEngine(host: Host, at: string): Promise<boolean> {
  const { endpointsFrom } = await import("../docker/engine-endpoint.ts");
  const endpoints = await endpointsFrom(host.env, host.uid, await namedEngine(host)).catch(() => []);
  return endpoints.some((endpoint) => endpoint.host === at);
}

/** What to call an engine on another machine; undefined for a local one. Contacts no engine. */
async function remoteEngineName(host: Host, { settings, origins }: Config): Promise<string | undefined> {
  const { engine } = settings;
  const named = engine === null ? undefined : readNamed(engine, origins["engine"] ?? "engine");
  if (named?.address.kind === "kubernetes") return `the cluster at ${engine}`;
  if (named === undefined && !mayBeNamed(host)) return undefined;
  const { endpointsFrom, isElsewhere } = await import("../docker/engine-endpoint.ts");
  const [first] = await endpointsFrom(host.env, host.uid, named).catch((thrown: unknown) => {
    // If the user named no engine, the error is reported where an engine is needed.
    if (named === undefined) return [];
    throw thrown;
  });
  return first !== undefined && isElsewhere(first) ? `the engine at ${first.host}` : undefined;
}
