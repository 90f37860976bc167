import { open, readdir, rename, rm, truncate, unlink } from "node:fs/promises";
import path from "node:path";
import { createHmac } from "node:crypto";
import * as z from "zod";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { syncFolder } from "../../platform/safe-files.ts";
import {
  boxFilter,
  boxOf,
  type BoxRecord,
  isAlive,
  type Owner,
  thisProcess,
} from "../../boxes/box-record.ts";
import { type Engine, unlessGone } from "../engine.ts";
import { removeUnthawed } from "./container.ts";
import { makeFolder } from "../../platform/folders.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { type KeptJob, keptJob } from "../../boxes/box-command.ts";
import type { HostFile } from "../../boxes/workspace/protected-mounts.ts";
import type { PausedRunner } from "../../boxes/runner-client.ts";
import { KEY_BYTES } from "../../boxes/runner-protocol.ts";

/**
 * `<state>/parked/<session>.<expires>.parked` lets a frozen box be resumed until then: the file holds the key, so only
 * its owner can read it. A process that resumes the box renames the file to `<session>.<owner>.taken` and empties it;
 * the name says who has the box now, which the container's labels cannot, because another process made it.
 */
export type ParkedState = {
  readonly session: string;
  readonly file: string;
} & (
  | { readonly kind: "parked"; readonly expires: number }
  | { readonly kind: "taken"; readonly owner: Owner }
  /** Being written, or left by a process that was killed while writing. */
  | { readonly kind: "begun"; readonly owner: Owner }
);

const parkedIn = (stateDir: string): string => path.join(stateDir, "parked");

const ownerText = ({ pid, start, boot }: Owner): string => `${pid}-${start}-${boot}`;

function standingOf(folder: string, name: string): ParkedState | undefined {
  const file = path.join(folder, name);
  const parked = /^(\w[\w-]*)\.(\d{1,16})\.parked$/.exec(name);
  if (parked !== null) {
    const [, session = "", expires = ""] = parked;
    return { kind: "parked", session, file, expires: Number(expires) };
  }
  const owned = /^(\w[\w-]*)\.(\d+)-(\d+)-([\w-]+)\.(taken|begun)$/.exec(name);
  const [, session, pid, start = "", boot = "", kind] = owned ?? [];
  if (session === undefined) return undefined;
  return {
    kind: kind === "taken" ? "taken" : "begun",
    session,
    file,
    owner: { pid: Number(pid), start, boot },
  };
}

export async function standings(stateDir: string): Promise<readonly ParkedState[]> {
  const folder = parkedIn(stateDir);
  const names = await readdir(folder).catch((thrown: unknown) => {
    if (errorCode(thrown) === "ENOENT") return [];
    throw thrown;
  });
  return names.flatMap((name) => standingOf(folder, name) ?? []);
}

export const standingsOf = async (stateDir: string, session: string): Promise<readonly ParkedState[]> =>
  (await standings(stateDir)).filter((each) => each.session === session);

/** Whether the box is still claimed although the process that created it has ended. */
export async function isClaimed(standing: ParkedState, now: number): Promise<boolean> {
  return standing.kind === "parked" ? now < standing.expires : isAlive(standing.owner);
}

/** Refuses a second process for a session that another process has resumed, even if their locks would be compatible. */
export async function refuseTaken(stateDir: string, session: string): Promise<void> {
  const taken = (await standingsOf(stateDir, session)).filter(({ kind }) => kind === "taken");
  if (!(await Promise.all(taken.map((each) => isClaimed(each, 0)))).includes(true)) return;
  throw new HarnessError(
    EXIT.usage,
    `another process is already using the box that waited in ${session}`,
    `harness sessions show ${session}`,
  );
}

interface Parking {
  readonly session: string;
  readonly expires: number;
  readonly owner: Owner;
}

/**
 * The file and its name are on disk when this resolves. Earlier files of the session are removed, except the one that
 * says that this process has the box: until the box is frozen, nothing else says so (`releaseTaken`).
 */
