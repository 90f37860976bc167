import { opendir, stat } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import { isBucketAddress } from "../../core/addresses.ts";
import { EXIT, HarnessError, reasonOf, STATUSES } from "../../core/errors.ts";
import { type SessionInfo, type SessionRecord, WORDS } from "../../core/session.ts";
import { visibleLine } from "../../core/visible.ts";
import { bytesOfName, textOfName } from "../../platform/folder-tree.ts";
import { type Links, readRegular, readRegularHead, TooLargeError } from "../../platform/safe-files.ts";
import {
  beginsAsBundle,
  type BundleManifest,
  MAX_BUNDLE_BYTES,
  momentForm,
  openBundle,
  type OpenedBundle,
  type Parts,
} from "../../sessions/session-bundle.ts";
import type { Host } from "../host.ts";
import { type AgentEvent, eventForm } from "../../core/events.ts";
import { MODES, VERDICTS } from "../../core/decision.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { maskSecrets } from "../../core/secrets.ts";
import { planStepForm } from "../../core/run-record.ts";
import { reportOf, type Timed } from "../../render/build-report.ts";
import { cleanStrings } from "../../render/renderers.ts";
import type { FromBundle, Report } from "../../render/report-form.ts";
import { sha256 } from "../../sessions/audit-file.ts";

interface BundledSession extends SessionInfo {
  /** The bundle's file. */
  readonly bundle: string;
}

export interface BundleFilter {
  readonly limit: number;
  /** Searched for in titles and messages. */
  readonly query?: string | undefined;
}

export interface BundleList {
  /** Most recently changed first. */
  readonly sessions: readonly BundledSession[];
  /** Messages on files that could not be read, or cannot be trusted: each names its file. */
  readonly faults: readonly string[];
}

/** Deep enough for the volume of a batch: its hash, the folder of its results, the files. */
const MAX_FOLDER_DEPTH = 3;
/** The most entries of a folder and its subfolders, so that the search ends in any tree. */
const MAX_ENTRIES = 100_000;
const MAX_FAULTS = 1000;
const HEAD_BYTES = 512;

/**
 * The sessions of a file, or of all files in a folder or a bucket, with one file in memory at a time. Writes nothing.
 */
export async function bundledSessions(
  host: Pick<Host, "env">,
  place: string,
  { query = "", limit }: BundleFilter,
): Promise<BundleList> {
  const many = await filesAt(host, place);
  const { files, isFatal } = many ?? { files: [{ file: place }], isFatal: () => true };
  const found: { sessions: BundledSession[]; faults: string[] } = { sessions: [], faults: [] };
  let seen = 0;
  for await (const { file, fault } of files as AsyncIterable<Candidate> | Iterable<Candidate>) {
    seen += 1;
    const look: BundleLook =
      fault === undefined
        ? await readOne(host, file, { query, alone: many === undefined, isFatal })
        : { fault };
    if (look.fault !== undefined) found.faults.push(look.fault);
    if (found.faults.length === MAX_FAULTS) {
      found.faults.push(`${place}: the files after ${file} were not read`);
      break;
    }
    if (look.session !== undefined)
      found.sessions = [...found.sessions, look.session].toSorted(newestFirst).slice(0, limit);
  }
  if (seen > 0) return found;
  throw new HarnessError(
    EXIT.usage,
    `there is no session bundle in ${visibleLine(place)}`,
    "harness sessions export ID --bundle FILE",
  );
}

interface FileGroup {
  readonly files: AsyncIterable<Candidate>;
  /** Whether the error affects all files, and so ends the list. */
  readonly isFatal: (thrown: HarnessError) => boolean;
}

/** Undefined for a single file. */
async function filesAt({ env }: Pick<Host, "env">, place: string): Promise<FileGroup | undefined> {
  if (isBucketAddress(place)) {
    if (place.endsWith(".tar")) return undefined;
    const { bundlesBelow, isTransient } = await import("../batch/bucket-rows.ts");
    return { files: limitEntries(bundlesBelow(env, place), place), isFatal: isTransient };
  }
  const isFolder = await stat(place).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  return isFolder ? { files: filesIn(place), isFatal: () => false } : undefined;
}

