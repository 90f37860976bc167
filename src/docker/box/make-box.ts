import type { LogKeeper } from "../../core/run-record.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { ParkedHandle } from "../../core/ports.ts";
import { boxFilter, boxOf, type Owner, unparkable } from "../../boxes/box-record.ts";
import type { BoxPlan } from "../container-spec.ts";
import { overlayIn, placeOf, type PlaceRequest, workspaceUnseen } from "./workspace-place.ts";
import type { Isolation, Layer, WorkspaceLocation } from "../../boxes/workspace/layer-record.ts";
import {
  claimParked,
  discardParked,
  forget,
  isParkedFor,
  type ParkedBox,
  parkedText,
  readParked,
  refuseTaken,
  releaseTaken,
  removeLeased,
  type SessionRef,
  type ParkedState,
  writeParked,
} from "./parked-boxes.ts";
import type { Protection } from "../../boxes/workspace/protection.ts";
import { mountEnvironment, removeStanding, standingVolumes } from "../environments/environment-mounts.ts";
import { type BoxNetwork, openNetwork, reopenNetwork } from "../egress/box-network.ts";
import { snapshotIn } from "../../boxes/runner-files.ts";
import type { Workspace } from "../../boxes/workspace/box-workspace.ts";
import type { BoxParts } from "../../boxes/box.ts";
import { CommitDoor } from "./commit-door.ts";
import {
  type Door,
  thawedContainer,
  type VerifiedContainer,
  verifiedContainer,
  withoutLists,
} from "./container.ts";
import type { BoxMaker, BoxRequest, PreparedBox } from "./prepare-box.ts";
import type { KeptJob } from "../../boxes/box-command.ts";
import type { Engine } from "../engine.ts";

export interface NewBoxOptions {
  readonly maker: BoxMaker;
  readonly request: BoxRequest;
  readonly prepared: PreparedBox;
  readonly layer: Layer | null;
  readonly door: CommitDoor | undefined;
  readonly signal: AbortSignal;
  /** Collects everything that must be removed with the box. */
  readonly things: AsyncDisposableStack;
}

/** A verified container over its workspace, with what runs in it. */
export interface MadeBox {
  readonly container: VerifiedContainer;
  readonly plan: BoxPlan;
  readonly place: WorkspaceLocation;
  /** What ran in a box that was resumed; left out for a new box. */
  readonly jobs?: readonly KeptJob[];
  readonly network?: BoxNetwork | undefined;
}

/** Commands can request commits if `.git` is the user's and mounted read-only. */
export function doorFor(
  { engine, home, stateDir }: BoxMaker,
  { isolation, mode }: BoxRequest,
  { plan }: PreparedBox,
  log: LogKeeper,
): CommitDoor | undefined {
  if (isolation !== "bind" || mode !== "workspace-write") return undefined;
  // The container for one commit is never frozen, and nothing that it does needs a network.
  const { lease: _, network: __, ...own } = plan;
  return new CommitDoor({ engine, plan: { ...own, labels: unparkable(plan.labels) }, home, stateDir, log });
}

/** Makes the place, the mounts and the network of a box, then its container, which is verified. */
export async function makeNewBox(making: NewBoxOptions): Promise<MadeBox> {
  const { maker, request, prepared, layer, door, signal, things } = making;
  const { plan, workspace, protection } = prepared;
  const { isolation } = request;
  const place = await placeOf(isolation, volumeRequest({ maker, prepared, layer }));
  things.defer(() => removeQuietly(place.remove, maker.onWarning));
  signal.throwIfAborted();
  const mounted = await environmentOf(making);
  if (mounted !== undefined) things.defer(() => removeQuietly(mounted.remove, maker.onWarning));
  const planned = withEnvironment(overVolume(plan, workspace, place), mounted?.volumes ?? []);
  const opening = await networkOf(request, prepared);
  // Removed after the container, whose processes keep their way out until they are gone.
  if (opening !== undefined) things.defer(() => removeOpened(opening, maker.onWarning));
  const container = await verifiedContainer(maker.engine, planned, {
    door: door?.ask,
    faults: place.faults,
    onWarning: maker.onWarning,
  }).catch(explainFailure(isolation, workspace));
  // The container's mounts can only be removed after it; and the caller of a single command may list containers next.
  const isOfRun = request.keep !== null;
  things.defer(isOfRun && isolation === "bind" && mounted === undefined ? container.end : container.close);
  if (request.watchChanges && place.snapshot)
    await snapshotIn(container.client, workspace.path, belowWorkspace(workspace.path, request, protection));
  return { container, plan: planned, place, network: await opening?.opened };
}

