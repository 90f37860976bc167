import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { type EngineAddress, engineText, isLoopback } from "../core/addresses.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";

/** An address where an engine may answer, and who named it. */
export interface Endpoint {
  readonly host: string;
  readonly origin: string;
  /** Folder with ca.pem, cert.pem and key.pem, for engines behind TLS. */
  readonly tls?: string;
  /** The docker context that describes it. */
  readonly context?: string;
}

/** An engine that the user named for boxes, and what named it: a flag, a variable, a file. */
export interface NamedEngine {
  readonly address: EngineAddress;
  readonly origin: string;
}

type Env = Readonly<Record<string, string | undefined>>;

/** A variable's value; docker treats an empty one as unset. */
const valueOf = (env: Env, name: string): string | undefined => env[name] || undefined;

/** The addresses to try, in order. One that the user named is the only one tried. */
export async function endpointsFrom(
  env: Env,
  uid: number,
  engine?: NamedEngine,
): Promise<readonly Endpoint[]> {
  if (engine !== undefined && !isDefaultContext(engine.address)) return [await endpointNamed(engine, env)];
  const named = valueOf(env, "DOCKER_HOST");
  if (named !== undefined) return [fromDockerHost(named, env)];
  const context = await currentContext(env);
  if (context !== undefined) return [context];
  return usualSockets(env, uid).map((file) => ({ host: `unix://${file}`, origin: "usual socket" }));
}

/** In docker this name means: without any context. */
const isDefaultContext = (address: EngineAddress): boolean =>
  address.kind === "context" && address.name === "default";

async function endpointNamed({ address, origin }: NamedEngine, env: Env): Promise<Endpoint> {
  switch (address.kind) {
    case "unix":
      return { host: engineText(address), origin };
    case "ssh":
      return { host: engineText(address), origin };
    case "tcp": {
      const tls = address.plain ? undefined : await certificates(env);
      return { host: engineText(address), origin, ...(tls === undefined ? {} : { tls }) };
    }
    case "tls": {
      const tls = await certificates(env);
      return { host: engineText(address), origin, ...(tls === undefined ? {} : { tls }) };
    }
    case "context":
      return contextEndpoint(address.name, env, origin);
    case "kubernetes":
      throw new HarnessError(
        EXIT.usage,
        `${origin}: ${engineText(address)} is a cluster, but this needs a container engine`,
        "--engine unix:///var/run/docker.sock, tcp://, ssh:// or the name of a docker context",
      );
  }
}

/** The folder of certificates for engines behind TLS: the named one, else docker's own if it has certificates. */
async function certificates(env: Env): Promise<string | undefined> {
  const named = valueOf(env, "DOCKER_CERT_PATH");
  if (named !== undefined || valueOf(env, "DOCKER_TLS_VERIFY") !== undefined) return named ?? dockerHome(env);
  const usual = dockerHome(env);
  return (await readText(path.join(usual, "ca.pem"))) === undefined ? undefined : usual;
}

/**
 * True if the engine may be on another machine, and so sees none of our files. An engine that DOCKER_HOST or a context
 * names on loopback without TLS is taken for one of this machine.
 */
export function isElsewhere({ host, origin, tls }: Endpoint): boolean {
  if (/^(?:unix|npipe):/.test(host)) return false;
  const near = tls === undefined && /^(?:tcp|http):/.test(host) && isLoopback(hostOf(host) ?? "");
  return !near || !(origin === "DOCKER_HOST" || origin.startsWith("docker context"));
}

/** Undefined for an address that cannot be dialled at all. */
const hostOf = (address: string): string | undefined =>
  URL.parse(address.replace(/^[a-z]+:/, "http:"))?.hostname.replace(/^\[(.*)\]$/, "$1");

/** Whoever reads an engine's traffic can become root there, and reads the folder: `http://` states that nobody can. */
export function refusePlain({ host, origin, tls }: Endpoint): void {
  if (tls !== undefined || !host.startsWith("tcp:") || isLoopback(hostOf(host) ?? "localhost")) return;
  throw new HarnessError(
    EXIT.sandbox,
    `${origin}: ${host} is on another machine, and there are no TLS certificates: anyone on the way could read the folder and take over the engine`,
    "set DOCKER_CERT_PATH to the folder of ca.pem, cert.pem and key.pem, use ssh://, or http:// if nobody else is on the way",
  );
}

function fromDockerHost(host: string, env: Env): Endpoint {
  const tls =
    valueOf(env, "DOCKER_TLS_VERIFY") === undefined
      ? undefined
      : (valueOf(env, "DOCKER_CERT_PATH") ?? dockerHome(env));
  return {
    host: checkedHost(host, "DOCKER_HOST"),
    origin: "DOCKER_HOST",
    ...(tls === undefined ? {} : { tls }),
  };
}

export const dockerHome = (env: Env): string =>
  valueOf(env, "DOCKER_CONFIG") ?? path.join(valueOf(env, "HOME") ?? "/", ".docker");

