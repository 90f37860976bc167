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
}

export interface VerifiedContainer {
  readonly client: RunnerClient;
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
  { door, faults }: Extras = {},
): Promise<VerifiedContainer> {
  const container = await create(engine, plan);
  const stack = new AsyncDisposableStack();
  stack.defer(() => removeContainer(container));
  try {
    const client = await connect(container, plan, door);
    stack.defer(() => client.close());
    await verify(client, plan, { door, faults });
    return { client, close: () => stack.disposeAsync() };
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

/** Attached first, so that nothing the runner says is missed; started only when the engine's word is right. */
async function connect(container: Docker.Container, plan: BoxPlan, door?: Door): Promise<RunnerClient> {
  const options = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true };
  const attaching = container.attach(options) as Promise<unknown> as Promise<Duplex>;
  try {
    const inspected = (await container.inspect()) as unknown as Inspected;
    refuseUnlessPlanned("the engine", differences(plan, inspected));
    const client = new RunnerClient(await attaching, randomBytes(KEY_BYTES), door);
    await container.start();
    return client;
  } catch (thrown) {
    // A connection to a container that never ran would keep this process waiting.
    await attaching.then(
      (stream) => void stream.destroy(),
      () => undefined,
    );
    throw thrown instanceof HarnessError ? thrown : engineFailure("starting the box", thrown);
  }
}

async function verify(client: RunnerClient, plan: BoxPlan, { door, faults }: Extras): Promise<void> {
  const bound = mountsOf(plan)
    .filter(({ Type }) => Type === "bind")
    .map(({ Target }) => Target);
  const [report, host] = await Promise.all([
    askReport(client, bound, door !== undefined),
    Promise.all(bound.map(seen)),
  ]);
  const lines = [...reportDifferences(plan, report, host), ...(faults?.(report.mountinfo) ?? [])];
  refuseUnlessPlanned("the box itself", lines);
}

async function seen(path: string): Promise<SeenFile> {
  const { dev, ino } = await lstat(path, { bigint: true });
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
