import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";

/** An address where an engine may answer, and who named it. */
export interface Endpoint {
  readonly host: string;
  readonly origin: string;
  /** Folder with ca.pem, cert.pem and key.pem, for engines behind TLS. */
  readonly tls?: string;
}

type Env = Readonly<Record<string, string | undefined>>;

/** A variable's value; docker takes an empty one for unset. */
const valueOf = (env: Env, name: string): string | undefined => env[name] || undefined;

/** The addresses to try, in order. One that the user named is the only one tried. */
export async function endpointsFrom(env: Env, uid: number): Promise<readonly Endpoint[]> {
  const named = valueOf(env, "DOCKER_HOST");
  if (named !== undefined) return [fromDockerHost(named, env)];
  const context = await currentContext(env);
  if (context !== undefined) return [context];
  return usualSockets(env, uid).map((file) => ({ host: `unix://${file}`, origin: "usual socket" }));
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

const dockerHome = (env: Env): string =>
  valueOf(env, "DOCKER_CONFIG") ?? path.join(valueOf(env, "HOME") ?? "/", ".docker");

function checkedHost(host: string, origin: string): string {
  if (/^(?:unix:\/\/\/|tcp:\/\/[^/]|https?:\/\/[^/]|ssh:\/\/[^/]|npipe:)/.test(host)) return host;
  throw new HarnessError(
    EXIT.sandbox,
    `${origin}: ${JSON.stringify(host)} is no engine address; expected unix:///path/to.sock, tcp://host:port or ssh://user@host`,
    `unset ${origin === "DOCKER_HOST" ? "DOCKER_HOST" : "DOCKER_CONTEXT"}`,
  );
}

/** What `docker context use` chose; `default` means the usual sockets. */
async function currentContext(env: Env): Promise<Endpoint | undefined> {
  const home = dockerHome(env);
  const chosen =
    valueOf(env, "DOCKER_CONTEXT") ??
    stringAt(await readJson(path.join(home, "config.json")), "currentContext");
  if (chosen === undefined || chosen === "" || chosen === "default") return undefined;
  const id = createHash("sha256").update(chosen).digest("hex");
  const meta = await readJson(path.join(home, "contexts", "meta", id, "meta.json"));
  const host = stringAt(meta, "Endpoints", "docker", "Host");
  const origin = `docker context ${chosen}`;
  if (host === undefined) {
    const message = `${origin}: its description is missing under ${home}/contexts`;
    throw new HarnessError(EXIT.sandbox, message, "docker context use default");
  }
  const tls = path.join(home, "contexts", "tls", id, "docker");
  const secured = host.startsWith("tcp:") && (await readText(path.join(tls, "ca.pem"))) !== undefined;
  return { host: checkedHost(host, origin), origin, ...(secured ? { tls } : {}) };
}

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
    // A pipe that nobody writes to would be read for ever.
    return (await stat(file)).isFile() ? await readFile(file, "utf8") : undefined;
  } catch (thrown) {
    if (errorCode(thrown) !== undefined) return undefined;
    throw thrown;
  }
}

function stringAt(value: unknown, ...keys: readonly string[]): string | undefined {
  let inner = value;
  for (const key of keys) {
    if (typeof inner !== "object" || inner === null) return undefined;
    inner = (inner as Record<string, unknown>)[key];
  }
  return typeof inner === "string" ? inner : undefined;
}
