import { randomBytes } from "node:crypto";
import { lstat } from "node:fs/promises";
import type { Duplex } from "node:stream";
import type Docker from "dockerode";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { OwnedBox } from "../../core/ports.ts";
import type { Engine } from "../engine.ts";
import { engineFailure, isMissing } from "../failure.ts";
import { lockWorkspace } from "../life/lock.ts";
import { type Reaped, reap } from "../life/reap.ts";
import { mountsOf } from "../mounts.ts";
import type { Protection } from "../protect/scan.ts";
import { RunnerClient } from "../runner/client.ts";
import { KEY_BYTES } from "../runner/frames.ts";
import { snapshotIn } from "../runner/files.ts";
import { type BoxPlan, containerSpec } from "../spec.ts";
import { openBox } from "./box.ts";
import { differences, type Inspected } from "./inspect.ts";
import { askReport } from "./ask-report.ts";
import { type BoxMaker, type BoxRequest, prepare } from "./prepare.ts";
import { reportDifferences, type SeenFile } from "./report.ts";

/**
 * create -> the engine's word against the plan -> start -> the box's own word against the plan -> use. Any deviation
 * removes the container and ends with exit 6; there is no way round it.
 */
export async function startBox(maker: BoxMaker, request: BoxRequest, signal: AbortSignal): Promise<OwnedBox> {
  const reaping = reap(maker.engine, maker).catch(engineFailed);
  const [prepared] = await Promise.all([prepare(maker, request), reaping]);
  tellLeftovers(await reaping, maker.onWarning);
  signal.throwIfAborted();
  const { plan, workspace, protection } = prepared;
  const lock = await lockWorkspace({
    path: workspace.path,
    dev: BigInt(workspace.dev),
    ino: BigInt(workspace.ino),
    write: request.mode !== "read-only",
    stateDir: maker.stateDir,
  });
  const stack = new AsyncDisposableStack();
  stack.use(lock);
  try {
    const container = await create(maker.engine, plan);
    stack.defer(() => removeContainer(container));
    const client = await connect(container, plan);
    stack.defer(() => client.close());
    await verify(client, plan);
    if (request.watchChanges)
      await snapshotIn(client, workspace.path, belowWorkspace(workspace.path, protection));
    signal.throwIfAborted();
    const { path } = workspace;
    const exposed = request.mode === "workspace-write";
    const guarded = request.mode === "read-only" ? { ...protection, readOnly: [path] } : protection;
    const close = (): Promise<void> => stack.disposeAsync();
    return await openBox({
      workspace: path,
      client,
      exposed,
      close,
      protection: guarded,
      stateDir: maker.stateDir,
    });
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
async function connect(container: Docker.Container, plan: BoxPlan): Promise<RunnerClient> {
  const options = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true };
  const attaching = container.attach(options) as Promise<unknown> as Promise<Duplex>;
  try {
    const [stream, inspected] = await Promise.all([
      attaching,
      container.inspect() as Promise<unknown> as Promise<Inspected>,
    ]);
    refuseUnlessPlanned("the engine", differences(plan, inspected));
    const client = new RunnerClient(stream, randomBytes(KEY_BYTES));
    await container.start();
    return client;
  } catch (thrown) {
    // The engine never ends the stream of a container that was not started.
    void attaching.then((stream) => stream.destroy()).catch(() => undefined);
    throw thrown instanceof HarnessError ? thrown : engineFailure("starting the box", thrown);
  }
}

async function verify(client: RunnerClient, plan: BoxPlan): Promise<void> {
  const bound = mountsOf(plan)
    .filter(({ Type }) => Type === "bind")
    .map(({ Target }) => Target);
  const [report, host] = await Promise.all([askReport(client, bound), Promise.all(bound.map(seen))]);
  refuseUnlessPlanned("the box itself", reportDifferences(plan, report, host));
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

const belowWorkspace = (root: string, { readOnly }: Protection): readonly string[] =>
  readOnly.map((file) => file.slice(root.length + 1));

const REMOVAL_MS = 15_000;

/** Until it is really gone: the engine answers at once where a removal has already begun. */
async function removeContainer(container: Docker.Container): Promise<void> {
  const abortSignal = AbortSignal.timeout(REMOVAL_MS);
  const gone = container.wait({ condition: "removed", abortSignal }).catch(() => undefined);
  try {
    await container.remove({ force: true, v: true });
  } catch (thrown) {
    if (isMissing(thrown)) return;
    await gone;
  }
}

const engineFailed = (thrown: unknown): HarnessError =>
  thrown instanceof HarnessError ? thrown : engineFailure("looking for leftovers", thrown);

/** What a dead run left and could not be removed is said, not fatal. */
function tellLeftovers(reaped: Reaped | HarnessError, onWarning: (text: string) => void): void {
  if (reaped instanceof HarnessError) return onWarning(reaped.message);
  for (const { kind, id, reason } of reaped.failed)
    onWarning(`left over from an ended run: ${kind} ${id}: ${reasonOf(reason)}`);
}