type OpeningNetwork = Awaited<ReturnType<typeof openNetwork>>;

const networkOf = async (
  { network }: BoxRequest,
  { plan, owner }: PreparedBox,
): Promise<OpeningNetwork | undefined> =>
  network === undefined || plan.network === undefined
    ? undefined
    : openNetwork(network, { folder: plan.network.folder, owner });

/** A network that could not be opened has left nothing behind. */
async function removeOpened({ opened }: OpeningNetwork, onWarning: (text: string) => void): Promise<void> {
  const network = await opened.catch(() => undefined);
  if (network !== undefined) await removeQuietly(network.remove, onWarning);
}

/** Resumes the box that is frozen for the session if that is requested; otherwise discards that box. */
export async function resumeBox(
  making: NewBoxOptions,
  waiting: ParkedState | undefined,
): Promise<MadeBox | undefined> {
  const { maker, request, prepared, layer, door, things } = making;
  const { engine, uid, stateDir } = maker;
  const { keep: session, takesUp: until, environment } = request;
  if (session === null || (waiting === undefined && until === undefined)) return undefined;
  const of = { uid, stateDir, session };
  if (until === undefined) {
    await discardParked(engine, of);
    return undefined;
  }
  if (waiting === undefined) return warnOfNewBox(maker, whyNoneKept(until));
  const { plan, owner } = prepared;
  const place = volumeRequest({ maker, prepared, layer });
  const taking = {
    ...of,
    engine,
    owner,
    isolation: request.isolation,
    plan,
    place,
    door: door?.ask,
    network: reopening(making),
    ...(environment === undefined
      ? {}
      : { environment: (name: string) => standingVolumes(engine, environment, name) }),
    onWarning: maker.onWarning,
  };
  const taken = await takeUp(waiting, taking);
  if (typeof taken === "string") return warnOfNewBox(maker, taken);
  const { network } = taken;
  things.defer(taken.letGo);
  if (environment !== undefined)
    things.defer(() =>
      removeQuietly(() => removeStanding({ engine, stateDir, plan: taken.plan }), maker.onWarning),
    );
  things.defer(() => removeQuietly(taken.place.remove, maker.onWarning));
  if (network !== undefined) things.defer(() => removeQuietly(network.remove, maker.onWarning));
  things.defer(taken.container.close);
  return taken;
}

function reopening({ request, prepared }: NewBoxOptions): ResumeRequest["network"] {
  const { network, mode } = request;
  if (network === undefined || mode === "danger-full-access") return undefined;
  // Nothing of the network was mounted, so nobody in the box can tell one network from the next.
  if (prepared.plan.network?.relayed === true)
    return async () => (await networkOf(request, prepared))?.opened;
  return (folder) => reopenNetwork(folder, network);
}

function warnOfNewBox({ onWarning }: BoxMaker, why: string): undefined {
  onWarning(
    `the box in which this waited cannot be resumed: ${why}. A new one continues, without its background jobs and /tmp.`,
  );
  return undefined;
}

const whyNoneKept = (until: number): string =>
  Date.now() < until ? NOT_THERE : `it was kept only until ${new Date(until).toISOString()}`;

