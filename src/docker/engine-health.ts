import { statfs } from "node:fs/promises";
import path from "node:path";
import { PassThrough } from "node:stream";
import { formatDuration, formatSize } from "../core/wording.ts";
import {
  warningHealth,
  unhealthy,
  EXIT,
  HarnessError,
  type Health,
  healthy,
  reasonOf,
} from "../core/errors.ts";
import {
  answered,
  askInfo,
  askVersion,
  type Engine,
  hostFacts,
  isPodman,
  lackOfPodman,
  readSeccomp,
} from "./engine.ts";
import { boxImage, imageExists, RUNNER, wantedImage } from "./box-image.ts";
import { ownerLabels, thisProcess } from "../boxes/box-record.ts";
import { startCommand } from "../boxes/box-command.ts";
import { createContainer, verifiedContainer } from "./box/container.ts";
import type { BoxPlan } from "./container-spec.ts";

/** The checks of `harness doctor` and of set-up: of the engine, its images, its disk, and a box. */

/** The fields of the engine's own description that the checks read. */
interface EngineInfo {
  readonly Driver?: string;
  readonly CgroupVersion?: string;
  readonly CgroupDriver?: string;
  readonly MemoryLimit?: boolean;
  readonly PidsLimit?: boolean;
  readonly SecurityOptions?: readonly string[] | null;
  readonly Runtimes?: Readonly<Record<string, unknown>>;
  readonly DefaultRuntime?: string;
  readonly RuncCommit?: { readonly ID?: string };
  readonly KernelVersion?: string;
  readonly OperatingSystem?: string;
  readonly DockerRootDir?: string;
  readonly Rootless?: boolean;
}

interface Components {
  readonly Components?: readonly { readonly Name: string; readonly Version: string }[];
}

const MIN_API = "1.41";

export async function engineHealth(engine: Engine): Promise<readonly Health[]> {
  const { api } = engine;
  const [info, { Components: components }] = await answered(
    async (signal) =>
      [(await askInfo(api, signal)) as EngineInfo, (await askVersion(api, signal)) as Components] as const,
  );
  const runc =
    components?.find(({ Name }) => Name === "runc" || Name === "crun")?.Version ?? "version unknown";
  return [versionHealth(engine, info), runtimeHealth(info, runc), ...readInfo(info)];
}

/** Parts of a version are numbers: 1.5 is older than 1.41. */
function atLeast(version: string, oldest: string): boolean {
  const [major = Number.NaN, minor = 0] = version.split(".").map(Number);
  const [needMajor = 0, needMinor = 0] = oldest.split(".").map(Number);
  return major > needMajor || (major === needMajor && minor >= needMinor);
}

function versionHealth(engine: Engine, info: EngineInfo): Health {
  const { version, endpoint } = engine;
  const detail = `${version.name} ${version.version}, API ${version.api}, at ${endpoint.host}`;
  const lack = isPodman(engine) ? lackOfPodman(engine, info) : undefined;
  if (lack !== undefined)
    return unhealthy("engine", `${detail}: ${lack}`, "use rootful Podman, or Docker: docs/engines.md");
  if (atLeast(version.api, MIN_API)) return healthy("engine", detail);
  return unhealthy("engine", `${detail}: older than API ${MIN_API}`, "update the engine to 20.10 or later");
}

function runtimeHealth(info: EngineInfo, runc: string): Health {
  const runtimes = Object.keys(info.Runtimes ?? {});
  const gvisor = runtimes.includes("runsc") ? "gVisor is there" : "no gVisor";
  return healthy("runtime", `${info.DefaultRuntime ?? "runc"} ${runc}; ${gvisor}`);
}

/** Pure. */
export function readInfo(info: EngineInfo): readonly Health[] {
  return [storageHealth(info), cgroupHealth(info), securityHealth(info)];
}

function storageHealth({ Driver = "unknown" }: EngineInfo): Health {
  if (Driver !== "vfs") return healthy("storage", Driver);
  return warningHealth(
    "storage",
    "vfs: every container copies its whole image",
    "put the engine's data on ext4, xfs or btrfs",
  );
}

function cgroupHealth({
  CgroupVersion = "1",
  CgroupDriver = "",
  MemoryLimit,
  PidsLimit,
}: EngineInfo): Health {
  const detail = `version ${CgroupVersion}, driver ${CgroupDriver}`;
  const gone = [...(MemoryLimit === false ? ["memory"] : []), ...(PidsLimit === false ? ["pids"] : [])];
  if (gone.length === 0) return healthy("cgroup", detail);
  const remedy = "run the engine as root, or boot with cgroup v2 and systemd";
  return unhealthy("cgroup", `${detail}: no limit on ${gone.join(" and ")} can be set`, remedy);
}

