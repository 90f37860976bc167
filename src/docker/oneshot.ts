import { PassThrough } from "node:stream";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { type Engine, hostFacts, readSeccomp } from "./engine.ts";
import { createContainer } from "./box/container.ts";
import type { BoxPlan } from "./container-spec.ts";

/** One command in one container. */
export interface OneshotRequest {
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

export interface Outcome {
  /** Null if the time ran out first. */
  readonly exit_code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const OUTPUT_LIMIT = 64 * 1024;

/** Runs one locked container to its end and removes it, whatever happens. For checks, not for tool calls. */
export async function runOnce(engine: Engine, once: OneshotRequest, timeoutMs: number): Promise<Outcome> {
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

const NOBODY = 65_534;

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