export async function writeParked(
  stateDir: string,
  { session, expires, owner }: Parking,
  text: string,
): Promise<string> {
  if (!/^\w[\w-]{0,63}$/.test(session)) throw new TypeError(`${JSON.stringify(session)} is not a session id`);
  const folder = parkedIn(stateDir);
  makeFolder(folder);
  const begun = path.join(folder, `${session}.${ownerText(owner)}.begun`);
  const file = path.join(folder, `${session}.${expires}.parked`);
  const earlier = await standingsOf(stateDir, session);
  try {
    {
      await using handle = await open(begun, "wx", 0o600);
      await handle.writeFile(text);
      await handle.sync();
    }
    await rename(begun, file);
  } catch (thrown) {
    await rm(begun, { force: true });
    throw thrown;
  }
  const own = takenFile(stateDir, session, owner);
  for (const each of earlier)
    if (each.file !== file && each.file !== own) await rm(each.file, { force: true });
  await syncFolder(folder);
  await syncFolder(path.dirname(folder));
  return file;
}

const takenFile = (stateDir: string, session: string, owner: Owner): string =>
  path.join(parkedIn(stateDir), `${session}.${ownerText(owner)}.taken`);

/** Records that this process no longer has the box of the session. */
export const releaseTaken = (stateDir: string, session: string, owner: Owner): Promise<void> =>
  rm(takenFile(stateDir, session, owner), { force: true });

interface ClaimedBox {
  readonly text: string;
  /** Releases the claim on the box. */
  readonly letGo: () => Promise<void>;
}

