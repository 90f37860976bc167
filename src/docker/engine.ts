import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import Docker from "dockerode";
import * as z from "zod";
import { readEngineAddress } from "../core/addresses.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import type { HostFacts } from "./container-spec.ts";
import { type Endpoint, endpointsFrom, type NamedEngine, refusePlain } from "./engine-endpoint.ts";
import { afterWaiting } from "../platform/waits.ts";

/** The container engine: how it is found and asked, what it says of its machine, what its failures mean. */

/** An engine that answered. */
export interface Engine {
  readonly api: Docker;
  readonly endpoint: Endpoint;
  readonly version: EngineVersion;
  /** How long it may take to answer. */
  readonly patience: EnginePatience;
  /** What it said of its machine when it was found; asked for again where this is left out. */
  readonly info?: Promise<unknown>;
}

interface EngineVersion {
  readonly name: string;
  readonly version: string;
  readonly api: string;
  readonly arch: string;
}

/** Why nothing answered. `denied` and `dead` name the address that was there but of no use. */
export interface NoEngine {
  readonly kind: "absent" | "dead" | "denied";
  readonly host: string;
  readonly origin: string;
  readonly reason: string;
  /** What to type, where the way there knows better than the machine. */
  readonly remedy?: string;
}

const ANSWER_MS = 10_000;
/** A connection that nothing is asked over is closed. */
const IDLE_MS = 5000;

/** The first address that answers; else why the most telling one did not. */
export async function findEngine(
  env: Readonly<Record<string, string | undefined>>,
  uid: number,
  signal?: AbortSignal,
  named?: NamedEngine,
): Promise<Engine | NoEngine> {
  let worst: NoEngine | undefined;
  for (const endpoint of await endpointsFrom(env, uid, named)) {
    refusePlain(endpoint);
    const answer = await knock(endpoint, env, signal);
    signal?.throwIfAborted();
    if ("api" in answer) return answer;
    if (worst === undefined || severity(answer) > severity(worst)) worst = answer;
  }
  return worst ?? { kind: "absent", host: "", origin: "", reason: "no address to try" };
}

export const isEngine = (found: Engine | NoEngine): found is Engine => "api" in found;

const severity = (failure: NoEngine): number => ["absent", "dead", "denied"].indexOf(failure.kind);

async function knock(
  endpoint: Endpoint,
  env: Readonly<Record<string, string | undefined>>,
  signal?: AbortSignal,
): Promise<Engine | NoEngine> {
  const failed = new AbortController();
  const until = (own: AbortSignal): AbortSignal =>
    signal === undefined ? own : AbortSignal.any([own, signal]);
  try {
    const patience = new EnginePatience();
    const api = engineClient(await dockerOptions(endpoint, env), patience);
    // Whoever looks for an engine nearly always wants a box of it, and over a socket a second question costs nothing.
    const info = endpoint.host.startsWith("unix:") ? askInfo(api, until(failed.signal)) : undefined;
    info?.catch(() => undefined);
    const version = readVersion(await answered((silence) => askVersion(api, until(silence))));
    return { api, endpoint, version, patience, ...(info === undefined ? {} : { info }) };
  } catch (thrown) {
    // Otherwise the second question would hold the process for as long as an engine may take.
    failed.abort();
    const { host, origin } = endpoint;
    const remedy = remedyOf(thrown);
    const failure = { kind: kindOf(thrown), host, origin, reason: reasonOf(thrown) };
    return remedy === undefined ? failure : { ...failure, remedy };
  }
}

/** The library takes a signal in both; its types do not know of it. */
export const askInfo = (api: Docker, abortSignal: AbortSignal): Promise<unknown> =>
  (api.info as (options: object) => Promise<unknown>).call(api, { abortSignal });
export const askVersion = (api: Docker, abortSignal: AbortSignal): Promise<unknown> =>
  (api.version as (options: object) => Promise<unknown>).call(api, { abortSignal });

const versionAnswer = z.looseObject({
  Version: z.string(),
  ApiVersion: z.string(),
  Arch: z.string().default(""),
  Components: z.array(z.looseObject({ Name: z.string() })).nullish(),
});

function readVersion(answer: unknown): EngineVersion {
  const { success, data } = versionAnswer.safeParse(answer);
  if (!success) throw new Error("something other than an engine answers there");
  const podman = (data.Components ?? []).some(({ Name }) => /podman/i.test(Name));
  return {
    name: podman ? "Podman" : "Docker",
    version: data.Version,
    api: data.ApiVersion,
    arch: data.Arch,
  };
}

