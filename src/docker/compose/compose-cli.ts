import { execFile } from "node:child_process";
import type { Endpoint } from "../engine-endpoint.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A `docker compose` that answered, and the environment that leads it to our engine. */
export interface Compose {
  readonly version: string;
  readonly env: Env;
}

const VERSION_MS = 3000;
/** The image is here before compose is asked, so only making and starting count. */
const UP_MS = 120_000;
const STDERR_CHARS = 300;

/** `docker compose` (version 2 or later) on PATH, or undefined: then the Engine API serves. */
export async function findCompose(
  endpoint: Endpoint,
  env: Env,
  signal?: AbortSignal,
): Promise<Compose | undefined> {
  const led = engineEnv(endpoint, env);
  const { code, stdout } = await docker(["compose", "version"], led, { ms: VERSION_MS, signal });
  const version = /^Docker Compose version v?(\d+\.\d+[^\s,]*)/m.exec(stdout)?.[1];
  const usable = code === 0 && version !== undefined && Number.parseInt(version, 10) >= 2;
  return usable ? { version, env: led } : undefined;
}

/** Starts one service of the file: undefined, or compose's own words on why not. */
export async function composeUp(
  compose: Compose,
  target: { readonly project: string; readonly file: string; readonly service: string },
  signal?: AbortSignal,
): Promise<string | undefined> {
  const { project, file, service } = target;
  const args = ["compose", "-p", project, "-f", file, "up", "-d", service];
  const { code, stderr, ended } = await docker(args, compose.env, { ms: UP_MS, signal });
  if (code === 0) return undefined;
  if (ended === "timeout") return `docker compose did not end within ${UP_MS / 1000} s`;
  const words = stderr.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
  return `docker compose ended with ${code}: ${words.slice(-STDERR_CHARS)}`;
}

/** DOCKER_CONTEXT outranks DOCKER_HOST, so it must go. */
function engineEnv({ host, tls }: Endpoint, env: Env): Env {
  const { DOCKER_CONTEXT: _context, DOCKER_TLS_VERIFY: _verify, DOCKER_CERT_PATH: _path, ...rest } = env;
  const secured = tls === undefined ? {} : { DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: tls };
  return { ...rest, DOCKER_HOST: host, ...secured };
}

interface Ended {
  /** 127 when it could not be started at all. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly ended: "exit" | "timeout" | "abort";
}

interface Bounds {
  readonly ms: number;
  readonly signal: AbortSignal | undefined;
}

/** Runs `docker`, with nothing on stdin; how it ended is a value. */
async function docker(args: readonly string[], env: Env, { ms, signal }: Bounds): Promise<Ended> {
  const { promise, resolve } = Promise.withResolvers<Ended>();
  const bounds = { env, timeout: ms, maxBuffer: 2 ** 23, ...(signal === undefined ? {} : { signal }) };
  const child = execFile("docker", args, bounds, (error, stdout, stderr) => {
    const ended = signal?.aborted ? "abort" : error?.killed ? "timeout" : "exit";
    const code = error === null ? 0 : typeof error.code === "number" ? error.code : 127;
    resolve({ code, stdout, stderr: stderr || (error?.message ?? ""), ended });
  });
  child.stdin?.end();
  return await promise;
}
