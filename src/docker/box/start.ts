import type { OwnedBox } from "../../core/ports.ts";
import { HarnessError, reasonOf } from "../../core/errors.ts";
import { engineFailure } from "../failure.ts";
import { holdLayer } from "../layers/hold.ts";
import type { Layer } from "../layers/record.ts";
import { lockWorkspace } from "../life/lock.ts";
import { type Reaped, reap } from "../life/reap.ts";
import { refuseTaken, type Standing, standingsOf } from "../parked/files.ts";
import { NOTHING_TRACKED, trackedIn } from "../protect/tracked.ts";
import { openBox } from "./box.ts";
import { doorFor, goneOn, madeAnew, type Making, parkingOf } from "./made.ts";
import { type BoxMaker, type BoxRequest, prepare } from "./prepare.ts";
import type { Workspace } from "./workspace.ts";

/** A verified box over a locked workspace; what earlier runs left behind is removed on the way. */
export async function startBox(maker: BoxMaker, request: BoxRequest, signal: AbortSignal): Promise<OwnedBox> {
  const waiting = await frozenFor(maker, request);
  const reaping = reap(maker.engine, maker).catch(engineFailed);
  const [prepared] = await Promise.all([prepare(maker, request), reaping]);
  tellLeftovers(await reaping, maker.onWarning);
  signal.throwIfAborted();
  const { workspace } = prepared;
  const locks = new AsyncDisposableStack();
  const things = new AsyncDisposableStack();
  const close = async (): Promise<void> => {
    await things.disposeAsync();
    await locks.disposeAsync();
  };
  try {
    if (request.beside !== true || request.mode !== "read-only")
      locks.use(await lockWorkspace(lockRequest(maker, request, workspace)));
    const { layer } = locks.use(await heldFor(maker, request, workspace));
    const door = doorFor(maker, request, prepared);
    const making = { maker, request, prepared, layer, door, signal, things };
    return await opened(making, waiting, { locks, close });
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

interface Ends {
  readonly locks: AsyncDisposableStack;
  readonly close: () => Promise<void>;
}

async function opened(making: Making, waiting: Standing | undefined, ends: Ends): Promise<OwnedBox> {
  const { maker, request, prepared, signal } = making;
  const { plan, workspace, protection } = prepared;
  // Before anything is run that could change what git knows.
  const tracked = request.watchChanges ? await trackedIn(workspace.path) : NOTHING_TRACKED;
  const made = (await goneOn(making, waiting)) ?? (await madeAnew(making));
  signal.throwIfAborted();
  const { path } = workspace;
  const guarded = request.mode === "read-only" ? { ...protection, readOnly: [path] } : protection;
  const box = await openBox({
    workspace: path,
    client: made.container.client,
    exposed: making.door !== undefined,
    close: ends.close,
    protection: guarded,
    stateDir: maker.stateDir,
    onWarning: maker.onWarning,
    place: made.place,
    tracked,
    ...(made.jobs === undefined ? {} : { kept: made.jobs }),
    ...(plan.lease === true ? { parking: parkingOf(making, made, ends.locks) } : {}),
    ...(request.budget === undefined ? {} : { budget: request.budget }),
  });
  return Object.assign(box, { image: plan.image });
}

const lockRequest = (
  { stateDir }: BoxMaker,
  { isolation, mode }: BoxRequest,
  { path, dev, ino }: Workspace,
): Parameters<typeof lockWorkspace>[0] => ({
  path,
  dev: BigInt(dev),
  ino: BigInt(ino),
  write: isolation === "bind" && mode !== "read-only",
  stateDir,
});

/** Before the reaping, which removes one that has waited too long. */
async function frozenFor(
  { stateDir }: BoxMaker,
  { keep, takesUp }: BoxRequest,
): Promise<Standing | undefined> {
  if (keep === null) return undefined;
  if (takesUp !== undefined) await refuseTaken(stateDir, keep);
  return (await standingsOf(stateDir, keep)).find(({ kind }) => kind === "parked");
}

async function heldFor(
  { stateDir, onWarning: warn }: BoxMaker,
  { keep: session, isolation }: BoxRequest,
  { path }: Workspace,
): Promise<AsyncDisposable & { readonly layer: Layer | null }> {
  if (session === null || isolation === "bind")
    return { layer: null, [Symbol.asyncDispose]: () => Promise.resolve() };
  return holdLayer(stateDir, { session, workspace: path, isolation }, { warn });
}

const engineFailed = (thrown: unknown): HarnessError =>
  thrown instanceof HarnessError ? thrown : engineFailure("looking for leftovers", thrown);

/** What a dead run left and could not be removed is said, not fatal. */
function tellLeftovers(reaped: Reaped | HarnessError, onWarning: (text: string) => void): void {
  if (reaped instanceof HarnessError) return onWarning(reaped.message);
  for (const { kind, id, reason } of reaped.failed)
    onWarning(`left over from an ended run: ${kind} ${id}: ${reasonOf(reason)}`);
}
