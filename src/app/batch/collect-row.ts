import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, open, rename, rm } from "node:fs/promises";
import path from "node:path";
import { replaceFile } from "../../platform/safe-files.ts";
import { reportPage } from "../../render/html-page.ts";
import { gitPatchOf } from "../../render/tty/file-diffs.ts";
import { diffOfSession } from "../sessions/checkpoint-access.ts";
import { bundleBytes } from "../sessions/bundle-file.ts";
import type { Host } from "../host.ts";
import { sessionReport } from "../sessions/report-file.ts";
import { withSessions } from "../sessions/session-access.ts";
import { diffOfLayer, removeLayer } from "../sessions/session-changes.ts";
import { outLost } from "./batch-folder.ts";

export interface Collecting {
  readonly host: Host;
  readonly session: string;
  readonly folder: string;
  /** What the files are called, without their extensions. */
  readonly name: string;
  /** The session's workspace goes away: its changes are only in the patch. */
  readonly passing: boolean;
  /** Also keep the whole session as a file. */
  readonly bundle: boolean;
}

/** Permissions as the umask allows, as for any file of the user's. */
const modeOf = (): number => 0o666 & ~process.umask();

/**
 * Writes the patch, the report and the audit of a row: each is whole or not there. Returns the paths whose change no
 * patch can hold. If the folder accepts no more, throws the error that ends the batch.
 */
export async function collectRow({
  host,
  session: id,
  folder,
  name,
  passing,
  bundle,
}: Collecting): Promise<readonly string[]> {
  return withSessions(host, async (store) => {
    const session = store.open(id);
    const waiting = await diffOfLayer(host, store, session, () => undefined);
    const { files } = waiting ?? (await diffOfSession(host, session, 0));
    const { text, left } = gitPatchOf(files);
    const page = reportPage(sessionReport(session));
    const at = path.join(folder, name);
    try {
      await replaceFile(`${at}.patch`, text, { mode: modeOf(), lasts: "content" });
      await replaceFile(`${at}.html`, page, { mode: modeOf(), lasts: "content" });
      await copyWhole(path.join(host.places.state, "audit", `${id}.jsonl`), `${at}.audit.jsonl`);
      if (bundle) {
        const bytes = await bundleBytes(host, store, session, () => undefined);
        await replaceFile(`${at}.bundle.tar`, bytes, { lasts: "content" });
      }
    } catch (thrown) {
      throw outLost(folder, thrown);
    }
    if (passing) await removeLayer(host, session);
    return left;
  });
}

/** An audit may be long, so it is not read into this process. */
async function copyWhole(from: string, to: string): Promise<void> {
  const aside = `${to}.${randomUUID()}`;
  try {
    await copyFile(from, aside, constants.COPYFILE_EXCL);
    await using handle = await open(aside, "r+");
    await handle.chmod(modeOf());
    await handle.sync();
    await rename(aside, to);
  } catch (thrown) {
    await rm(aside, { force: true }).catch(() => undefined);
    throw thrown;
  }
}
