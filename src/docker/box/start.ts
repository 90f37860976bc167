import type { OwnedBox } from "../../core/ports.ts";
import { HarnessError, reasonOf } from "../../core/errors.ts";
import { engineFailure } from "../failure.ts";
import type { Isolation, Place } from "../isolation/place.ts";
import { placeOf } from "../isolation/place-of.ts";
import { unseen } from "../isolation/unseen.ts";
import { holdLayer } from "../layers/hold.ts";
import type { Layer } from "../layers/record.ts";
import { lockWorkspace } from "../life/lock.ts";
import { type Reaped, reap } from "../life/reap.ts";
import type { Protection } from "../protect/scan.ts";
import { snapshotIn } from "../runner/files.ts";
import { openBox } from "./box.ts";
import { commitDoor } from "./commit-door.ts";
import { verifiedContainer } from "./container.ts";
import type { BoxPlan } from "../spec.ts";
import { type BoxMaker, type BoxRequest, prepare } from "./prepare.ts";
import type { Workspace } from "./workspace.ts";

/** A verified box over a locked workspace; what earlier runs left behind is removed on the way. */
export async function startBox(maker: BoxMaker, request: BoxRequest, signal: AbortSignal): Promise<OwnedBox> {
  const reaping = reap(maker.engine, maker).catch(engineFailed);
  const [prepared] = await Promise.all([prepare(maker, request), reaping]);
  tellLeftovers(await reaping, maker.onWarning);
  signal.throwIfAborted();
  const { plan, workspace, protection } = prepared;
  const { isolation } = request;
  const lock = await lockWorkspace({
    path: workspace.path,
    dev: BigInt(workspace.dev),
    ino: BigInt(workspace.ino),
    write: isolation === "bind" && request.mode !== "read-only",
    stateDir: maker.stateDir,
  });
  const stack = new AsyncDisposableStack();
  stack.use(lock);
  try {
    const { layer } = stack.use(await heldFor(maker, request, workspace));
    const place = await placeOf(isolation, { ...maker, ...prepared.place, layer });
    stack.defer(() => removePlace(place, maker.onWarning));
    signal.throwIfAborted();
    const exposed = isolation === "bind" && request.mode === "workspace-write";
    const door = exposed ? commitDoor({ engine: maker.engine, plan, home: maker.home }) : undefined;
    const { client, close: end } = await verifiedContainer(maker.engine, overVolume(plan, workspace, place), {
      ...(door === undefined ? {} : { door }),
      faults: place.faults,
    }).catch(explained(isolation, workspace));
    stack.defer(end);
    if (request.watchChanges && place.snapshot)
      await snapshotIn(client, workspace.path, belowWorkspace(workspace.path, protection));
    signal.throwIfAborted();
    const { path } = workspace;
    const guarded = request.mode === "read-only" ? { ...protection, readOnly: [path] } : protection;
    const close = (): Promise<void> => stack.disposeAsync();
    const box = await openBox({
      workspace: path,
      client,
      exposed,
      close,
      protection: guarded,
      stateDir: maker.stateDir,
      onWarning: maker.onWarning,
      place,
      ...(request.budget === undefined ? {} : { budget: request.budget }),
    });
    return Object.assign(box, { image: plan.image });
  } catch (thrown) {
    await stack.disposeAsync();
    throw thrown;
  }
}

async function heldFor(
  { stateDir }: BoxMaker,
  { keep: session, isolation }: BoxRequest,
  { path }: Workspace,
): Promise<AsyncDisposable & { readonly layer: Layer | null }> {
  if (session === null || isolation === "bind")
    return { layer: null, [Symbol.asyncDispose]: () => Promise.resolve() };
  return holdLayer(stateDir, { session, workspace: path, isolation });
}

const overVolume = (plan: BoxPlan, { path }: Workspace, { volume }: Place): BoxPlan =>
  volume === undefined ? plan : { ...plan, workspace: { path, volume } };

const explained =
  (isolation: Isolation, { path }: Workspace) =>
  (thrown: unknown): never => {
    throw unseen(isolation, path, thrown) ?? thrown;
  };

/** What a box ran has ended by then, and is not made worse by what could not be cleared away. */
async function removePlace(place: Place, onWarning: (text: string) => void): Promise<void> {
  await place.remove().catch((thrown: unknown) => {
    onWarning(`left over from this run, for the next one to remove: ${reasonOf(thrown)}`);
  });
}

const belowWorkspace = (root: string, { readOnly }: Protection): readonly string[] =>
  readOnly.map((file) => file.slice(root.length + 1));

const engineFailed = (thrown: unknown): HarnessError =>
  thrown instanceof HarnessError ? thrown : engineFailure("looking for leftovers", thrown);

/** What a dead run left and could not be removed is said, not fatal. */
function tellLeftovers(reaped: Reaped | HarnessError, onWarning: (text: string) => void): void {
  if (reaped instanceof HarnessError) return onWarning(reaped.message);
  for (const { kind, id, reason } of reaped.failed)
    onWarning(`left over from an ended run: ${kind} ${id}: ${reasonOf(reason)}`);
}