function securityHealth({ SecurityOptions }: EngineInfo): Health {
  const names = (SecurityOptions ?? []).map((option) => /name=([a-z]+)/.exec(option)?.[1] ?? option);
  if (!names.includes("seccomp"))
    return unhealthy("security", "the engine has no seccomp", "use an engine and a kernel with seccomp");
  const module = names.find((name) => name === "apparmor" || name === "selinux");
  return healthy("security", `${names.join(", ")}${module === undefined ? "; no AppArmor or SELinux" : ""}`);
}

/** Checks the sandbox image, ours or the user's own. */
export async function imageHealth(engine: Engine, root: string, own: string | null): Promise<Health> {
  if (own === null) {
    const { tag, present } = await wantedImage(engine, root);
    return present
      ? healthy("image", tag)
      : unhealthy("image", `${tag} is not built`, "harness sandbox build");
  }
  if (!(await imageExists(engine, own)))
    return unhealthy(
      "image",
      `${own} is not on this engine`,
      `docker pull ${own}   (or: harness config set image null)`,
    );
  const { missing, absent, node } = await checkImage(engine, root, own);
  if (missing.length > 0)
    return unhealthy("image", `${own} lacks ${missing.join(", ")}`, "harness config set image null");
  if (absent.length > 0) return warningHealth("image", `${own}, without ${absent.join(", ")}`);
  return healthy("image", node === "" ? own : `${own}, Node ${node}`);
}

const GiB = 2 ** 30;

/** Free space where files are kept; for a folder that does not exist yet, the space of its nearest parent. */
export async function diskHealth(id: string, folder: string): Promise<Health> {
  const { bavail, bsize } = (await statfs(folder).catch(() => undefined)) ?? { bavail: undefined, bsize: 0 };
  if (bavail === undefined) {
    const parent = path.dirname(folder);
    return parent === folder ? warningHealth(id, "free space is unknown") : diskHealth(id, parent);
  }
  const free = bavail * bsize;
  const detail = `${formatSize(free)} free in ${folder}`;
  if (free < GiB) return unhealthy(id, detail, "free some space: docker system df; docker image prune");
  return free < 5 * GiB
    ? warningHealth(id, detail, "docker system df; docker image prune")
    : healthy(id, detail);
}

const NOBODY = 65_534;
const LIMITS = { memory: 2 ** 28, cpus: null, pids: 64 };
const KEEP = { head: 1024, tail: 0 };

interface BoxCheck {
  /** The folder of the installed package. */
  readonly root: string;
  readonly uid: number;
  /** The user's own image; null for ours. */
  readonly image: string | null;
}

/** Whether a box of the image starts as planned and runs a command, which every tool call depends on. */
export async function boxHealth(engine: Engine, check: BoxCheck): Promise<Health> {
  const begin = performance.now();
  try {
    const [{ id, volumes }, host, seccomp, owner] = await Promise.all([
      boxImage(engine, check.root, check.image),
      hostFacts(engine),
      readSeccomp(check.root),
      thisProcess(),
    ]);
    await using stack = new AsyncDisposableStack();
    const { client, close } = await verifiedContainer(engine, {
      image: id,
      argv: [RUNNER],
      mode: "read-only",
      user: { uid: NOBODY, gid: NOBODY },
      readOnly: [],
      pinned: [],
      volumes,
      limits: LIMITS,
      host,
      seccomp,
      stdin: true,
      labels: ownerLabels(check.uid, owner),
    });
    stack.defer(close);
    const ready = performance.now() - begin;
    const command = { words: ["sh", "-c", "exit 0"], timeoutMs: 10_000, keep: KEEP };
    const { exit_code, reason, duration_ms } = await startCommand(client, command, { workspace: "/" }).ended;
    if (exit_code !== 0)
      return unhealthy("box", `a command in a box failed: ${reason}`, "harness sandbox shell");
    const detail = `verified in ${formatDuration(ready)}, a command in ${duration_ms.toFixed(1)} ms`;
    return healthy("box", detail);
  } catch (thrown) {
    const remedy = thrown instanceof HarnessError ? thrown.remedy : "./start.sh";
    return unhealthy(
      "box",
      reasonOf(thrown),
      remedy === "harness doctor" ? "the engine's log says why" : remedy,
    );
  }
}

/** What every image must have; the runner itself is mounted and needs nothing. */
const NEEDS: readonly string[] = ["sh"];
/** Programs that our image also promises, and that the agent's tools use. */
const CONTENTS: readonly string[] = [
  "bash",
  "git",
  "rg",
  "node",
  "python3",
  "make",
  "cc",
  "jq",
  "patch",
  "curl",
  "npm",
];
const CHECK_SECONDS = 30;