/** Records what resuming the box needs. Once frozen, the box is left as it is. */
export function parkingOf(
  { maker, request, prepared, things }: NewBoxOptions,
  { container, plan, network }: MadeBox,
): NonNullable<BoxParts["parking"]> {
  const { keep: session, parks } = request;
  return async (runner, jobs): Promise<ParkedHandle> => {
    if (session === null || parks === undefined) throw new TypeError("a box that cannot be parked");
    const { id, files } = container;
    const { labels, workspace, account } = plan;
    const [volume, named] = [workspace?.volume ?? null, account !== undefined];
    const folder = network?.folder ?? null;
    const text = parkedText({ container: id, labels, volume, named, network: folder, files, runner, jobs });
    const expires = Date.now() + parks;
    const { owner } = prepared;
    const file = await writeParked(maker.stateDir, { session, expires, owner }, text).catch(parkingFailed);
    things.defer(() => forget({ session, file, kind: "parked", expires }));
    const freeze = async (): Promise<void> => {
      await container.freeze();
      await (plan.network?.relayed === true ? network?.remove() : network?.leave());
      await releaseTaken(maker.stateDir, session, owner);
    };
    return { until: expires, freeze };
  };
}

const parkingFailed = (thrown: unknown): never => {
  const message = `what is needed to resume the box cannot be stored: ${reasonOf(thrown)}`;
  throw new HarnessError(EXIT.sandbox, message, "", thrown);
};

const volumeRequest = ({
  maker,
  prepared,
  layer,
}: Pick<NewBoxOptions, "maker" | "prepared" | "layer">): PlaceRequest => ({
  ...maker,
  ...prepared.place,
  layer,
});

const overVolume = (plan: BoxPlan, { path }: Workspace, { volume }: WorkspaceLocation): BoxPlan =>
  volume === undefined ? plan : { ...plan, workspace: { path, volume } };

const explainFailure =
  (isolation: Isolation, { path }: Workspace) =>
  (thrown: unknown): never => {
    throw workspaceUnseen(isolation, path, thrown) ?? thrown;
  };

/** The box's commands have ended by then; a failed clean-up does not change their result. */
async function removeQuietly(remove: () => Promise<void>, onWarning: (text: string) => void): Promise<void> {
  await remove().catch((thrown: unknown) => {
    onWarning(`left over from this run, for the next one to remove: ${reasonOf(thrown)}`);
  });
}

/** Folders that are not searched for changes: those that cannot change, and those that an environment mounts. */
const belowWorkspace = (
  root: string,
  { environment }: BoxRequest,
  { readOnly }: Protection,
): readonly string[] =>
  [...readOnly, ...(environment?.volumes ?? []).map(({ target }) => target)]
    .filter((file) => file.startsWith(`${root}/`))
    .map((file) => file.slice(root.length + 1));

const withEnvironment = (plan: BoxPlan, volumes: BoxPlan["volumes"]): BoxPlan => ({
  ...plan,
  volumes: [...plan.volumes, ...volumes],
});

async function environmentOf({
  maker,
  request,
  prepared,
}: NewBoxOptions): Promise<Awaited<ReturnType<typeof mountEnvironment>> | undefined> {
  const { environment, isolation, mode } = request;
  if (environment === undefined) return undefined;
  const { place, workspace, owner } = prepared;
  const alone = isolation === "bind" && mode !== "read-only";
  return mountEnvironment(environment, { ...maker, ...place, workspace, owner, alone });
}

export interface ResumeRequest extends SessionRef {
  readonly engine: Engine;
  readonly owner: Owner;
  readonly isolation: Isolation;
  /** The plan of a box that would be made now. */
  readonly plan: BoxPlan;
  readonly place: PlaceRequest;
  /** What an environment mounts into the box of this session, besides the plan. */
  readonly environment?: ((session: string) => BoxPlan["volumes"]) | undefined;
  readonly door: Door | undefined;
  /** Reopens the network of a box in its folder; left out if nothing is granted now. */
  readonly network: ((folder: string) => Promise<BoxNetwork | undefined>) | undefined;
  readonly onWarning: (text: string) => void;
}

interface ResumedBox extends MadeBox {
  /** Records that nobody has the box any more. */
  readonly letGo: () => Promise<void>;
}

const NOT_THERE = "it was removed";