async function* limitEntries(files: AsyncIterable<string>, place: string): AsyncGenerator<Candidate> {
  let entries = 0;
  for await (const file of files) {
    if ((entries += 1) > MAX_ENTRIES) {
      yield tooManyEntries(place);
      return;
    }
    yield { file };
  }
}

const tooManyEntries = (place: string): Candidate => ({
  file: place,
  fault: `${place}: more than ${MAX_ENTRIES} files; not all were read`,
});

interface BundleLook {
  readonly session?: BundledSession;
  readonly fault?: string;
}

/**
 * The error of a bundle that is named alone keeps its exit code; among many, an error must not hide the other bundles.
 */
async function readOne(
  host: Pick<Host, "env">,
  file: string,
  {
    query,
    isFatal,
    alone,
  }: { readonly query: string; readonly alone: boolean; readonly isFatal: FileGroup["isFatal"] },
): Promise<BundleLook> {
  try {
    const read = await readBundle(host, file, alone ? "follow" : "refuse");
    const { broken } = read.opened.audit;
    const fault =
      broken === null ? {} : { fault: `${file}: its audit is broken at line ${broken.line}: ${broken.why}` };
    return matches(read, query.toLowerCase())
      ? { ...fault, session: { ...infoOfBundle(read), bundle: file } }
      : fault;
  } catch (thrown) {
    if (alone || !(thrown instanceof HarnessError) || isFatal(thrown)) throw thrown;
    return { fault: thrown.message };
  }
}

const newestFirst = (a: BundledSession, b: BundledSession): number =>
  b.changed - a.changed || (a.id < b.id ? 1 : -1);

const matches = (read: ReadBundle, query: string): boolean =>
  infoOfBundle(read).title.toLowerCase().includes(query) ||
  recordsOfBundle(read).some(
    (record) => record.kind === "message" && record.message.text.toLowerCase().includes(query),
  );

interface Candidate {
  readonly file: string;
  readonly fault?: string;
}

/** A name may not be valid UTF-8. */
const BY_BYTES = { encoding: "buffer" as BufferEncoding };

/** Files that may be bundles; opening them decides. Links are not followed: the folder may be anybody's. */
async function* filesIn(place: string): AsyncGenerator<Candidate> {
  const folders = [{ folder: place, depth: 0 }];
  let entries = 0;
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    const { folder, depth } = next;
    const found: { readonly name: string; readonly kind: "folder" | "file" }[] = [];
    try {
      for await (const entry of await opendir(bytesOfName(folder), BY_BYTES)) {
        if ((entries += 1) > MAX_ENTRIES) break;
        const kind = entry.isDirectory() ? "folder" : entry.isFile() ? "file" : undefined;
        if (kind !== undefined) found.push({ name: textOfName(entry.name as unknown as Buffer), kind });
      }
    } catch (thrown) {
      yield { file: folder, fault: `${folder} cannot be listed: ${reasonOf(thrown)}` };
    }
    for (const { name, kind } of found.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const file = path.join(folder, name);
      if (kind === "folder" && depth < MAX_FOLDER_DEPTH) folders.push({ folder: file, depth: depth + 1 });
      else if (kind === "file" && (await mayBeOne(file))) yield { file };
    }
    if (entries > MAX_ENTRIES) {
      yield tooManyEntries(place);
      return;
    }
  }
}

/** The name of a file that is still being written ends like this. */
const ASIDE = /\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function mayBeOne(file: string): Promise<boolean> {
  if (ASIDE.test(file)) return false;
  if (file.endsWith(".tar")) return true;
  const head = await readRegularHead(bytesOfName(file), { links: "refuse", max: HEAD_BYTES }).catch(
    () => undefined,
  );
  return head !== undefined && beginsAsBundle(head);
}

