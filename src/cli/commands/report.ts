import { Args, Flags } from "@oclif/core";
import { EXIT } from "../../core/errors.ts";
import type { Session } from "../../core/session.ts";
import { REPORT_MARK, reportPage } from "../../render/html-page.ts";
import { auditVerdict, NOT_PROVEN, reportText } from "../../render/lists/report-text.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { sessionReport, writeReport } from "../../app/sessions/report-file.ts";
import { sessionGiven, withSessions } from "../../app/sessions/session-access.ts";
import { settingFlags, workspaceOf } from "../settings.ts";
import { stderr, stdout } from "../../render/tty/output.ts";

export class Report extends HarnessCommand {
  static override summary = "Tell what a session did: asked, decided, run, refused, changed, spent.";
  static override description =
    "Without ID, the last session of this folder. What is recognisable as a secret is masked. --html writes one file that needs no network and runs no script; a file that is there is only replaced when it is a report, and - is stdout. --verify looks at nothing but the audit: it ends with 1 and names the first line that is not as it was written.";
  static override args = {
    id: Args.string({ description: "a session, as `harness sessions list` shows it", ignoreStdin: true }),
  };
  static override flags = {
    html: Flags.string({ description: "write it as a page", helpValue: "FILE" }),
    verify: Flags.boolean({ description: "check the audit's chain", exclusive: ["html"] }),
    cwd: settingFlags.cwd,
  };
  static override examples = [
    "harness report",
    "harness report --html report.html",
    "harness report 1ng41dkw23pc --verify",
    "harness report --json | jq '.runs[].refusals'",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Report);
    await withSessions(this.host, async (store) => {
      const session = await sessionGiven(store, args.id, workspaceOf(flags));
      if (flags.verify) return verify(session, flags.json);
      const report = sessionReport(session);
      if (flags.html === "-") answer(reportPage(report));
      else if (flags.html !== undefined) await writeReport(flags.html, reportPage(report), REPORT_MARK);
      if (flags.json) answerJson(report);
      else if (flags.html === undefined) answer(reportText(report, stdout));
      else if (flags.html !== "-" && !flags.quiet) stderr.write(`written: ${flags.html}\n`);
    });
  }
}

function verify(session: Session, json: boolean): void {
  const verdict = session.audit.verify();
  if (json) answerJson({ session: session.id, ...verdict, not_proven: NOT_PROVEN });
  else answer(auditVerdict(verdict, stdout));
  if (!verdict.ok) process.exitCode = EXIT.failed;
}
