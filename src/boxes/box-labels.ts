import { type Mode, MODES } from "../core/decision.ts";

/** Labels on every container of a box. A box is looked up by its labels, never by its name. */
export const BOX_LABEL = "dev.harness.box";
export const UID_LABEL = "dev.harness.uid";

/** Value of the box label for a box that may be frozen. For any other box the value is 1. */
export const LEASED = "leased";

/** On the runner's volumes for user images. Not a box label: they outlive all boxes and are removed with the images. */
export const RUNNER_LABEL = "dev.harness.runner";

/** On volumes that outlive their boxes: the session they belong to, and the state folder that records them. */
const KEPT_LABEL = "dev.harness.kept";
const STATE_LABEL = "dev.harness.state";

const LABEL = {
  session: "dev.harness.session",
  workspace: "dev.harness.workspace",
  pid: "dev.harness.owner_pid",
  start: "dev.harness.owner_start",
  boot: "dev.harness.boot_id",
  machine: "dev.harness.machine",
  created: "dev.harness.created",
  mode: "dev.harness.mode",
  isolation: "dev.harness.isolation",
  parks: "dev.harness.parks",
} as const;

type Labels = Readonly<Record<string, string>>;

/** Identifies one process for good: a pid is reused, but never with the same start time and boot. */
export interface Owner {
  readonly pid: number;
  /** Start time in clock ticks since boot. Only compared, never used in arithmetic. */
  readonly start: string;
  readonly boot: string;
  /** Set if an engine may hold things of several machines; unknown for older things and for files. */
  readonly machine?: string;
}

/** What the labels of a box record. Its volumes carry the same labels. */
export interface BoxIdentity {
  readonly workspace: string;
  readonly uid: number;
  readonly owner: Owner;
  readonly session: string;
  /** ISO 8601. */
  readonly created: string;
  readonly isolation: string;
  readonly mode: Mode;
  /** Set for a box that may be frozen: its session, and the state folder that records it while it is frozen. */
  readonly parks?: { readonly session: string; readonly stateDir: string };
}

/** Labels read back: a missing or malformed value is undefined; an owner is complete or undefined. */
export type BoxRecord = Pick<BoxIdentity, "uid"> & {
  readonly [key in Exclude<keyof BoxIdentity, "uid">]-?: BoxIdentity[key] | undefined;
};

export const ownerLabels = (uid: number, owner?: Owner): Labels => ({
  [BOX_LABEL]: "1",
  [UID_LABEL]: String(uid),
  ...(owner === undefined
    ? {}
    : { [LABEL.pid]: String(owner.pid), [LABEL.start]: owner.start, [LABEL.boot]: owner.boot }),
  ...(owner?.machine === undefined ? {} : { [LABEL.machine]: owner.machine }),
});

export const boxLabels = (box: BoxIdentity): Labels => ({
  ...ownerLabels(box.uid, box.owner),
  [LABEL.session]: box.session,
  [LABEL.workspace]: box.workspace,
  [LABEL.created]: box.created,
  [LABEL.mode]: box.mode,
  [LABEL.isolation]: box.isolation,
  ...(box.parks === undefined
    ? {}
    : { [BOX_LABEL]: LEASED, [LABEL.parks]: box.parks.session, [STATE_LABEL]: box.parks.stateDir }),
});

/** The labels the same box would have if it could not be frozen. */
export function unparkable(labels: Labels): Labels {
  const { [LABEL.parks]: _, [STATE_LABEL]: __, ...others } = labels;
  return { ...others, [BOX_LABEL]: "1" };
}

/** Undefined for anything that is not ours, that is, without our box label and a user id. */
export function boxOf(labels: Labels | null | undefined): BoxRecord | undefined {
  const uid = numberIn(labels?.[UID_LABEL]);
  if (labels === null || labels === undefined || uid === undefined) return undefined;
  if (labels[BOX_LABEL] !== "1" && labels[BOX_LABEL] !== LEASED) return undefined;
  const created = labels[LABEL.created];
  return {
    uid,
    owner: ownerIn(labels),
    session: nonEmpty(labels[LABEL.session]),
    workspace: nonEmpty(labels[LABEL.workspace]),
    created: created !== undefined && !Number.isNaN(Date.parse(created)) ? created : undefined,
    mode: MODES.find((mode) => mode === labels[LABEL.mode]),
    isolation: nonEmpty(labels[LABEL.isolation]),
    parks: parksIn(labels),
  };
}

function parksIn(labels: Labels): BoxIdentity["parks"] {
  const [session, stateDir] = [nonEmpty(labels[LABEL.parks]), nonEmpty(labels[STATE_LABEL])];
  if (labels[BOX_LABEL] !== LEASED || session === undefined || stateDir === undefined) return undefined;
  return { session, stateDir };
}

export const keptLabels = (session: string, stateDir: string): Labels => ({
  [KEPT_LABEL]: session,
  [STATE_LABEL]: stateDir,
});

/** Engine filter for everything labelled with this user's id. */
export const ownFilter = (uid: number): { label: string[] } => ({ label: [`${UID_LABEL}=${uid}`] });

/** Undefined for volumes of other state folders and if the owner labels are incomplete. */
export const ownerOfKept = (labels: Labels | null | undefined, stateDir: string): Owner | undefined =>
  labels?.[KEPT_LABEL] === undefined || labels[STATE_LABEL] !== stateDir ? undefined : ownerIn(labels);

/** Engine filter for every box of one user, and its volumes. */
export const boxFilter = (uid: number): { label: string[] } => ({
  label: [BOX_LABEL, `${UID_LABEL}=${uid}`],
});

function ownerIn(labels: Labels): Owner | undefined {
  const pid = numberIn(labels[LABEL.pid]);
  const [start, boot] = [nonEmpty(labels[LABEL.start]), nonEmpty(labels[LABEL.boot])];
  const machine = nonEmpty(labels[LABEL.machine]);
  return pid === undefined || pid === 0 || start === undefined || boot === undefined
    ? undefined
    : { pid, start, boot, ...(machine === undefined ? {} : { machine }) };
}

const nonEmpty = (text: string | undefined): string | undefined => (text === "" ? undefined : text);

const numberIn = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
