import { open, readFile, rm } from "node:fs/promises";
import * as z from "zod";
import type { Settings } from "../../config/settings-schema.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { type AgentEvent, eventForm } from "../../core/events.ts";
import { maskSecrets } from "../../core/text/secrets.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { inertJson } from "../../core/text/visible.ts";
import { ollamaAddress } from "../../models/providers/ollama-address.ts";
import { fullName, ollamaListing } from "../../models/providers/ollama-server.ts";
import { readRegular, TooLargeError } from "../../platform/safe-files.ts";
import { reportOf, type Timed } from "../../render/build-report.ts";
import { cleaned } from "../../render/event-json.ts";
import type { Report } from "../../render/report-form.ts";
import { patchOf } from "../../render/tty/file-diffs.ts";
import { sha256 } from "../../sessions/audit-chain.ts";
import {
  type BundleManifest,
  bundleOf,
  MAX_BUNDLE_BYTES,
  momentForm,
  openBundle,
  type OpenedBundle,
  type Parts,
} from "../../sessions/session-bundle.ts";
import { diffOfSession } from "./checkpoint-access.ts";
import type { Host } from "../host.ts";

export interface Exported {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** Writes a session into a file that is not there yet, with what looks like a secret masked in every part. */
export async function exportBundle(
  host: Host,
  store: SessionStore,
  {
    session,
    file,
    say,
  }: { readonly session: Session; readonly file: string; readonly say: (text: string) => void },
): Promise<Exported> {
  const info = session.info();
  const audit = await auditOf(session);
  const { settings, versions } = lastRunIn(audit);
  const parts: Parts = {
    "events.jsonl": jsonLines(session.timeline()),
    "records.jsonl": jsonLines(session.records()),
    "changes.patch": Buffer.from(maskSecrets(await patchFor(host, store, session, say))),
    "audit.jsonl": audit,
    "settings.json": Buffer.from(`${inertJson(cleaned(settings, maskSecrets))}\n`),
  };
  const digest = info.provider === "ollama" ? await digestOf(host, info.model, settings) : null;
  const model = { provider: info.provider, name: info.model, digest };
  const about = {
    session: cleaned(info, maskSecrets),
    harness: versions["harness"] ?? null,
    policy: versions["policy"] ?? null,
    model,
  };
  const bytes = bundleOf(about, parts);
  await writeNew(file, bytes, info.id);
  return { file, bytes: bytes.length, sha256: sha256(bytes) };
}

function jsonLines(values: Iterable<unknown>): Buffer {
  const lines: Buffer[] = [];
  for (const value of values) lines.push(Buffer.from(`${inertJson(cleaned(value, maskSecrets))}\n`));
  return Buffer.concat(lines);
}

/** The file as it is, whatever is to be said of it. */
async function auditOf(session: Session): Promise<Buffer> {
  try {
    return await readFile(session.audit.verify().file);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return Buffer.alloc(0);
    throw thrown;
  }
}

const startForm = z.looseObject({
  kind: z.literal("run.started"),
  settings: z.record(z.string(), z.unknown()),
  versions: z.record(z.string(), z.string()),
});

/** Settings and versions of the last run that began. */
function lastRunIn(audit: Buffer): Pick<z.infer<typeof startForm>, "settings" | "versions"> {
  const starts = audit
    .toString("utf8")
    .split("\n")
    .filter((line) => line.startsWith('{"kind":"run.started"'))
    .flatMap((line) => startForm.safeParse(valueIn(line)).data ?? []);
  return starts.at(-1) ?? { settings: {}, versions: {} };
}

function valueIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

async function patchFor(
  host: Host,
  store: SessionStore,
  session: Session,
  say: (text: string) => void,
): Promise<string> {
  const { diffOfLayer } = await import("./session-changes.ts");
  const { files } = (await diffOfLayer(host, store, session, say)) ?? (await diffOfSession(host, session, 0));
  return patchOf(files);
}

const DIGEST_MS = 3000;
const addressForm = z.object({ value: z.string().nullable() });

/** As the server has the model now; null where it does not answer at once, or has it no longer. */
async function digestOf(
  { env }: Host,
  model: string,
  settings: Readonly<Record<string, unknown>>,
): Promise<string | null> {
  const base: Settings["base_url"] = addressForm.safeParse(settings["base_url"]).data?.value ?? null;
  const signal = AbortSignal.timeout(DIGEST_MS);
  const listing = await ollamaListing({
    baseUrl: ollamaAddress(env, base),
    signal,
    timeoutMs: DIGEST_MS,
  }).catch(() => undefined);
  if (listing?.kind !== "listed") return null;
  return listing.models.find(({ name }) => fullName(name) === fullName(model))?.digest ?? null;
}

async function writeNew(file: string, bytes: Buffer, id: string): Promise<void> {
  try {
    await using handle = await open(file, "wx", 0o600);
    await handle.writeFile(bytes).catch(async (thrown: unknown) => {
      // A part of one is none, and would stand in the way of the next.
      await rm(file, { force: true });
      throw thrown;
    });
  } catch (thrown) {
    const is = errorCode(thrown) === "EEXIST";
    const what = is ? `${file} is there already` : `${file} cannot be written: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.usage, what, `harness sessions export ${id} --bundle NEW-FILE.tar`, thrown);
  }
}

export interface ShownBundle {
  readonly manifest: BundleManifest;
  readonly sha256: string;
  readonly report: Report;
}

export interface ReadBundle {
  readonly opened: OpenedBundle;
  readonly sha256: string;
}

/** A file that nobody vouches for: it is read as a whole, within bounds, and nothing is written. */
export async function readBundle(file: string): Promise<ReadBundle> {
  try {
    const bytes = await readRegular(file, { links: "follow", max: MAX_BUNDLE_BYTES });
    return { opened: openBundle(bytes, file), sha256: sha256(bytes) };
  } catch (thrown) {
    if (thrown instanceof HarnessError) throw thrown;
    const why =
      thrown instanceof TooLargeError
        ? `it is larger than ${MAX_BUNDLE_BYTES / 2 ** 20} MiB`
        : `it cannot be read: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.usage, `${file}: ${why}`, "harness sessions export ID --bundle FILE", thrown);
  }
}

/** The run as `report` tells it, of a session that is only in the file. */
export function shownBundle({ opened, sha256 }: ReadBundle, file: string): ShownBundle {
  const { manifest, parts, audit } = opened;
  const report = reportOf({
    session: manifest.session,
    timeline: timelineIn(parts["events.jsonl"], file),
    audit: { file: `${file}: audit.jsonl`, ...audit },
    diff: parts["changes.patch"].toString("utf8"),
  });
  return { manifest, sha256, report: cleaned(report, maskSecrets) };
}

/** What is recorded in it, in order. */
export const eventsOfBundle = ({ opened }: ReadBundle, file: string): readonly AgentEvent[] =>
  timelineIn(opened.parts["events.jsonl"], file).map(({ event }) => event);

const timedForm = z.strictObject({ at: momentForm, event: eventForm });

function timelineIn(part: Buffer, file: string): readonly Timed[] {
  return linesIn(part).map((line, at) => {
    const { data } = timedForm.safeParse(isDeep(line) ? undefined : valueIn(line));
    if (data !== undefined) return { at: data.at, event: data.event };
    throw new HarnessError(
      EXIT.usage,
      `${file}: line ${at + 1} of events.jsonl is no event that this version knows`,
      "harness --version   (open it with the version that wrote it)",
    );
  });
}

const DEEPEST = 1000;

/** What shows an event goes down into it as far as it is nested. */
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