interface ImageCheck {
  /** Pieces without which no box works; empty for a usable image. */
  readonly missing: readonly string[];
  /** Pieces that some tools will miss. */
  readonly absent: readonly string[];
  /** The version of Node; empty if there is none that runs. */
  readonly node: string;
}

/** Checks an image from inside a locked container of it. */
export async function checkImage(engine: Engine, root: string, image: string): Promise<ImageCheck> {
  const wanted = [...NEEDS, ...CONTENTS];
  const script = `for t in ${wanted.join(" ")}; do command -v $t >/dev/null 2>&1 || echo "no $t"; done; node --version; echo ready`;
  const plan = {
    root,
    image,
    argv: ["sh", "-c", script],
    memory: 256 * 2 ** 20,
    pids: 64,
    labels: { "dev.harness.check": "1" },
  };
  try {
    return readCheck(await runOnce(engine, plan, CHECK_SECONDS * 1000));
  } catch (thrown) {
    if (!/executable file not found|no such file/i.test(String(thrown))) throw thrown;
    return { missing: ["sh"], absent: [], node: "" };
  }
}

export function readCheck({
  stdout: output,
  exit_code,
}: Pick<OnceResult, "stdout" | "exit_code">): ImageCheck {
  if (exit_code === null)
    return { missing: [`a sh that ends within ${CHECK_SECONDS} s`], absent: [], node: "" };
  const gone = new Set([...output.matchAll(/^no (\S+)$/gm)].map((match) => match[1] ?? ""));
  const node = /^v(\d+\.\d+\.\d+)$/m.exec(output)?.[1] ?? "";
  const works = /^ready$/m.test(output);
  const missing = works ? NEEDS.filter((name) => gone.has(name)) : ["a sh that works"];
  return { missing, absent: CONTENTS.filter((name) => gone.has(name)), node };
}

/** One command in one container. */
interface OneshotRequest {
  /** The installed package, whose seccomp profile is used. */
  readonly root: string;
  readonly image: string;
  readonly argv: readonly string[];
  /** The user that the command runs as; nobody when left out. */
  readonly user?: BoxPlan["user"];
  readonly memory: number;
  readonly pids: number;
  readonly labels: Readonly<Record<string, string>>;
}

export interface OnceResult {
  /** Null if the time ran out first. */
  readonly exit_code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const OUTPUT_LIMIT = 64 * 1024;

/** Runs one locked container to its end and removes it, whatever happens. For checks, not for tool calls. */
export async function runOnce(engine: Engine, once: OneshotRequest, timeoutMs: number): Promise<OnceResult> {
  const plan = await planOf(engine, once);
  const container = await createContainer(engine, plan).catch((thrown: unknown) => {
    throw new HarnessError(
      EXIT.sandbox,
      `cannot make a container of ${plan.image}: ${reasonOf(thrown)}`,
      "harness doctor",
      thrown,
    );
  });
  try {
    const stream = await container.attach({ stream: true, stdout: true, stderr: true });
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const texts = Promise.all([collect(stdout), collect(stderr)]);
    engine.api.modem.demuxStream(stream, stdout, stderr);
    stream.once("close", () => [stdout, stderr].forEach((side) => side.end()));
    await container.start();
    const exit = await withTimeout(container.wait() as Promise<{ StatusCode: number }>, timeoutMs);
    if (exit === undefined) await container.kill().catch(() => undefined);
    const [out, err] = await texts;
    return { exit_code: exit?.StatusCode ?? null, stdout: out, stderr: err };
  } catch (thrown) {
    throw new HarnessError(
      EXIT.sandbox,
      `${plan.image} did not run: ${reasonOf(thrown)}`,
      "harness doctor",
      thrown,
    );
  } finally {
    await container.remove({ force: true, v: true }).catch(() => undefined);
  }
}

async function planOf(engine: Engine, once: OneshotRequest): Promise<BoxPlan> {
  const { memory, pids } = once;
  const [host, seccomp] = await Promise.all([hostFacts(engine), readSeccomp(once.root)]);
  return {
    image: once.image,
    argv: once.argv,
    mode: "workspace-write",
    user: once.user ?? { uid: NOBODY, gid: NOBODY },
    readOnly: [],
    pinned: [],
    volumes: [],
    limits: { memory, cpus: null, pids },
    host,
    seccomp,
    stdin: false,
    labels: once.labels,
  };
}

async function collect(stream: PassThrough): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (size < OUTPUT_LIMIT) chunks.push(chunk.subarray(0, OUTPUT_LIMIT - size));
    size += chunk.length;
  }
  const text = Buffer.concat(chunks).toString("utf8");
  return size > OUTPUT_LIMIT ? `${text}\n[${size - OUTPUT_LIMIT} bytes more]` : text;
}

async function withTimeout<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), ms)));
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
