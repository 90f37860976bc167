import * as z from "zod";
import { isBucketAddress } from "../../core/addresses.ts";
import { EXIT, HarnessError, reasonOf, STATUSES } from "../../core/errors.ts";
import { type AgentEvent, eventForm } from "../../core/events.ts";
import { MODES, VERDICTS } from "../../core/decision.ts";
import { type SessionInfo, type SessionRecord, WORDS } from "../../core/session.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { visibleLine } from "../../core/visible.ts";
import { maskSecrets } from "../../core/secrets.ts";
import { planStepForm } from "../../core/run-record.ts";
import { bytesOfName } from "../../platform/folder-tree.ts";
import { type Links, readRegular, TooLargeError } from "../../platform/safe-files.ts";
import { reportOf, type Timed } from "../../render/build-report.ts";
import { cleaned } from "../../render/event-json.ts";
import type { FromBundle, Report } from "../../render/report-form.ts";
import { sha256 } from "../../sessions/audit-file.ts";
import {
  type BundleManifest,
  MAX_BUNDLE_BYTES,
  momentForm,
  openBundle,
  type OpenedBundle,
  type Parts,
} from "../../sessions/session-bundle.ts";

import type { Host } from "../host.ts";

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
  const { bucketAt } = await import("./bundle-bucket.ts");
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
  return { manifest, sha256: hash, report: cleaned({ ...report, bundle }, maskSecrets) };
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

const DEEPEST = 1000;

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
    if (depth > DEEPEST) return true;
  }
  return false;
}

const linesIn = (part: Buffer): readonly string[] =>
  part
    .toString("utf8")
    .split("\n")
    .filter((line) => line !== "");