function kindOf(thrown: unknown): NoEngine["kind"] {
  switch (errorCode(thrown)) {
    case "ENOENT":
    case "ENOTDIR":
      return "absent";
    case "EACCES":
    case "EPERM":
      return "denied";
    default:
      return "dead";
  }
}

/** What went wrong on the way may say what to do about it. */
const remedyOf = (thrown: unknown): string | undefined =>
  thrown instanceof Error && "remedy" in thrown && typeof thrown.remedy === "string"
    ? thrown.remedy
    : undefined;

/** The library takes an agent; its types do not know of it. */
type ClientOptions = Docker.DockerOptions & { readonly agent?: object };

/** All that the library would take from the environment otherwise: DOCKER_HOST may name another engine. */
const NOTHING_ELSE = {
  host: undefined,
  port: undefined,
  socketPath: undefined,
  username: undefined,
  agent: undefined,
  ca: undefined,
  cert: undefined,
  key: undefined,
  protocol: "http",
} as unknown as ClientOptions;

async function dockerOptions(
  endpoint: Endpoint,
  env: Readonly<Record<string, string | undefined>>,
): Promise<ClientOptions> {
  const { host, tls } = endpoint;
  const socketPath = /^(?:unix:\/\/|npipe:)(.*)$/s.exec(host)?.[1];
  if (socketPath !== undefined) return { ...NOTHING_ELSE, socketPath, agent: await socketAgent() };
  if (host.startsWith("ssh:")) return sshOptions(host, env);
  const secured = tls !== undefined || host.startsWith("https:");
  const url = new URL(host.replace(/^(?:tcp|http|https):/, secured ? "https:" : "http:"));
  const at = { host: url.hostname, port: url.port || (secured ? "2376" : "2375") };
  if (!secured) return { ...NOTHING_ELSE, ...at };
  const { Agent } = await import("node:https");
  // With a variable Node would leave the server unverified, and connections would each be made anew.
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: true, ...pemsIn(tls) });
  return { ...NOTHING_ELSE, ...at, protocol: "https", agent };
}

/** A socket has no name that a server could be known by: where Node is not told so, it looks for one, which takes 3 ms at first. */
async function socketAgent(): Promise<object> {
  const { Agent } = await import("node:http");
  const nameless = { servername: "" };
  return new Agent({ keepAlive: true, timeout: IDLE_MS, ...nameless });
}

function pemsIn(folder: string | undefined): Readonly<Record<"ca" | "cert" | "key", Buffer>> | object {
  if (folder === undefined) return {};
  const pem = (name: string): Buffer => readFileSync(path.join(folder, name));
  return { ca: pem("ca.pem"), cert: pem("cert.pem"), key: pem("key.pem") };
}

async function sshOptions(
  host: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<ClientOptions> {
  const read = readEngineAddress(host);
  if (read.kind === "wrong" || read.address.kind !== "ssh")
    throw new Error(read.kind === "wrong" ? read.message : "no ssh address");
  const { SshAgent } = await import("./ssh-engine.ts");
  return { ...NOTHING_ELSE, host: "engine", port: "80", agent: new SshAgent(read.address, env) };
}

/** Gives up when the engine stays silent: a stopped process can hold a socket open for ever. */
export async function answered<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const silence = new AbortController();
  const stop = afterWaiting(ANSWER_MS, () => silence.abort());
  try {
    return await work(silence.signal);
  } catch (thrown) {
    throw silence.signal.aborted
      ? new Error(`no answer within ${ANSWER_MS / 1000} s`, { cause: thrown })
      : thrown;
  } finally {
    stop();
  }
}

interface Info {
  readonly NCPU?: number;
  readonly SecurityOptions?: readonly string[] | null;
  readonly CgroupVersion?: string;
  readonly DockerRootDir?: string;
  readonly Runtimes?: Readonly<Record<string, unknown>>;
  readonly Rootless?: boolean;
  readonly MemoryLimit?: boolean;
  readonly PidsLimit?: boolean;
}

export interface EngineFacts extends HostFacts {
  /** Where the engine keeps its data. */
  readonly root: string;
  readonly runtimes: readonly string[];
}

