import * as z from "zod";
import type { AuditVerdict, SessionInfo } from "../core/session.ts";
import { MODES } from "../core/decision.ts";
import { EXIT, HarnessError, STATUSES } from "../core/errors.ts";
import { parsedJson } from "../core/raw-data.ts";
import { TAR_BLOCK, tarEnd, tarPadding, withChecksum } from "../core/tar-archive.ts";
import { hashIn, type Head, linesOf, NONE, sha256, verified } from "./audit-file.ts";

/**
 * A session as one file: a tar of plain parts in a fixed order, first the manifest with the hash of each part, last its
 * own hash. Nothing in it depends on when or where it was made, so the same session gives the same bytes. Reading
 * happens in memory and writes nothing: an archive that differs by one byte from what would be written here is refused.
 */

const FORMAT = "harness-bundle";
const BUNDLE_VERSION = 1;

/** In this order. */
const PARTS = ["events.jsonl", "records.jsonl", "changes.patch", "audit.jsonl", "settings.json"] as const;
type PartName = (typeof PARTS)[number];
const MANIFEST = "manifest.json";
const SEAL = "manifest.sha256";

export const MAX_BUNDLE_BYTES = 256 * 2 ** 20;
/** The manifest holds a few names and texts; a list of many bundles keeps those of each. */
const MAX_MANIFEST_BYTES = 2 ** 20;

/** Whether a file with this beginning is a bundle, or was meant to be one. */
export const beginsAsBundle = (head: Buffer): boolean => nameIn(head) === MANIFEST;

export type Parts = Readonly<Record<PartName, Buffer>>;

const hashForm = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.number().int().nonnegative();
/** Milliseconds since 1970 within the range of a date. */
export const momentForm = z.number().nonnegative().max(8.64e15);

const manifestForm = z.strictObject({
  format: z.literal(FORMAT),
  version: z.literal(BUNDLE_VERSION),
  /** From the session's last run, if it recorded them: older runs name no policy. */
  harness: z.string().nullable(),
  policy: z.string().nullable(),
  model: z.strictObject({ provider: z.string(), name: z.string(), digest: z.string().nullable() }),
  session: z.strictObject({
    id: z.string(),
    workspace: z.string(),
    mode: z.enum(MODES),
    provider: z.string(),
    model: z.string(),
    title: z.string(),
    started: momentForm,
    changed: momentForm,
    messages: count,
    status: z.enum(STATUSES).nullable(),
  }),
  audit: z.strictObject({ lines: count, head: z.string() }),
  parts: z.array(z.strictObject({ name: z.string(), bytes: count, sha256: hashForm })),
});

export type BundleManifest = z.infer<typeof manifestForm>;

export interface BundleAbout extends Pick<BundleManifest, "harness" | "policy" | "model"> {
  readonly session: SessionInfo;
}

