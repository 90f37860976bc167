import { HarnessError } from "../../core/errors.ts";
import { boxFilter, boxOf, type Owner } from "../../boxes/box-labels.ts";
import { type Door, thawedContainer, type VerifiedContainer, withoutLists } from "../box/container.ts";
import type { BoxPlan } from "../container-spec.ts";
import type { Engine } from "../engine.ts";
import type { BoxNetwork } from "../network/box-network.ts";
import { placeOf } from "./open-place.ts";
import { overlayIn } from "./overlay-place.ts";
import { claimParked, type SessionRef, refuseTaken, removeLeased, type Standing } from "./parked-files.ts";
import { type ParkedBox, readParked } from "./parked-record.ts";
import type { VolumeRequest } from "./workspace-place.ts";
import type { Isolation, Place } from "../../boxes/layers/place.ts";

export interface ResumeRequest extends SessionRef {
  readonly engine: Engine;
  readonly owner: Owner;
  readonly isolation: Isolation;
  /** The plan of a box that would be made now. */
  readonly plan: BoxPlan;
  readonly place: VolumeRequest;
  /** What an environment mounts into the box of this session, besides the plan. */
  readonly environment?: ((session: string) => BoxPlan["volumes"]) | undefined;
  readonly door: Door | undefined;
  /** Reopens the network of a box in its folder; left out if nothing is granted now. */
  readonly network: ((folder: string) => Promise<BoxNetwork | undefined>) | undefined;
  readonly onWarning: (text: string) => void;
}

export interface ResumedBox {
  readonly container: VerifiedContainer;
  readonly plan: BoxPlan;
  readonly place: Place;
  readonly jobs: ParkedBox["jobs"];
  readonly network: BoxNetwork | undefined;
  /** Records that nobody has the box any more. */
  readonly letGo: () => Promise<void>;
}

export const NOT_THERE = "it was removed";

/** The frozen box as it was, or why it cannot be resumed; then nothing is left of it. */
export async function takeUp(standing: Standing, taking: ResumeRequest): Promise<ResumedBox | string> {
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

async function thawBox(
  parked: ParkedBox | undefined,
  taking: ResumeRequest,
): Promise<Omit<ResumedBox, "letGo"> | string> {
  if (parked === undefined) return "its record is damaged";
  if (!(await isThere(parked, taking))) return "the engine no longer has it";
  const { engine, door, onWarning } = taking;
  const { container: id, runner, files, jobs } = parked;
  // The box runs on as soon as it is thawed, so its way out is opened before.
  const network = await networkOf(parked, taking);
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

async function networkOf(
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
  const parks = boxOf(found?.Labels)?.parks;
  return found?.State === "paused" && parks?.session === session && parks.stateDir === stateDir;
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
): Promise<Place | undefined> {
  const { layer } = place;
  if (isolation === "bind") return placeOf(isolation, place);
  if (layer === null || volume === null) return undefined;
  if (isolation === "overlay") return overlayIn(layer.folder, { ...place, volume, labels });
  return layer.volume === volume ? placeOf(isolation, place) : undefined;
}