/**
 * A session that exists only in a file, for commands that otherwise read a session of this machine. Its content is not
 * trusted.
 */
export interface ReadBundle {
  readonly file: string;
  readonly opened: OpenedBundle;
  readonly sha256: string;
}

/**
 * Reads a file, or an object of a bucket (`s3://BUCKET/KEY`), that nobody vouches for: as a whole, within bounds,
 * without writing anything.
 */
export async function readBundle(
  { env }: Pick<Host, "env">,
  file: string,
  links: Links = "follow",
): Promise<ReadBundle> {
  try {
    const bytes = isBucketAddress(file)
      ? await objectAt(env, file)
      : await readRegular(bytesOfName(file), { links, max: MAX_BUNDLE_BYTES });
    return { file, opened: openBundle(bytes, file), sha256: sha256(bytes) };
  } catch (thrown) {
    if (thrown instanceof HarnessError) throw thrown;
    const why =
      thrown instanceof TooLargeError
        ? `it is larger than ${MAX_BUNDLE_BYTES / 2 ** 20} MiB`
        : `it cannot be read: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.usage, `${file}: ${why}`, "harness sessions export ID --bundle FILE", thrown);
  }
}

async function objectAt(env: Host["env"], address: string): Promise<Buffer> {
  const { bucketAt } = await import("../batch/bucket-rows.ts");
  const { bucket, key } = bucketAt(env, address);
  if (key === "" || key.endsWith("/"))
    throw new HarnessError(
      EXIT.usage,
      `${visibleLine(address)} is not the address of an object`,
      `harness sessions --bundle ${visibleLine(address)}`,
    );
  return bucket.get(key, MAX_BUNDLE_BYTES, new AbortController().signal);
}

export interface ShownBundle {
  readonly manifest: BundleManifest;
  readonly sha256: string;
  readonly report: Report;
}

/** The run in the form of `report`. */
export function shownBundle(read: ReadBundle): ShownBundle {
  const { file, sha256: hash, opened } = read;
  const { manifest, parts } = opened;
  const report = reportOf({
    session: manifest.session,
    timeline: timelineIn(parts["events.jsonl"], file),
    audit: auditOfBundle(read),
    diff: patchOfBundle(read),
  });
  const bundle: FromBundle = { file, sha256: hash, not_held: missingParts(parts) };
  return { manifest, sha256: hash, report: cleanStrings({ ...report, bundle }, maskSecrets) };
}

/** Verified only as a chain: there is no database that would know its last line. */
export const auditOfBundle = ({ file, opened }: ReadBundle): NonNullable<Report["audit"]> => ({
  file: `${file}: audit.jsonl`,
  ...opened.audit,
});

export const patchOfBundle = ({ opened }: ReadBundle): string =>
  opened.parts["changes.patch"].toString("utf8");

const EMPTY: Readonly<Partial<Record<keyof Parts, string>>> = {
  "events.jsonl": "the events: none were kept",
  "records.jsonl": "the conversation: no records were kept",
  "changes.patch": "changes: none were made, or none were kept",
  "audit.jsonl": "the audit: none was kept",
};

/** The parts of a session on this machine that a bundle lacks. */
function missingParts(parts: Parts): readonly string[] {
  const empty = Object.entries(EMPTY).filter(([name]) => parts[name as keyof Parts].length === 0);
  return [
    "full outputs that the model was shown in pages",
    "values that were recognised as secrets: they are masked",
    "the states of the files: their changes are a patch, and nothing can be undone or applied",
    ...empty.map(([, what]) => what),
  ];
}

/** The recorded events, in order. */
export const eventsOfBundle = ({ file, opened }: ReadBundle): readonly AgentEvent[] =>
  timelineIn(opened.parts["events.jsonl"], file).map(({ event }) => event);

export const infoOfBundle = ({ opened }: ReadBundle): SessionInfo => opened.manifest.session;

const timedForm = z.strictObject({ at: momentForm, event: eventForm });

const timelineIn = (part: Buffer, file: string): readonly Timed[] =>
  linesIn(part).map((line, at) => {
    const { data } = timedForm.safeParse(valueIn(line));
    if (data !== undefined) return { at: data.at, event: data.event };
    throw unknownLine(file, `line ${at + 1} of events.jsonl is not an event`);
  });

const text = z.string();
const count = z.number().int().nonnegative();
const rules = z.array(z.looseObject({ id: text, reason: text, span: z.tuple([count, count]) }));
const questionForm = z.looseObject({
  tool: text,
  text,
  shown: text.exactOptional(),
  effects: z.array(text).exactOptional(),
  folder: text.exactOptional(),
  mode: z.enum(MODES),
  writes: z.boolean(),
  decision: z.looseObject({ decision: z.enum(VERDICTS), contained: z.boolean(), rules }),
  asks: rules.exactOptional(),
  grants: z.array(text).exactOptional(),
  network: text.exactOptional(),
});
const callForm = z.looseObject({ id: text, name: text, args: z.record(text, z.unknown()) });
const messageForm = z.discriminatedUnion("role", [
  z.looseObject({ role: z.enum(["system", "user", "tool"]), text }),
  z.looseObject({ role: z.literal("assistant"), text, calls: z.array(callForm) }),
]);
const turnForm = z.looseObject({ status: z.enum(STATUSES), reason: text, turns: count, toolCalls: count });

/** Checks the parts of a record that are shown; the rest is only printed as JSON. */
const recordForm = z.discriminatedUnion("kind", [
  z.looseObject({ kind: z.literal("pinned"), text }),
  z.looseObject({ kind: z.literal("message"), message: messageForm }),
  z.looseObject({ kind: z.literal("rolled_back"), to: count }),
  z.looseObject({ kind: z.enum(["cleared", "compacted", "seen", "shell"]) }),
  z.looseObject({ kind: z.literal("plan"), plan: z.array(planStepForm) }),
  z.looseObject({ kind: z.literal("tasks"), open: z.array(z.looseObject({ id: text })) }),
  z.looseObject({ kind: z.literal("turn"), result: turnForm }),
  z.looseObject({ kind: z.literal("parked"), parked: z.looseObject({ question: questionForm }) }),
  z.looseObject({ kind: z.literal("answered"), word: z.enum(WORDS) }),
]);

/** The conversation. */
export const recordsOfBundle = ({ file, opened }: ReadBundle): readonly SessionRecord[] =>
  linesIn(opened.parts["records.jsonl"]).map((line, at) => {
    const { data } = recordForm.safeParse(valueIn(line));
    if (data !== undefined) return data as unknown as SessionRecord;
    throw unknownLine(file, `line ${at + 1} of records.jsonl is not a record`);
  });

const unknownLine = (file: string, what: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `${file}: ${what} that this version knows`,
    "harness --version   (open it with the version that wrote it)",
  );

function valueIn(line: string): unknown {
  return isDeep(line) ? undefined : parsedJson(line);
}

const MAX_JSON_DEPTH = 1000;

/** Whether the line is nested too deeply for code that walks through it recursively. */
function isDeep(line: string): boolean {
  let depth = 0;
  let text = false;
  for (let at = 0; at < line.length; at += 1) {
    const sign = line[at];
    if (text && sign === "\\") at += 1;
    else if (sign === '"') text = !text;
    else if (!text && (sign === "{" || sign === "[")) depth += 1;
    else if (!text && (sign === "}" || sign === "]")) depth -= 1;
    if (depth > MAX_JSON_DEPTH) return true;
  }
  return false;
}

const linesIn = (part: Buffer): readonly string[] =>
  part
    .toString("utf8")
    .split("\n")
    .filter((line) => line !== "");
