import { access, constants } from "node:fs/promises";
import path from "node:path";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { maskSecrets } from "../../core/secrets.ts";
import type { Session } from "../../core/session.ts";
import { NotRegularError, readRegularHead, replaceFile } from "../../platform/safe-files.ts";
import { reportOf } from "../../render/build-report.ts";
import { cleanStrings } from "../../render/renderers.ts";
import type { Report } from "../../render/report-form.ts";

/** The report of a session; what is recognisable as a secret is masked. */
export function sessionReport(session: Session): Report {
  const parts = { session: session.info(), timeline: session.timeline(), audit: session.audit.verify() };
  return cleanStrings(reportOf({ ...parts, diff: null }), maskSecrets);
}

const TAKEN = "already exists and is not a report of harness; it was left unchanged";

/** The mark stands near the start. */
const HEAD_BYTES = 2048;

/** Writes a page to a name that is free, or that holds an earlier page of ours; whole or not at all. */
export async function writeReport(file: string, page: string, mark: string): Promise<void> {
  try {
    if (!(await isFree(file, mark))) throw refusal(file, TAKEN);
    // Readable by others if the user's umask allows, as for any program.
    await replaceFile(file, page, { mode: 0o666 & ~process.umask(), lasts: "never" });
  } catch (thrown) {
    throw thrown instanceof HarnessError ? thrown : refusal(file, `cannot be written: ${reasonOf(thrown)}`);
  }
}

/** Refuses an unusable name before the work that the page reports, so that the work is not lost. */
export async function requireReportPlace(file: string, mark: string): Promise<void> {
  try {
    await access(path.dirname(path.resolve(file)), constants.W_OK | constants.X_OK);
    if (await isFree(file, mark)) return;
  } catch (thrown) {
    throw refusal(file, `cannot be written: ${reasonOf(thrown)}`);
  }
  throw refusal(file, TAKEN);
}

async function isFree(file: string, mark: string): Promise<boolean> {
  try {
    const head = await readRegularHead(file, { links: "refuse", max: HEAD_BYTES });
    return head.includes(mark);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return true;
    // A link is the user's own.
    if (errorCode(thrown) === "ELOOP" || thrown instanceof NotRegularError) return false;
    throw thrown;
  }
}

const refusal = (file: string, why: string): HarnessError =>
  new HarnessError(EXIT.usage, `${file}: ${why}`, "use another name: --html another-name.html");