/** What the container spec must know of the engine's machine. */
export async function hostFacts(engine: Engine): Promise<EngineFacts> {
  const info = (await (engine.info ?? engine.api.info())) as Info;
  const podman = isPodman(engine) ? { rootless: info.Rootless === true } : undefined;
  if (podman !== undefined) refusePodman(engine, info);
  return {
    cpus: info.NCPU ?? 1,
    apparmor: (info.SecurityOptions ?? []).some((option) => option.includes("name=apparmor")),
    runtime: null,
    runtimes: Object.keys(info.Runtimes ?? {}),
    root: info.DockerRootDir ?? "/var/lib/docker",
    swappiness: info.CgroupVersion !== "2",
    ...(podman === undefined ? {} : { podman }),
  };
}

export const isPodman = ({ version }: Engine): boolean => version.name === "Podman";

/** Why no box can be held on this Podman, or undefined. */
export function lackOfPodman(
  { endpoint }: Engine,
  {
    Rootless,
    CgroupVersion,
    MemoryLimit,
    PidsLimit,
  }: Pick<Info, "Rootless" | "CgroupVersion" | "MemoryLimit" | "PidsLimit">,
): string | undefined {
  // Not all of what tries to get out of a box was run on it: whoever wants it, says so.
  if (endpoint.origin === "usual socket" || endpoint.origin.startsWith("docker context"))
    return "it is used only if DOCKER_HOST or --engine names it";
  if (!endpoint.host.startsWith("unix:"))
    return "its boxes are verified by files of its machine, which may be another one";
  const lacking = [
    ...(MemoryLimit === false ? ["memory"] : []),
    ...(PidsLimit === false ? ["processes"] : []),
  ];
  if (Rootless === true && CgroupVersion !== "2")
    return "rootless, it sets no limits on memory and processes with cgroups version 1";
  return lacking.length === 0 ? undefined : `it sets no limit on ${lacking.join(" and ")} here`;
}

/** Before anything is made. */
function refusePodman(engine: Engine, info: Info): void {
  const lack = lackOfPodman(engine, info);
  if (lack === undefined) return;
  const { version, endpoint } = engine;
  throw new HarnessError(
    EXIT.sandbox,
    `no box on ${version.name} ${version.version} at ${endpoint.host}: ${lack} (docs/engines.md)`,
    "use rootful Podman, or Docker: DOCKER_HOST=unix:///path/to.sock",
  );
}

/** The profile that is sent with every container, from the installed package at `root`. */
export async function readSeccomp(root: string): Promise<string> {
  const file = path.join(root, "sandbox", "seccomp.json");
  try {
    return JSON.stringify(JSON.parse(await readFile(file, "utf8")));
  } catch (thrown) {
    throw new HarnessError(EXIT.sandbox, `${file}: ${reasonOf(thrown)}`, "reinstall: npm ci", thrown);
  }
}

/** The parts of a request of the engine's client that matter here. */
interface Request {
  readonly path: string;
  readonly options?: Readonly<Record<string, unknown>>;
  /** Content that is sent as a stream. */
  readonly file?: unknown;
  readonly abortSignal?: AbortSignal | undefined;
  /** What each status of the answer means. */
  readonly statusCodes?: Readonly<Record<number, true | string>>;
}

type Answer = (failure: Error | null, data: unknown) => void;

interface Modem {
  dial: (request: Request, answer: Answer) => void;
}

/** Sends a request for which the client has no method, or whose method takes no signal. */
export const askEngine = (
  api: Docker,
  request: Request & { readonly method: "GET" | "POST" },
): Promise<unknown> =>
  new Promise((resolve, reject) => {
    (api.modem as Modem).dial(request, (failure, data) => {
      if (failure === null) resolve(data);
      else reject(failure);
    });
  });

/** An engine's client that limits every wait and sends the content of a create request only once. */
export function engineClient(options: Docker.DockerOptions, patience: EnginePatience): Docker {
  const api = new Docker(options);
  const modem = api.modem as Modem;
  const dial = modem.dial.bind(modem);
  modem.dial = (request, answer) => {
    const wait = patience.begin(isLong(request));
    const { abortSignal: own } = request;
    const abortSignal = own === undefined ? wait.signal : AbortSignal.any([own, wait.signal]);
    dial({ ...sentOnce(request), abortSignal }, (failure, data) => {
      wait.end(wait.signal.aborted);
      answer(wait.signal.aborted ? (wait.signal.reason as Error) : failure, data);
    });
  };
  return api;
}

/** Requests that end with a container, a build, a pull or an upload; their callers watch them. */
const isLong = ({ path, file }: Request): boolean =>
  file !== undefined || /^\/(?:containers\/[^/?]+\/wait|build|images\/(?:create|load)|commit)\b/.test(path);

