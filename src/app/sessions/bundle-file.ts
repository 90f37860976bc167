import { readFile } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import type { Settings } from "../../config/settings-schema.ts";
import { diskTroubleOf, errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { maskSecrets } from "../../core/secrets.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { inertJson } from "../../core/visible.ts";
import { ollamaAddress } from "../../models/providers/ollama-client.ts";
import { fullName, ollamaListing } from "../../models/providers/ollama-server.ts";
import { cleanStrings } from "../../render/renderers.ts";
import { newFile } from "../../platform/safe-files.ts";
import { pipedPatch } from "../../render/change-lines.ts";
import { sha256 } from "../../sessions/audit-file.ts";
import { bundleOf, type Parts } from "../../sessions/session-bundle.ts";
import { lastRunIn } from "./last-run.ts";
import { diffOfSession } from "./checkpoint-access.ts";
import type { Host } from "../host.ts";

export interface ExportedBundle {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

interface Exporting {
  readonly session: Session;
  readonly file: string;
  readonly say: (text: string) => void;
}

/** Writes a session into a new file. */
export async function exportBundle(
  host: Host,
  store: SessionStore,
  { session, file, say }: Exporting,
): Promise<ExportedBundle> {
  const bytes = await bundleBytes(host, store, session, say);
  await writeNew(file, bytes, session.id);
  return { file, bytes: bytes.length, sha256: sha256(bytes) };
}

/** A session as a bundle, with what looks like a secret masked in every part. */
export async function bundleBytes(
  host: Host,
  store: SessionStore,
  session: Session,
  say: (text: string) => void,
): Promise<Buffer> {
  const info = session.info();
  const audit = await auditOf(session);
  const { settings, versions } = lastRunIn(audit);
  const parts: Parts = {
    "events.jsonl": jsonLines(session.timeline()),
    "records.jsonl": jsonLines(session.records()),
    "changes.patch": Buffer.from(maskSecrets(await patchFor(host, store, session, say))),
    "audit.jsonl": audit,
    "settings.json": Buffer.from(`${inertJson(cleanStrings(settings, maskSecrets))}\n`),
  };
  const digest = info.provider === "ollama" ? await digestOf(host, info.model, settings) : null;
  const model = { provider: info.provider, name: info.model, digest };
  const about = {
    session: cleanStrings(info, maskSecrets),
    harness: versions["harness"] ?? null,
    policy: versions["policy"] ?? null,
    model,
  };
  return bundleOf(about, parts);
}

function jsonLines(values: Iterable<unknown>): Buffer {
  const lines: Buffer[] = [];
  for (const value of values) lines.push(Buffer.from(`${inertJson(cleanStrings(value, maskSecrets))}\n`));
  return Buffer.concat(lines);
}

/** The audit file as it is, even if its verification fails. */
async function auditOf(session: Session): Promise<Buffer> {
  try {
    return await readFile(session.audit.verify().file);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return Buffer.alloc(0);
    throw thrown;
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
  return pipedPatch(files).text;
}

const DIGEST_MS = 3000;
const addressForm = z.object({ value: z.string().nullable() });

/** The model's current digest on the server; null if the server does not answer in time, or no longer has the model. */
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
    // A partly written bundle is useless, and would stand in the way of the next export.
    await newFile(file, bytes);
  } catch (thrown) {
    if (diskTroubleOf(thrown) === "full") {
      const message = `${file} cannot be written: the disk is full (${reasonOf(thrown)})`;
      throw new HarnessError(EXIT.failed, message, `df -h ${path.dirname(file)}`, thrown);
    }
    const is = errorCode(thrown) === "EEXIST";
    const what = is ? `${file} already exists` : `${file} cannot be written: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.usage, what, `harness sessions export ${id} --bundle NEW-FILE.tar`, thrown);
  }
}