export function bundleOf(about: BundleAbout, parts: Parts): Buffer {
  const { session, harness, policy, model } = about;
  const { id, workspace, mode, provider, title, started, changed, messages, status } = session;
  const { lines, hash } = headIn(parts["audit.jsonl"]);
  const manifest: BundleManifest = {
    format: FORMAT,
    version: BUNDLE_VERSION,
    harness,
    policy,
    model,
    session: {
      id,
      workspace,
      mode,
      provider,
      model: session.model,
      title,
      started,
      changed,
      messages,
      status,
    },
    audit: { lines, head: hash },
    parts: PARTS.map((name) => ({ name, bytes: parts[name].length, sha256: sha256(parts[name]) })),
  };
  const manifestBytes = Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`);
  const archive = archived([
    [MANIFEST, manifestBytes],
    ...PARTS.map((name) => [name, parts[name]] as const),
    [SEAL, Buffer.from(`${sha256(manifestBytes)}\n`)],
  ]);
  if (archive.length > MAX_BUNDLE_BYTES)
    throw new HarnessError(
      EXIT.failed,
      `the session ${id} does not fit in a bundle: it would be larger than ${MAX_BUNDLE_BYTES / 2 ** 20} MiB`,
      `harness sessions export ${id} > session.jsonl`,
    );
  return archive;
}

/** The last whole line: the head that the database would know for this file. */
function headIn(audit: Buffer): Head {
  const { lines } = linesOf(audit);
  const at = lines.findLastIndex((line) => hashIn(line) !== undefined);
  const last = lines[at];
  return { lines: at + 1, bytes: audit.length, hash: (last && hashIn(last)) ?? NONE };
}

export interface OpenedBundle {
  readonly manifest: BundleManifest;
  readonly parts: Parts;
  /** The check of the audit chain alone. Every part matches its hash, or the bundle is not opened. */
  readonly audit: Omit<AuditVerdict, "file">;
}

/**
 * The content of a file whose every byte is as written. Exit 1 names what is not; exit 2 means that it is not a bundle.
 */
export function openBundle(bytes: Buffer, file: string): OpenedBundle {
  const members = new Reader(bytes, file).members();
  const manifestBytes = members.get(MANIFEST) ?? refuseBundle(file, `its first member is not ${MANIFEST}`);
  const manifest = manifestIn(manifestBytes, members.get(SEAL), file);
  const parts = Object.fromEntries(
    PARTS.map((name) => [name, partOf(name, members, manifest, file)]),
  ) as Parts;
  const { lines, head } = manifest.audit;
  const bytesOf = parts["audit.jsonl"].length;
  return {
    manifest,
    parts,
    audit: verified(parts["audit.jsonl"], manifest.session.id, { lines, hash: head, bytes: bytesOf }),
  };
}

function manifestIn(manifestBytes: Buffer, seal: Buffer | undefined, file: string): BundleManifest {
  if (manifestBytes.length > MAX_MANIFEST_BYTES)
    refuseBundle(file, `its ${MANIFEST} is larger than ${MAX_MANIFEST_BYTES / 2 ** 20} MiB`);
  const value = parsedJson(manifestBytes.toString("utf8"));
  const formatRead = z.looseObject({ format: z.literal(FORMAT), version: z.number() }).safeParse(value);
  if (formatRead.success && formatRead.data.version !== BUNDLE_VERSION)
    throw new HarnessError(
      EXIT.usage,
      `${file} is a bundle of version ${formatRead.data.version}; this harness reads version ${BUNDLE_VERSION}`,
      "harness --version   (open it with the version that wrote it)",
    );
  if (seal?.toString("latin1") !== `${sha256(manifestBytes)}\n`) throw changedError(file, MANIFEST);
  const { data } = manifestForm.safeParse(value);
  return data ?? refuseBundle(file, `its ${MANIFEST} does not have the expected form`);
}

function partOf(
  name: PartName,
  members: ReadonlyMap<string, Buffer>,
  { parts }: BundleManifest,
  file: string,
): Buffer {
  const content = members.get(name) ?? refuseBundle(file, `it has no ${name}`);
  const listed = parts.find((part) => part.name === name);
  if (listed?.sha256 !== sha256(content) || listed.bytes !== content.length) throw changedError(file, name);
  return content;
}

const changedError = (file: string, part: string): HarnessError =>
  new HarnessError(
    EXIT.failed,
    `${file}: its part ${part} was changed after it was written`,
    "get the file again, and compare its sha256 with the one that the export printed",
  );

function refuseBundle(file: string, why: string): never {
  throw new HarnessError(
    EXIT.usage,
    `${file} is not a session bundle: ${why}`,
    "harness sessions export ID --bundle FILE",
  );
}

const ORDER: readonly string[] = [MANIFEST, ...PARTS, SEAL];

function archived(members: readonly (readonly [string, Buffer])[]): Buffer {
  const pieces = members.flatMap(([name, content]) => [
    headerOf(name, content.length),
    content,
    tarPadding(content.length),
  ]);
  return Buffer.concat([...pieces, tarEnd()]);
}

/** The only accepted form of a header: a plain file without owner and time. */
function headerOf(name: string, size: number): Buffer {
  const header = Buffer.alloc(TAR_BLOCK);
  header.write(name, 0, 100, "latin1");
  header.write("0000644\0", 100, "latin1");
  header.write("0000000\0".repeat(2), 108, "latin1");
  header.write(`${size.toString(8).padStart(11, "0")}\0`, 124, "latin1");
  header.write(`${"0".repeat(11)}\0`, 136, "latin1");
  header.write("0", 156, "latin1");
  header.write("ustar\u000000", 257, "latin1");
  return withChecksum(header);
}

/** Trusts nothing: each member has to be the next one expected, in the exact form that is written. */
class Reader {
  readonly #bytes: Buffer;
  readonly #file: string;
  #at = 0;

  constructor(bytes: Buffer, file: string) {
    this.#bytes = bytes;
    this.#file = file;
  }

  members(): ReadonlyMap<string, Buffer> {
    const found = new Map<string, Buffer>();
    for (const name of ORDER) {
      const content = this.#member(name, found);
      found.set(name, content);
    }
    const rest = this.#bytes.subarray(this.#at);
    if (!rest.equals(tarEnd())) {
      const next = nameIn(rest);
      refuseBundle(this.#file, next === "" ? "its end is not that of a bundle" : this.#about(next, found));
    }
    return found;
  }

  #member(wanted: string, found: ReadonlyMap<string, Buffer>): Buffer {
    const header = this.#take(TAR_BLOCK, wanted);
    const name = nameIn(header);
    if (name !== wanted) refuseBundle(this.#file, this.#about(name, found));
    const size = Number.parseInt(header.toString("latin1", 124, 135), 8);
    if (!(size >= 0) || !header.equals(headerOf(wanted, size)))
      refuseBundle(this.#file, `${wanted} is not a plain file in it, or its header was changed`);
    const content = this.#take(size, wanted);
    if (this.#take(tarPadding(size).length, wanted).some((byte) => byte !== 0))
      refuseBundle(this.#file, `${wanted} is followed by data that does not belong there`);
    return content;
  }

  #about(name: string, found: ReadonlyMap<string, Buffer>): string {
    const shown = JSON.stringify(name.slice(0, 80));
    if (name === "") return "a part is missing";
    if (found.has(name)) return `it contains ${shown} twice`;
    return ORDER.includes(name)
      ? `${shown} is out of order`
      : `it contains ${shown}, which does not belong in a bundle`;
  }

  #take(length: number, of: string): Buffer {
    if (length > this.#bytes.length - this.#at) refuseBundle(this.#file, `it ends in the middle of ${of}`);
    const taken = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return taken;
  }
}

function nameIn(header: Buffer): string {
  const field = header.subarray(0, 100);
  const end = field.indexOf(0);
  return field.toString("latin1", 0, end === -1 ? field.length : end);
}
