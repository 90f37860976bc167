import { lstatSync, type Stats } from "node:fs";
import path from "node:path";
import { diskTroubleOf, errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { NotRegularError, readRegularSync, replaceFileSync } from "../platform/safe-files.ts";
import {
  type Brought,
  broughtBy,
  type BroughtFile,
  broughtOf,
  type Further,
  type Kind,
  projectOf,
  type ProjectPlace,
  projectsAbove,
  rowOf,
  sha256Of,
} from "./brought.ts";
import type { RecordForm, TrustRecord } from "./trust-record.ts";
import { whileLocked } from "../platform/folders.ts";

/**
 * Records of what a person has seen and trusts in a project. One file per project in the user's state, named by the
 * real path of the project's top. A record counts only for that very folder (device and inode) and for the very bytes
 * that were shown. A record that is unreadable or belongs to someone else trusts nothing.
 */

/** The user of the records: where they are stored, which folder is not a project, and who has to own them. */
export interface TrustOwner {
  readonly stateDir: string;
  readonly home: string;
  readonly uid: number;
  /** Finds what else of the project belongs to what it brings. */
  readonly further?: Further;
}

/** `changed`: it was trusted with other bytes. */
export type TrustStanding = "trusted" | "new" | "changed" | "unusable";

/** One kind of thing that a project brings, and whether it is trusted. */
export interface TrustItem {
  readonly brought: Brought;
  readonly standing: TrustStanding;
  /** What was trusted of this kind before, including its text; empty if nothing was. */
  readonly before: readonly BroughtFile[];
  /** A person has seen these very bytes and said no. */
  readonly declined: boolean;
}

export interface ProjectTrust {
  /** Undefined if there is no project: then nothing is brought. */
  readonly place: ProjectPlace | undefined;
  readonly items: readonly TrustItem[];
  /** Trusted, but no longer there. */
  readonly gone: readonly Kind[];
  /**
   * Trusted in folders above, and without effect because this project, of which nothing is trusted, is nearer. Absolute
   * paths of their main files.
   */
  readonly outer: readonly string[];
  /** Hash of everything that is there and can be trusted, as named by `--yes`. Empty if there is nothing. */
  readonly hash: string;
  /** Why the record does not count; undefined if it counts or there is none. */
  readonly damage: string | undefined;
}

/** Everything that the project of a workspace brings, or only the `wanted` kinds. */
export async function trustOf(
  owner: TrustOwner,
  workspace: string,
  wanted?: Parameters<typeof broughtBy>[1],
): Promise<ProjectTrust> {
  const place = projectOf(workspace, owner.home);
  const all = await broughtBy(place, wanted, owner.further);
  const { record, damage } = place === undefined ? NOTHING : await readRecord(owner, place);
  const items = all.map((brought) => itemOf(brought, record));
  const there = new Set<string>(all.map(({ kind }) => kind));
  const isWanted = (kind: Kind): boolean => wanted?.(rowOf(kind)) ?? true;
  const gone = (record?.trusted ?? [])
    .map(({ kind }) => kind as Kind)
    .filter((kind) => !there.has(kind) && isWanted(kind));
  const isNew = (record?.trusted ?? []).length === 0;
  const above = place !== undefined && isNew ? projectsAbove(place, owner.home) : [];
  const outer = await Promise.all(
    above.map(async (each) =>
      ((await readRecord(owner, each)).record?.trusted ?? [])
        .filter(({ kind }) => isWanted(kind as Kind))
        .map(({ files: [main] }) => path.join(each.top, main?.path ?? "")),
    ),
  );
  const usable = all.filter((brought) => brought.usable);
  const hash = usable.length === 0 ? "" : sha256Of(usable.map(digestOf).join("\n"));
  return { place, items, gone, outer: outer.flat(), hash, damage };
}

export type TrustedFile =
  | {
      readonly state: "trusted";
      /** Absolute, for messages. Only `text` counts; do not open the file again. */
      readonly file: string;
      readonly text: string;
      readonly sha256: string;
      /**
       * The files that it names, by their path from the project's top. No other file of the project is trusted with it.
       */
      readonly named: ReadonlyMap<string, BroughtFile>;
      /** The file itself, and the files that it names. */
      readonly files: readonly BroughtFile[];
      readonly top: string;
    }
  | {
      readonly state: "untrusted";
      readonly file: string;
      /** One line, for a person. */
      readonly why: string;
      /** For uses that need no trust because they only tighten; null if unreadable. */
      readonly text: string | null;
    }
  | { readonly state: "absent" };

/** The only way to read a file that a project brings. */
export async function trustedFile(owner: TrustOwner, workspace: string, kind: Kind): Promise<TrustedFile> {
  const place = projectOf(workspace, owner.home);
  const brought = place === undefined ? undefined : await broughtOf(place, kind, owner.further);
  if (place === undefined || brought === undefined) return { state: "absent" };
  if (!brought.usable)
    return { state: "untrusted", file: path.join(place.top, brought.path), why: brought.why, text: null };
  const [{ path: main, text, sha256: hash }, ...named] = brought.files;
  const file = path.join(place.top, main);
  const { record, damage } = await readRecord(owner, place);
  const { standing } = itemOf(brought, record);
  if (standing !== "trusted") return { state: "untrusted", file, why: damage ?? WHY[standing], text };
  const byPath = new Map(named.map((each) => [each.path, each]));
  const { files } = brought;
  return { state: "trusted", file, text, sha256: hash, named: byPath, files, top: place.top };
}

const WHY = {
  new: "it is not trusted",
  changed: "it has changed since it was trusted",
  unusable: "it cannot be used",
};

function itemOf(brought: Brought, record: TrustRecord | undefined): TrustItem {
  const { kind } = brought;
  const before = record?.trusted.find((each) => each.kind === kind)?.files ?? [];
  if (!brought.usable) return { brought, standing: "unusable", before, declined: false };
  const digest = digestOf(brought);
  const standing =
    before.length === 0 ? "new" : digestOf({ kind, files: before }) === digest ? "trusted" : "changed";
  const declined = record?.declined.some((each) => each.kind === kind && each.digest === digest) ?? false;
  return { brought, standing, before, declined };
}

const digestOf = ({ kind, files }: { readonly kind: Kind; readonly files: readonly BroughtFile[] }): string =>
  sha256Of(JSON.stringify([kind, ...files.map((file) => [file.path, file.sha256])]));

interface RecordRead {
  readonly record: TrustRecord | undefined;
  readonly damage: string | undefined;
}

const NOTHING: RecordRead = { record: undefined, damage: undefined };
const DAMAGED = "it is damaged";
const MAX_RECORD = 64 * 2 ** 20;

const folderOf = ({ stateDir }: TrustOwner): string => path.join(stateDir, "trust");
const recordFile = (owner: TrustOwner, top: string): string =>
  path.join(folderOf(owner), `${sha256Of(top).slice(0, 40)}.json`);

/** Loads the form of records only if there is one. */
async function readRecord(owner: TrustOwner, place: ProjectPlace): Promise<RecordRead> {
  if (!isThere(recordFile(owner, place.top))) return NOTHING;
  return recordIn((await import("./trust-record.ts")).recordForm, owner, place);
}

/** A path that cannot be examined counts as existing. */
function isThere(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** The record of this very folder; a record of an earlier folder at the same path does not count. */
function recordIn(form: RecordForm, owner: TrustOwner, place: ProjectPlace): RecordRead {
  const file = recordFile(owner, place.top);
  try {
    const { data: record } = form.safeParse(JSON.parse(ownText(file, owner.uid)));
    if (record === undefined) throw new Error(DAMAGED);
    const wrong = record.trusted
      .flatMap(({ files }) => files)
      .find((each) => each.bytes === undefined && sha256Of(each.text) !== each.sha256);
    if (record.top !== place.top || wrong !== undefined) throw new Error(DAMAGED);
    return record.dev === place.dev && record.ino === place.ino ? { record, damage: undefined } : NOTHING;
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ENOENT" || code === "ENOTDIR") return NOTHING;
    return {
      record: undefined,
      damage: `the record of what is trusted is ignored (${file}): ${damageOf(thrown)}`,
    };
  }
}

function damageOf(thrown: unknown): string {
  if (thrown instanceof SyntaxError) return DAMAGED;
  if (thrown instanceof NotRegularError) return "it is not a file";
  return reasonOf(thrown);
}

/** A record of another owner, or one that others may write, does not speak for this user. */
function ownText(file: string, uid: number): string {
  const check = (stats: Stats): void => {
    if (stats.uid !== uid) throw new Error(`it belongs to another user (uid ${stats.uid})`);
    if ((stats.mode & 0o022) !== 0) throw new Error("other users may write to it");
  };
  return readRegularSync(file, { links: "refuse", max: MAX_RECORD, check }).toString();
}

/** Records the shown bytes as trusted, whatever the files contain by now. */
export function recordTrusted(
  owner: TrustOwner,
  place: ProjectPlace,
  shown: readonly Brought[],
): Promise<void> {
  const at = new Date().toISOString();
  const added = shown.flatMap((brought) =>
    brought.usable ? [{ kind: brought.kind, at, files: [...brought.files] }] : [],
  );
  const kinds = new Set<string>(added.map(({ kind }) => kind));
  return change(owner, place, (record) => ({
    ...record,
    trusted: [...record.trusted.filter(({ kind }) => !kinds.has(kind)), ...added],
    declined: record.declined.filter(({ kind }) => !kinds.has(kind)),
  }));
}

/**
 * Records that these very bytes were declined, so that nobody is asked about them again. Bytes trusted before stay
 * trusted.
 */
export function recordDeclined(
  owner: TrustOwner,
  place: ProjectPlace,
  shown: readonly Brought[],
): Promise<void> {
  const added = shown.flatMap((brought) =>
    brought.usable ? [{ kind: brought.kind, digest: digestOf(brought) }] : [],
  );
  const kinds = new Set<string>(added.map(({ kind }) => kind));
  return change(owner, place, (record) => ({
    ...record,
    declined: [...record.declined.filter(({ kind }) => !kinds.has(kind)), ...added],
  }));
}

/** For what is no longer there: if it returns, a person is asked again. */
export const forgetKinds = (owner: TrustOwner, place: ProjectPlace, kinds: readonly Kind[]): Promise<void> =>
  change(owner, place, (record) => ({
    ...record,
    trusted: record.trusted.filter(({ kind }) => !kinds.includes(kind as Kind)),
  }));

export const forgetTrust = (owner: TrustOwner, place: ProjectPlace): Promise<void> =>
  change(owner, place, (record) => ({ ...record, trusted: [], declined: [] }));

const PATIENCE_MS = 10_000;

/** One writer at a time; a kill leaves the old record or the new one. */
async function change(
  owner: TrustOwner,
  place: ProjectPlace,
  edit: (record: TrustRecord) => TrustRecord,
): Promise<void> {
  const folder = folderOf(owner);
  try {
    const { recordForm } = await import("./trust-record.ts");
    await whileLocked(folder, PATIENCE_MS, () => {
      const { record = { form: 1, ...place, trusted: [], declined: [] } } = recordIn(
        recordForm,
        owner,
        place,
      );
      const file = recordFile(owner, place.top);
      const text = `${JSON.stringify(edit(record), null, 1)}\n`;
      replaceFileSync(file, text, { aside: `${file}.new`, lasts: "name" });
    });
  } catch (thrown) {
    const busy = diskTroubleOf(thrown) === "busy";
    const why = busy ? `another harness has kept it locked for ${PATIENCE_MS / 1000} s` : reasonOf(thrown);
    throw new HarnessError(
      EXIT.failed,
      `nothing was recorded in ${folder}: ${why}`,
      busy ? "run the same command again when it is done" : `ls -ld ${folder}`,
      thrown,
    );
  }
}
