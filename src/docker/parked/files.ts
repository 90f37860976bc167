import { mkdir, open, readdir, rename, rm, truncate, unlink } from "node:fs/promises";
import path from "node:path";
import { EXIT, errorCode, HarnessError } from "../../core/errors.ts";
import type { Owner } from "../labels.ts";
import { isAlive } from "../life/owner.ts";

/**
 * `<state>/parked/<session>.<expires>.parked` lets a frozen box be taken up until then: it holds the key, so only its
 * owner can read it. Whoever takes the box up renames it to `<session>.<owner>.taken` and empties it; that name says
 * who has the box now, which its container, made by another process, cannot.
 */
export type Standing = {
  readonly session: string;
  readonly file: string;
} & (
  | { readonly kind: "parked"; readonly expires: number }
  | { readonly kind: "taken"; readonly owner: Owner }
  /** Being written, or left by who was killed at that. */
  | { readonly kind: "begun"; readonly owner: Owner }
);

const parkedIn = (stateDir: string): string => path.join(stateDir, "parked");

const ownerText = ({ pid, start, boot }: Owner): string => `${pid}-${start}-${boot}`;

function standingOf(folder: string, name: string): Standing | undefined {
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

export async function standings(stateDir: string): Promise<readonly Standing[]> {
  const folder = parkedIn(stateDir);
  const names = await readdir(folder).catch((thrown: unknown) => {
    if (errorCode(thrown) === "ENOENT") return [];
    throw thrown;
  });
  return names.flatMap((name) => standingOf(folder, name) ?? []);
}

export const standingsOf = async (stateDir: string, session: string): Promise<readonly Standing[]> =>
  (await standings(stateDir)).filter((each) => each.session === session);

/** Whether the box is still somebody's, though the process that made it is gone. */
export async function holds(standing: Standing, now: number): Promise<boolean> {
  return standing.kind === "parked" ? now < standing.expires : isAlive(standing.owner);
}

/** Two do not go on with one session, whatever locks they could share. */
export async function refuseTaken(stateDir: string, session: string): Promise<void> {
  const taken = (await standingsOf(stateDir, session)).filter(({ kind }) => kind === "taken");
  if (!(await Promise.all(taken.map((each) => holds(each, 0)))).includes(true)) return;
  throw new HarnessError(
    EXIT.usage,
    `somebody is going on in the box that waited in ${session}`,
    `harness sessions show ${session}`,
  );
}

export interface Parking {
  readonly session: string;
  readonly expires: number;
  readonly owner: Owner;
}

/** On the disk, with its name, when it resolves. What stood there for the session is gone. */
export async function writeParked(
  stateDir: string,
  { session, expires, owner }: Parking,
  text: string,
): Promise<string> {
  if (!/^\w[\w-]{0,63}$/.test(session))
    throw new TypeError(`${JSON.stringify(session)} is no id of a session`);
  const folder = parkedIn(stateDir);
  await mkdir(folder, { recursive: true, mode: 0o700 });
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
  for (const each of earlier) if (each.file !== file) await rm(each.file, { force: true });
  await syncFolder(folder);
  await syncFolder(path.dirname(folder));
  return file;
}

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, "r");
  await handle.sync();
}

export interface Claimed {
  readonly text: string;
  /** Nobody has the box any more. */
  readonly letGo: () => Promise<void>;
}

/** Of several that want it one gets it; undefined for the others. What it holds is nowhere any more then. */
export async function claimParked(
  stateDir: string,
  { session, file }: Standing,
  owner: Owner,
): Promise<Claimed | undefined> {
  const taken = path.join(parkedIn(stateDir), `${session}.${ownerText(owner)}.taken`);
  try {
    await rename(file, taken);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
  const letGo = (): Promise<void> => rm(taken, { force: true });
  try {
    await using handle = await open(taken, "r");
    return { text: await handle.readFile("utf8"), letGo };
  } finally {
    await truncate(taken).catch(() => undefined);
  }
}

export async function forget({ file }: Standing): Promise<void> {
  await unlink(file).catch((thrown: unknown) => {
    if (errorCode(thrown) !== "ENOENT") throw thrown;
  });
}
