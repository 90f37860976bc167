import { randomBytes } from "node:crypto";
import { lstat } from "node:fs/promises";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Engine } from "../engine.ts";
import { engineFailure, hasStatus } from "../failure.ts";
import { mountsOf } from "../mounts.ts";
import { RunnerClient } from "../runner/client.ts";
import type { HeldRunner } from "../runner/held.ts";
import { KEY_BYTES } from "../runner/frames.ts";
import { type BoxPlan, containerSpec } from "../spec.ts";
import { askReport } from "./ask-report.ts";
import { differences, type Inspected } from "./inspect.ts";
import { reportDifferences, type SeenFile } from "./report.ts";

/** Answers what commands ask of the harness. */
export type Door = (asked: Buffer) => Promise<Buffer>;

interface Extras {
  /** Lets commands ask the harness. */
  readonly door?: Door | undefined;
  /** What the container's own table of mounts must say besides the plan; a line for each deviation. */
  readonly faults?: ((mountinfo: string) => readonly string[]) | undefined;
  /** It was frozen, and is thawed instead of started. */
  readonly runner?: HeldRunner | undefined;
}

export interface VerifiedContainer {
  readonly id: string;
  readonly client: RunnerClient;
  /** Nothing of it runs any more, and nobody is connected to it. */
  readonly freeze: () => Promise<void>;
  /** Until it is gone from the engine. */
  readonly close: () => Promise<void>;
}

/**
 * create -> the engine's word against the plan -> start -> the container's own word against the plan. Any deviation
 * removes it and ends with exit 6; there is no way round.
 */
export async function verifiedContainer(
  engine: Engine,
  plan: BoxPlan,
  extras: Extras = {},
): Promise<VerifiedContainer> {
  return verified(await create(engine, plan), plan, extras);
}

/**
 * The same of a container that was frozen: the engine's word against the plan, then it is thawed and taken up, then its
 * own word. It is removed where any of that is not as it must be.
 */
export async function thawedContainer(
  engine: Engine,
  plan: BoxPlan,
  extras: Extras & { readonly id: string; readonly runner: HeldRunner },
): Promise<VerifiedContainer> {
  return verified(engine.api.getContainer(extras.id), plan, extras);
}

async function verified(
  container: Docker.Container,
  plan: BoxPlan,
  extras: Extras,
): Promise<VerifiedContainer> {
  const stack = new AsyncDisposableStack();
  stack.defer(() => removeContainer(container));
  try {
    const client = await connect(container, plan, extras);
    stack.defer(() => client.close());
    if (plan.lease === true) stack.use(keptAlive(client));
    await verify(client, plan, extras);
    return {
      id: container.id,
      client,
      freeze: async () => {
        await container.pause();
        client.close();
      },
      close: () => stack.disposeAsync(),
    };
  } catch (thrown) {
    await stack.disposeAsync();
    throw thrown;
  }
}

async function create(engine: Engine, plan: BoxPlan): Promise<Docker.Container> {
  try {
    return await engine.api.createContainer(containerSpec(plan));
  } catch (thrown) {
    throw engineFailure("making the box", thrown);
  }
}

/** Far more often than the runner's lease wants it. */
const ALIVE_MS = 2000;

function keptAlive(client: RunnerClient): Disposable {
  const timer = setInterval(() => client.alive(), ALIVE_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Attached first, so that nothing the runner says is missed; started only when the engine's word is right. */
async function connect(
  container: Docker.Container,
  plan: BoxPlan,
  { door: onAsk, runner: held }: Extras,
): Promise<RunnerClient> {
  const options = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true };
  const attach = (): Promise<Duplex> => container.attach(options) as Promise<unknown> as Promise<Duplex>;
  // Engines attach to nothing that is frozen; a runner that is held says nothing.
  const thawed = Promise.withResolvers<void>();
  // Where nobody waits for it, its failure is nobody's either.
  thawed.promise.catch(() => undefined);
  const attaching = held === undefined ? attach() : thawed.promise.then(attach);
  try {
    const inspected = (await container.inspect()) as unknown as Inspected;
    refuseUnlessPlanned("the engine", differences(plan, inspected));
    if (held !== undefined) await container.unpause();
    thawed.resolve();
    const client = new RunnerClient(await attaching, randomBytes(KEY_BYTES), { onAsk, held });
    if (held === undefined) await container.start();
    return client;
  } catch (thrown) {
    thawed.reject(thrown);
    // A connection to a container that never ran would keep this process waiting.
    await attaching.then(
      (stream) => void stream.destroy(),
      () => undefined,
    );
    throw thrown instanceof HarnessError ? thrown : engineFailure("starting the box", thrown);
  }
}

async function verify(client: RunnerClient, plan: BoxPlan, { door, faults }: Extras): Promise<void> {
  const mounts = mountsOf(plan).filter(({ Type }) => Type === "bind");
  const bound = mounts.map(({ Target }) => Target);
  const [report, host] = await Promise.all([
    askReport(client, bound, door !== undefined),
    Promise.all(mounts.map(seen)),
  ]);
  const lines = [...reportDifferences(plan, report, host), ...(faults?.(report.mountinfo) ?? [])];
  refuseUnlessPlanned("the box itself", lines);
}

/** What the host has for a mount, by the name that it has in the box. */
async function seen({ Source, Target: path }: ReturnType<typeof mountsOf>[number]): Promise<SeenFile> {
  const { dev, ino } = await lstat(Source, { bigint: true });
  return { path, dev: String(dev), ino: String(ino) };
}

function refuseUnlessPlanned(who: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  const more = lines.length > 6 ? `\n    and ${lines.length - 6} more` : "";
  const message = `the box is not as planned, says ${who}, so nothing is run in it:\n    ${lines.slice(0, 6).join("\n    ")}${more}`;
  throw new HarnessError(EXIT.sandbox, message, "harness doctor");
}

const REMOVAL_MS = 15_000;

/**
 * Until it is really gone. Where a removal has already begun the engine refuses another one, and its own waiting
 * for the end now and then misses it: so it is looked for.
 */
async function removeContainer(container: Docker.Container): Promise<void> {
  const deadline = performance.now() + REMOVAL_MS;
  try {
    await container.remove({ force: true, v: true });
  } catch (thrown) {
    // An engine that does not answer tells nothing more.
    if (!hasStatus(thrown)) return;
    while (performance.now() < deadline && (await isThere(container))) await sleep(LOOK_MS);
  }
}

const LOOK_MS = 20;

const isThere = (container: Docker.Container): Promise<boolean> =>
  container.inspect().then(
    () => true,
    () => false,
  );
