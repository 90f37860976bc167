import { LogKeeper } from "../../core/run-record.ts";
import { environmentVariables } from "../environments/environment-mounts.ts";
import { HarnessError, reasonOf } from "../../core/errors.ts";
import { BOX_HOME, type OwnedBox } from "../../core/ports.ts";
import { engineFailure } from "../engine.ts";
import type { Layer } from "../../boxes/workspace/layer-record.ts";
import { deadRecords, recordProtected, recoverPlanted } from "./recover-planted.ts";
import { reap, type Reaped } from "./reap.ts";
import { lockWorkspace } from "../../boxes/workspace/workspace-lock.ts";
import { refuseTaken, type ParkedState, standingsOf } from "./parked-boxes.ts";
import { CARGO_FILE, relayNetwork, type RelayedNetwork, tellCargo } from "../../boxes/network-relay.ts";
import { commitIdentity, NOTHING_TRACKED, trackedIn } from "../../boxes/workspace/git-repository.ts";
import { writeFileIn } from "../../boxes/runner-files.ts";
import { isGvisor } from "./container-check.ts";
import type { Workspace } from "../../boxes/workspace/box-workspace.ts";
import { openBox, type BoxParts } from "../../boxes/box.ts";
import { doorFor, resumeBox, type MadeBox, makeNewBox, type NewBoxOptions, parkingOf } from "./make-box.ts";
import { type BoxMaker, type BoxRequest, prepare, type PreparedBox } from "./prepare-box.ts";
import { holdLayer } from "../../boxes/workspace/session-layer.ts";

