import { Args, Flags } from "@oclif/core";
import { EXIT } from "../../core/errors.ts";
import type { AuditVerdict } from "../../core/session.ts";
import type { Report as ReportForm } from "../../render/report-form.ts";
import { REPORT_MARK, reportPage } from "../../render/html-page.ts";
import { auditVerdict, NOT_PROVEN, reportText } from "../../render/report-text.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { sessionReport, writeReport } from "../../app/sessions/report-file.ts";
import { namedSession, withSessions } from "../../app/sessions/session-access.ts";
import { bundleFlag, refuseIdOfBundle, settingFlags, workspaceOf } from "../settings.ts";
import { stderr, stdout } from "../../render/tty/output.ts";

export class Report extends HarnessCommand {
  static override summary = "Report what a session asked, decided, ran, refused, changed and spent.";
  static override description =
    "Without ID, reports on the last session of this folder. Recognisable secrets are masked. --html writes one file that needs no network and runs no script; an existing file is replaced only if it is a report, and - is stdout. --verify checks only the audit: if a line is not as it was written, it names the first such line and ends with 1. --bundle reports on a session in a file from `harness sessions export --bundle` or in an object of a bucket (s3://BUCKET/KEY), on any machine. It reports what the file holds, and says what it does not hold.";
  static override args = {
    id: Args.string({ description: "session ID, as shown by `harness sessions list`", ignoreStdin: true }),
  };
  static override flags = {
    html: Flags.string({ description: "write the report as an HTML page", helpValue: "FILE" }),
    verify: Flags.boolean({ description: "only check the chain of the audit", exclusive: ["html"] }),
    bundle: { ...bundleFlag, exclusive: ["cwd"] },
    cwd: settingFlags.cwd,
  };
  static override examples = [
    "harness report",
    "harness report --html report.html",
    "harness report 1ng41dkw23pc --verify",
    "harness report --bundle session.tar --html report.html",
    "harness report --json | jq '.runs[].refusals'",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Report);
    if (flags.bundle !== undefined) return this.#ofBundle(flags.bundle, args.id, flags);
    await withSessions(this.host, async (store) => {
      const session = await namedSession(store, args.id, workspaceOf(flags));
      if (flags.verify) verified(session.id, session.audit.verify(), flags.json);
      else await this.#tell(sessionReport(session), flags);
    });
  }

  async #ofBundle(file: string, id: string | undefined, flags: ReportFlags): Promise<void> {
    refuseIdOfBundle(id, "report");
    const { auditOfBundle, infoOfBundle, readBundle, shownBundle } =
      await import("../../app/sessions/read-bundle.ts");
    const read = await readBundle(this.host, file);
    if (flags.verify) return verified(infoOfBundle(read).id, auditOfBundle(read), flags.json);
    const { report } = shownBundle(read);
    await this.#tell(report, flags);
    if (report.audit?.ok === false) process.exitCode = EXIT.failed;
  }

  async #tell(report: ReportForm, { html, json, quiet }: ReportFlags): Promise<void> {
    if (html === "-") answer(reportPage(report));
    else if (html !== undefined) await writeReport(html, reportPage(report), REPORT_MARK);
    if (json) answerJson(report);
    else if (html === undefined) answer(reportText(report, stdout));
    else if (html !== "-" && !quiet) stderr.write(`written: ${html}\n`);
  }
}

interface ReportFlags {
  readonly html?: string | undefined;
  readonly verify: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
}

function verified(session: string, verdict: AuditVerdict, json: boolean): void {
  if (json) answerJson({ session, ...verdict, not_proven: NOT_PROVEN });
  else answer(auditVerdict(verdict, stdout));
  if (!verdict.ok) process.exitCode = EXIT.failed;
}