/** The frozen box as it was, or why it cannot be resumed; then nothing is left of it. */
export async function takeUp(standing: ParkedState, taking: ResumeRequest): Promise<ResumedBox | string> {
  const { stateDir, owner, engine } = taking;
  if (standing.kind !== "parked") return NOT_THERE;
  // Before anything is removed: a process that has the box may have thawed it by now.
  const claimed = await claimParked(stateDir, standing, owner);
  const expired =
    standing.expires <= Date.now()
      ? `it was kept only until ${new Date(standing.expires).toISOString()}`
      : undefined;
  if (claimed === undefined) {
    await refuseTaken(stateDir, taking.session);
    // A process that looked for leftovers has found the box expired too.
    if (expired !== undefined) await removeLeased(engine, taking);
    return expired ?? NOT_THERE;
  }
  const { letGo } = claimed;
  try {
    const done = expired ?? (await thawBox(readParked(claimed.text), taking));
    if (typeof done !== "string") return { ...done, letGo };
    await removeLeased(engine, taking);
    await letGo();
    return done;
  } catch (thrown) {
    // The key is used up, so nobody can resume the box.
    await removeLeased(engine, taking).catch(() => undefined);
    await letGo();
    throw thrown;
  }
}

async function thawBox(parked: ParkedBox | undefined, taking: ResumeRequest): Promise<MadeBox | string> {
  if (parked === undefined) return "its record is damaged";
  if (!(await isThere(parked, taking))) return "the engine no longer has it";
  const { engine, door, onWarning } = taking;
  const { container: id, runner, files, jobs } = parked;
  // The box runs on as soon as it is thawed, so its way out is opened before.
  const network = await reopenedNetwork(parked, taking);
  if (typeof network === "string") return network;
  try {
    const place = await placeIn(parked, taking);
    if (place === undefined) {
      await network?.remove();
      return "it worked on another copy";
    }
    const plan = await planOf(parked, taking);
    const extras = { id, frozen: { runner, files }, faults: place.faults, door, onWarning };
    return { container: await thawedContainer(engine, plan, extras), plan, place, jobs, network };
  } catch (thrown) {
    await network?.remove();
    if (!(thrown instanceof HarnessError)) throw thrown;
    return thrown.message;
  }
}

async function reopenedNetwork(
  { network: folder }: ParkedBox,
  { network: reopen }: ResumeRequest,
): Promise<BoxNetwork | undefined | string> {
  if (folder === null) return reopen === undefined ? undefined : "it has no network, but one is granted now";
  if (reopen === undefined) return "it has a network, but none is granted now";
  return (await reopen(folder)) ?? "its connection to the network is gone";
}

/** Checks the labels too, so that a wrong record never makes us touch another container. */
async function isThere(
  { container }: ParkedBox,
  { engine, uid, stateDir, session }: ResumeRequest,
): Promise<boolean> {
  const boxes = await engine.api.listContainers({ all: true, filters: boxFilter(uid) });
  const found = boxes.find(({ Id }) => Id === container);
  return found?.State === "paused" && isParkedFor({ stateDir, session })(found);
}

/** The plan that would be made now, except for what names the old box. */
async function planOf(
  { labels, volume, named, network }: ParkedBox,
  { engine, plan: fresh, environment }: ResumeRequest,
): Promise<BoxPlan> {
  const plan = named || fresh.account === undefined ? fresh : await withoutLists(engine, fresh);
  const volumes = [...plan.volumes, ...(environment?.(boxOf(labels)?.session ?? "") ?? [])];
  const networkPart =
    network === null || fresh.network?.relayed === true ? {} : { network: { folder: network } };
  return { ...plan, ...networkPart, volumes, labels, ...volumeOf(plan, volume) };
}

const volumeOf = (plan: BoxPlan, volume: string | null): Pick<BoxPlan, "workspace"> =>
  plan.workspace === undefined || volume === null ? {} : { workspace: { path: plan.workspace.path, volume } };

async function placeIn(
  { volume, labels }: ParkedBox,
  { isolation, place }: ResumeRequest,
): Promise<WorkspaceLocation | undefined> {
  const { layer } = place;
  if (isolation === "bind") return placeOf(isolation, place);
  if (layer === null || volume === null) return undefined;
  if (isolation === "overlay") return overlayIn(layer.folder, { ...place, volume, labels });
  return layer.volume === volume ? placeOf(isolation, place) : undefined;
}