function checkedHost(host: string, origin: string): string {
  if (/^(?:unix:\/\/\/|tcp:\/\/[^/]|https?:\/\/[^/]|ssh:\/\/[^/]|npipe:)/.test(host)) return host;
  throw new HarnessError(
    EXIT.sandbox,
    `${origin}: ${JSON.stringify(host)} is not an engine address; expected unix:///path/to.sock, tcp://host:port or ssh://user@host`,
    `unset ${origin === "DOCKER_HOST" ? "DOCKER_HOST" : "DOCKER_CONTEXT"}`,
  );
}

/** Finds a context by its name in docker's files, without docker. */
async function contextEndpoint(name: string, env: Env, origin: string): Promise<Endpoint> {
  const found = await readContext(name, env);
  if (found !== undefined) return found;
  const there = await contextNames(env);
  throw new HarnessError(
    EXIT.usage,
    `${origin}: there is no docker context ${name}; there ${there.length === 0 ? "is none" : `are ${there.join(", ")}`}`,
    "docker context ls, or an address: unix://, tcp://, ssh://",
  );
}

async function contextNames(env: Env): Promise<readonly string[]> {
  const folder = path.join(dockerHome(env), "contexts", "meta");
  const ids = await readdir(folder).catch(() => []);
  const names = await Promise.all(
    ids.slice(0, 100).map(async (id) => stringAt(await readJson(path.join(folder, id, "meta.json")), "Name")),
  );
  return names.filter((name) => name !== undefined).toSorted();
}

/** The context that `docker context use` chose; `default` means the usual sockets. */
async function currentContext(env: Env): Promise<Endpoint | undefined> {
  const home = dockerHome(env);
  const chosen =
    valueOf(env, "DOCKER_CONTEXT") ??
    stringAt(await readJson(path.join(home, "config.json")), "currentContext");
  if (chosen === undefined || chosen === "" || chosen === "default") return undefined;
  const found = await readContext(chosen, env);
  if (found !== undefined) return found;
  const message = `docker context ${chosen}: its description is missing under ${home}/contexts`;
  throw new HarnessError(EXIT.sandbox, message, "docker context use default");
}

/** Undefined if nothing describes the context. */
async function readContext(name: string, env: Env): Promise<Endpoint | undefined> {
  const home = dockerHome(env);
  const id = createHash("sha256").update(name).digest("hex");
  const meta = await readJson(path.join(home, "contexts", "meta", id, "meta.json"));
  const host = stringAt(meta, "Endpoints", "docker", "Host");
  const origin = `docker context ${name}`;
  if (host === undefined) return undefined;
  if (isTrueAt(meta, "Endpoints", "docker", "SkipTLSVerify"))
    throw new HarnessError(
      EXIT.sandbox,
      `${origin}: it turns off the verification of the engine's certificate, so anyone could pose as the engine`,
      `docker context update ${name} --docker host=${host},ca=FILE,cert=FILE,key=FILE`,
    );
  const tls = path.join(home, "contexts", "tls", id, "docker");
  const secured = host.startsWith("tcp:") && (await readText(path.join(tls, "ca.pem"))) !== undefined;
  return { host: checkedHost(host, origin), origin, context: name, ...(secured ? { tls } : {}) };
}

/** Whether a docker context of this name still leads to this address. */
export const leadsTo = async (name: string, env: Env, host: string): Promise<boolean> =>
  (await readContext(name, env).catch(() => undefined))?.host === host;

function usualSockets(env: Env, uid: number): readonly string[] {
  const home = valueOf(env, "HOME") ?? "/";
  const runtime = valueOf(env, "XDG_RUNTIME_DIR") ?? `/run/user/${uid}`;
  return [
    "/var/run/docker.sock",
    `${runtime}/docker.sock`,
    `${home}/.docker/run/docker.sock`,
    `${home}/.docker/desktop/docker.sock`,
    `${home}/.orbstack/run/docker.sock`,
    `${home}/.colima/default/docker.sock`,
    `${home}/.rd/docker.sock`,
    `${runtime}/podman/podman.sock`,
    "/run/podman/podman.sock",
  ];
}

async function readJson(file: string): Promise<unknown> {
  const text = await readText(file);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (thrown) {
    throw new HarnessError(
      EXIT.sandbox,
      `${file}: ${reasonOf(thrown)}`,
      "set DOCKER_HOST to the engine's address",
    );
  }
}

async function readText(file: string): Promise<string | undefined> {
  try {
    // A pipe without a writer would be read for ever.
    return (await stat(file)).isFile() ? await readFile(file, "utf8") : undefined;
  } catch (thrown) {
    if (errorCode(thrown) !== undefined) return undefined;
    throw thrown;
  }
}

function stringAt(value: unknown, ...keys: readonly string[]): string | undefined {
  const inner = valueAt(value, keys);
  return typeof inner === "string" ? inner : undefined;
}

const isTrueAt = (value: unknown, ...keys: readonly string[]): boolean => valueAt(value, keys) === true;

function valueAt(value: unknown, keys: readonly string[]): unknown {
  let inner = value;
  for (const key of keys) {
    if (typeof inner !== "object" || inner === null) return undefined;
    inner = (inner as Record<string, unknown>)[key];
  }
  return inner;
}