/** Only one of several callers gets the claim; the others get undefined. The key is then no longer on disk. */
export async function claimParked(
  stateDir: string,
  { session, file }: ParkedState,
  owner: Owner,
): Promise<ClaimedBox | undefined> {
  const taken = takenFile(stateDir, session, owner);
  try {
    await rename(file, taken);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
  const letGo = (): Promise<void> => releaseTaken(stateDir, session, owner);
  try {
    await using handle = await open(taken, "r");
    return { text: await handle.readFile("utf8"), letGo };
  } finally {
    await truncate(taken).catch(() => undefined);
  }
}

export async function forget({ file }: ParkedState): Promise<void> {
  await unlink(file).catch((thrown: unknown) => {
    if (errorCode(thrown) !== "ENOENT") throw thrown;
  });
}

/** The records of a session's box as one text: a look at the box is valid if it is the same before and after. */
export const recordsOf = async ({ parks }: Pick<BoxRecord, "parks">): Promise<string> =>
  parks === undefined
    ? ""
    : (await standingsOf(parks.stateDir, parks.session).catch(() => []))
        .map(({ file }) => file)
        .toSorted()
        .join("\n");

/**
 * What keeps a box although its creator has ended: a pending answer of a person, or a process that resumed the box. A
 * box that is not frozen is not kept for an answer: the process that would have frozen it, or had thawed it, was
 * killed; the lease ends the box.
 */
export async function holderOf(
  { parks }: Pick<BoxRecord, "parks">,
  frozen: boolean,
): Promise<ParkedState | undefined> {
  if (parks === undefined) return undefined;
  const own = await standingsOf(parks.stateDir, parks.session).catch(() => []);
  const candidates = own.filter(({ kind }) => kind === "taken" || (kind === "parked" && frozen));
  const claimed = await Promise.all(candidates.map((each) => isClaimed(each, Date.now())));
  return candidates.find((_, index) => claimed[index]);
}

export interface SessionRef {
  readonly uid: number;
  readonly stateDir: string;
  readonly session: string;
}

/**
 * Removes the frozen box of a session and its record; the layer or copy stays. Resolves to whether there was one: a box
 * that another process has resumed meanwhile belongs to that process.
 */
export async function discardParked(engine: Engine, of: SessionRef): Promise<boolean> {
  const { stateDir, session } = of;
  const parked = (await standingsOf(stateDir, session)).filter(({ kind }) => kind === "parked");
  if (parked.length === 0) return false;
  const owner = await thisProcess();
  const claims = await Promise.all(parked.map((each) => claimParked(stateDir, each, owner)));
  if (claims.every((claim) => claim === undefined)) return false;
  try {
    await removeLeased(engine, of);
    return true;
  } finally {
    await releaseTaken(stateDir, session, owner);
  }
}

/** Removes the boxes that were created with a lease for this session, and their volumes. The labels match no others. */
export async function removeLeased(engine: Engine, of: SessionRef): Promise<void> {
  const filters = boxFilter(of.uid);
  const isMeant = isParkedFor(of);
  const boxes = (await engine.api.listContainers({ all: true, filters })).filter(isMeant);
  for (const { Id } of boxes) await removeUnthawed(engine.api.getContainer(Id)).catch(unlessGone);
  const { Volumes } = await engine.api.listVolumes({ filters });
  for (const { Name } of (Volumes ?? []).filter(isMeant))
    await engine.api.getVolume(Name).remove().catch(unlessGone);
}

/** The layers of a frozen box are mounted already and cannot be mounted twice: this volume gives access to them. */
export async function frozenVolume(engine: Engine, of: SessionRef): Promise<string | undefined> {
  const { Volumes } = await engine.api.listVolumes({ filters: boxFilter(of.uid) });
  return (Volumes ?? []).find(isParkedFor(of))?.Name;
}

/** Whether a container or a volume was made for a box of this session that can be parked. */
export const isParkedFor =
  ({ stateDir, session }: Pick<SessionRef, "stateDir" | "session">) =>
  ({ Labels }: { readonly Labels: Readonly<Record<string, string>> }): boolean => {
    const parks = boxOf(Labels)?.parks;
    return parks?.session === session && parks.stateDir === stateDir;
  };

/** What is needed to resume a frozen box. */
export interface ParkedBox {
  readonly container: string;
  /** All labels of the container: they record how it was made and to whom it belongs. */
  readonly labels: Readonly<Record<string, string>>;
  /** Mounted in place of the workspace. */
  readonly volume: string | null;
  /** Whether the box was made with host files as its lists of users. */
  readonly named: boolean;
  /** The folder of the box's network on the host; null if it has none. */
  readonly network: string | null;
  /** The host files that its mounts covered when it was verified. */
  readonly files: readonly HostFile[];
  readonly runner: PausedRunner;
  readonly jobs: readonly KeptJob[];
}

const digits = z.string().regex(/^\d+$/);

const form = z.strictObject({
  form: z.literal(4),
  container: z.string().regex(/^[0-9a-f]{64}$/),
  labels: z.record(z.string(), z.string()),
  volume: z.string().nullable(),
  named: z.boolean(),
  network: z.string().nullable(),
  files: z.array(z.strictObject({ path: z.string(), dev: digits, ino: digits, born: digits })),
  key: z.string().regex(new RegExp(`^[0-9a-f]{${KEY_BYTES * 2}}$`)),
  next: z.int().min(1).max(0xffff_ffff),
  asks: z.array(z.strictObject({ call: z.int().min(0), payload: z.base64() })),
  jobs: z.array(keptJob),
});

const whole = z.strictObject({ seal: z.string(), box: z.unknown() });

/** Detects accidental changes; it does not stop somebody who can read the key. */
const sealOf = (key: string, box: string): string => createHmac("sha256", key).update(box).digest("hex");

export function parkedText(parked: ParkedBox): string {
  const { container, labels, volume, named, network, files, runner, jobs } = parked;
  const key = runner.key.toString("hex");
  const asks = runner.asks.map(({ call, payload }) => ({ call, payload: payload.toString("base64") }));
  const { next } = runner;
  const box = { form: 4, container, labels, volume, named, network, files, key, next, asks, jobs };
  return JSON.stringify({ seal: sealOf(key, JSON.stringify(box)), box });
}

/** Undefined unless the text is exactly what was written. */
export function readParked(text: string): ParkedBox | undefined {
  const outer = whole.safeParse(parsedJson(text));
  const inner = form.safeParse(outer.data?.box);
  if (!outer.success || !inner.success) return undefined;
  const { container, labels, volume, named, network, files, key, next, asks, jobs } = inner.data;
  if (outer.data.seal !== sealOf(key, JSON.stringify(outer.data.box))) return undefined;
  const late = asks.map(({ call, payload }) => ({ call, payload: Buffer.from(payload, "base64") }));
  return {
    container,
    labels,
    volume,
    named,
    network,
    files,
    runner: { key: Buffer.from(key, "hex"), next, asks: late },
    jobs,
  };
}