/** Starts a verified box over a locked workspace. Leftovers of earlier runs are removed first. */
export async function startBox(
  maker: BoxMaker,
  request: BoxRequest,
  signal: AbortSignal,
  again = false,
): Promise<OwnedBox> {
  using _ = maker.engine.patience.hurry(signal);
  const waiting = await frozenFor(maker, request);
  const reaping = reap(maker.engine, maker).catch(engineFailed);
  const recovered = await recoverPlanted(maker, request, async () => isAlone(await reaping));
  const [prepared] = await Promise.all([prepare(maker, request, signal), reaping]);
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
    // A run was killed since the last check: its planted files would be taken for the user's, and its box may still run.
    if (!again && recovered.length === 0 && (await isLeft(maker, request))) {
      await close();
      return await startBox(maker, request, signal, true);
    }
    const { layer } = locks.use(await heldLayerFor(maker, request, workspace));
    const log = new LogKeeper();
    log.move(recovered);
    const door = doorFor(maker, request, prepared, log);
    const making = { maker, request, prepared, layer, door, signal, things };
    return await openRecorded(making, waiting, { locks, things, log });
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

const isLeft = async ({ stateDir }: BoxMaker, { workspace, mode }: BoxRequest): Promise<boolean> =>
  mode !== "read-only" && (await deadRecords(stateDir, workspace)).length > 0;

interface BoxResources {
  readonly locks: AsyncDisposableStack;
  readonly things: AsyncDisposableStack;
  readonly log: LogKeeper;
}

async function openRecorded(
  making: NewBoxOptions,
  waiting: ParkedState | undefined,
  ends: BoxResources,
): Promise<OwnedBox> {
  const { maker, request, prepared, door } = making;
  const { workspace, protection, owner } = prepared;
  if (door === undefined)
    return openPrepared(making, waiting, { ...ends, searched: () => Promise.resolve() });
  const noting = recordProtected(maker.stateDir, { workspace: workspace.path, owner }, protection);
  noting.catch(() => undefined);
  // A frozen box continues as soon as it is thawed; any other runs nothing before it is told to.
  if (waiting !== undefined && request.keep !== null) await noting;
  try {
    return await openPrepared(making, waiting, { ...ends, searched: async () => (await noting)() });
  } catch (thrown) {
    if (waiting === undefined) await noting.then(async (forget) => forget()).catch(() => undefined);
    throw thrown;
  } finally {
    await noting;
  }
}

async function openPrepared(
  making: NewBoxOptions,
  waiting: ParkedState | undefined,
  { locks, things, log, searched }: BoxResources & Pick<BoxParts, "searched">,
): Promise<OwnedBox> {
  const { maker, request, prepared, signal, door } = making;
  const { plan, workspace, protection } = prepared;
  // Before any command can change what git tracks.
  const tracked = request.watchChanges ? await trackedIn(workspace.path) : NOTHING_TRACKED;
  const made = (await resumeBox(making, waiting)) ?? (await makeNewBox(making));
  // Closed first: no commit is made for a box that is being removed.
  if (door !== undefined) things.defer(door.shut);
  signal.throwIfAborted();
  const env = { ...(await identityIn(making, made)), ...discoveryVariables(made) };
  const { path } = workspace;
  const network = await withCargoSettings(making, made, await networkAccessOf(making, made));
  const guarded = request.mode === "read-only" ? { ...protection, readOnly: [path] } : protection;
  const box = await openBox({
    workspace: path,
    client: made.container.client,
    files: made.container.files,
    exposed: door !== undefined,
    log,
    env: { ...environmentVariables(request.environment?.env ?? {}, made.plan.volumes), ...env },
    searched,
    settle: door?.shut ?? (() => Promise.resolve()),
    remove: () => things.disposeAsync(),
    release: () => locks.disposeAsync(),
    protection: guarded,
    stateDir: maker.stateDir,
    onWarning: maker.onWarning,
    place: made.place,
    filled: writableFolders(request, maker, prepared),
    tracked,
    ...(made.jobs === undefined ? {} : { kept: made.jobs }),
    ...(network === undefined ? {} : { network }),
    ...(plan.lease === true ? { parking: parkingOf(making, made) } : {}),
    ...(request.budget === undefined ? {} : { budget: request.budget }),
  });
  return Object.assign(box, { image: plan.image });
}

/**
 * Where commands write besides the workspace: an environment's volumes lie in the engine's folder, and so does a root
 * that can be written; a run's layers over the volumes lie in the state folder.
 */
const writableFolders = (
  { environment, mode }: BoxRequest,
  { engine, stateDir }: BoxMaker,
  { place }: PreparedBox,
): readonly string[] =>
  engine.endpoint.host.startsWith("unix:")
    ? [
        ...(environment === undefined ? [] : [environment.use === "fill" ? place.engineRoot : stateDir]),
        ...(mode === "danger-full-access" ? [place.engineRoot] : []),
      ]
    : [];

/** Whether no container of a dead run can still be running. */
const isAlone = (reaped: Reaped | HarnessError): boolean =>
  !(reaped instanceof HarnessError) && !reaped.failed.some(({ kind }) => kind === "container");

/** In the box's home folder, where a repository's settings take precedence. */
const OWN_CONFIG = `${BOX_HOME}/.gitconfig`;

/** If git itself commits (in a layer, in a copy or with full access), it uses the identity of the commit door. */
async function identityIn(
  { maker, request, door }: NewBoxOptions,
  { container, jobs }: MadeBox,
): Promise<Readonly<Record<string, string>>> {
  if (door !== undefined || request.mode === "read-only") return {};
  const env = { GIT_CONFIG_GLOBAL: OWN_CONFIG };
  // A resumed box has its home already.
  if (jobs !== undefined) return env;
  const { name, email } = await commitIdentity(maker.home, []);
  const text = `[user]\n\tname = ${configText(name)}\n\temail = ${configText(email)}\n`;
  await writeFileIn(container.client, OWN_CONFIG, Buffer.from(text));
  return env;
}

type NetworkAccess = Pick<NonNullable<MadeBox["network"]>, "connections" | "grant" | "env"> &
  Partial<RelayedNetwork>;

/** The box's way out: mounted, or relayed if it cannot be mounted. */
async function networkAccessOf(
  { maker: { onWarning }, things }: NewBoxOptions,
  { container, plan, network }: MadeBox,
): Promise<NetworkAccess | undefined> {
  if (network === undefined || plan.network?.relayed !== true) return network;
  const relayed = await relayNetwork({ client: container.client, network, onWarning });
  things.defer(() => Promise.resolve(relayed.leave()));
  return relayed;
}

/** The box's way out, which also tells cargo its sources; in an environment they go where the fetched packages lie. */
async function withCargoSettings(
  { maker, request }: NewBoxOptions,
  { container, jobs }: MadeBox,
  network: NetworkAccess | undefined,
): Promise<NetworkAccess | undefined> {
  if (network === undefined) return undefined;
  const home = request.environment?.env["CARGO_HOME"] ?? `${BOX_HOME}/.cargo`;
  const tell = async ({ [CARGO_FILE]: text }: Readonly<Record<string, string>> = {}): Promise<void> => {
    if (text !== undefined) await tellCargo(container.client, home, Buffer.from(text), maker.onWarning);
  };
  // A resumed box has its home already.
  if (jobs === undefined) await tell(request.network?.files);
  return {
    ...network,
    grant: async (grants, variables, files) => {
      await tell(files);
      return network.grant(grants, variables, files);
    },
  };
}

/** Git does not look beyond a file system: an overlay is a file system of its own, and for gVisor each mount is. */
function discoveryVariables({ plan }: MadeBox): Readonly<Record<string, string>> {
  const apart = plan.workspace?.volume !== undefined || isGvisor(plan);
  return apart && (plan.above ?? []).length > 0 ? { GIT_DISCOVERY_ACROSS_FILESYSTEM: "1" } : {};
}

const configText = (text: string): string =>
  `"${text.replaceAll(/["\\]/g, String.raw`\$&`).replaceAll("\n", String.raw`\n`)}"`;

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

/** Runs before the reaping, which removes boxes that have waited too long. */
async function frozenFor(
  { stateDir }: BoxMaker,
  { keep, takesUp }: BoxRequest,
): Promise<ParkedState | undefined> {
  if (keep === null) return undefined;
  if (takesUp !== undefined) await refuseTaken(stateDir, keep);
  return (await standingsOf(stateDir, keep)).find(({ kind }) => kind === "parked");
}

async function heldLayerFor(
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

/** Leftovers of dead runs that could not be removed are a warning, not a failure. */
function tellLeftovers(reaped: Reaped | HarnessError, onWarning: (text: string) => void): void {
  if (reaped instanceof HarnessError) return onWarning(reaped.message);
  for (const { kind, id, reason } of reaped.failed)
    onWarning(`left over from an ended run: ${kind} ${id}: ${reasonOf(reason)}`);
}