/**
 * The library also puts the body's fields into the address, the seccomp profile included. It also puts the options of
 * an attach request into a body, which Podman takes for input of the container.
 */
function sentOnce(request: Request): Request {
  if (/^\/containers\/[^/?]+\/attach\?/.test(request.path)) return { ...request, file: Buffer.alloc(0) };
  if (request.options === undefined || !/^\/(?:containers|volumes|networks)\/create\?/.test(request.path))
    return request;
  const { name, platform, abortSignal: _, authconfig: __, ...body } = request.options;
  const query = Object.entries({ name, platform }).filter(([, value]) => value !== undefined);
  return { ...request, options: { _query: Object.fromEntries(query), _body: body } };
}

export interface Bounds {
  readonly answerMs: number;
  /** For an engine that has already let a wait run out, or if somebody wants an end. */
  readonly hurriedMs: number;
}

const BOUNDS: Bounds = { answerMs: 30_000, hurriedMs: 5000 };

interface Wait {
  readonly signal: AbortSignal;
  /** `silent`: the wait was given up. */
  readonly end: (silent: boolean) => void;
}

/** How long an engine may take to answer: a stopped process keeps a socket open for ever. */
export class EnginePatience {
  readonly #bounds: Bounds;
  readonly #pending = new Set<(ms: number) => void>();
  #hurried = false;
  #silent = false;

  constructor(bounds: Bounds = BOUNDS) {
    this.#bounds = bounds;
  }

  begin(long: boolean): Wait {
    const { answerMs, hurriedMs } = this.#bounds;
    const waiting = new AbortController();
    const state: { stop?: () => void } = {};
    const within = (ms: number): void => {
      state.stop?.();
      state.stop = afterWaiting(ms, () => waiting.abort(silentFor(ms)));
    };
    this.#pending.add(within);
    if (this.#hurried || (this.#silent && !long)) within(hurriedMs);
    else if (!long) within(answerMs);
    return {
      signal: waiting.signal,
      end: (silent) => {
        state.stop?.();
        this.#pending.delete(within);
        this.#silent = silent;
      },
    };
  }

  /** Once the signal fires, all pending and future requests to the engine end soon. */
  hurry(signal: AbortSignal): Disposable {
    const hurried = (): void => {
      this.#hurried = true;
      for (const within of this.#pending) within(this.#bounds.hurriedMs);
    };
    if (signal.aborted) hurried();
    signal.addEventListener("abort", hurried, { once: true });
    return { [Symbol.dispose]: () => signal.removeEventListener("abort", hurried) };
  }
}

const silentFor = (ms: number): Error => new Error(`the engine has not answered for ${ms / 1000} s`);

const LOST = new Set(["ECONNREFUSED", "ECONNRESET", "ENOENT", "EPIPE"]);

/** Turns a failure of the engine while we were `doing` something into one that a person can act on. */
export function engineFailure(doing: string, thrown: unknown): HarnessError {
  const lost = LOST.has(errorCode(thrown) ?? "");
  const reason = reasonOf(thrown).trimEnd();
  const [, cpus] = CPUS.exec(reason) ?? [];
  const usualRemedy = cpus === undefined ? "harness doctor" : `harness config set cpus ${Number(cpus)}`;
  const remedy = lost ? "the engine has gone away; start it again: ./start.sh" : usualRemedy;
  return new HarnessError(EXIT.sandbox, `${doing}: ${reason}`, remedy, thrown);
}

/** The engine's answer if more processors are requested than it has. */
const CPUS = /Range of CPUs is from [\d.]+ to (\d+(?:\.\d+)?)/;

/** True for an answer of the engine, as opposed to a failure to reach it. */
export const hasStatus = (thrown: unknown): thrown is { readonly statusCode: number } =>
  typeof thrown === "object" &&
  thrown !== null &&
  "statusCode" in thrown &&
  typeof thrown.statusCode === "number";

/** The engine answers 404 for a thing that is not there. */
export const isMissing = (thrown: unknown): boolean => hasStatus(thrown) && thrown.statusCode === 404;

/** Two removals of the same thing at once: the engine refuses the second, and the first is enough. */
export const isBeingRemoved = (thrown: unknown): boolean =>
  hasStatus(thrown) && thrown.statusCode === 409 && /already in progress/i.test(reasonOf(thrown));

/** For a removal: passes over a thing that is gone already, or that another process is removing. */
export function unlessGone(thrown: unknown): void {
  if (!isMissing(thrown) && !isBeingRemoved(thrown)) throw thrown;
}
