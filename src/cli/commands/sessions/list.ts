import { Flags } from "@oclif/core";
import type { Host } from "../../../app/host.ts";
import type { BundleFilter } from "../../../app/sessions/read-bundle.ts";
import { EXIT } from "../../../core/errors.ts";
import { visibleLine } from "../../../core/visible.ts";
import { sessionTable } from "../../../render/sessions-lines.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { sessionsWorkspace, withSessions } from "../../../app/sessions/session-access.ts";
import { settingFlags, workspaceOf } from "../../settings.ts";
import { stderr, stdout } from "../../../render/tty/output.ts";

export class SessionsList extends HarnessCommand {
  static override summary = "List the sessions of this folder, most recently changed first.";
  static override description =
    "The folder is exactly --cwd or the current folder; sessions of folders inside it are not listed. --query searches titles and messages, including messages that were taken back, and ignores case. With --json, prints one object per line. --bundle lists what `harness sessions export --bundle` or a batch wrote: in a folder, every file that ends in .tar or starts like a bundle, three folders deep; in a bucket (s3://BUCKET/PREFIX), every object that ends in .tar. A bundle that cannot be read is named, and the command ends with 1.";
  static override flags = {
    all: Flags.boolean({ description: "list the sessions of all folders" }),
    query: Flags.string({ description: "list only sessions in which this was said", helpValue: "TEXT" }),
    limit: Flags.integer({ description: "maximum number of sessions", helpValue: "N", min: 1, default: 20 }),
    bundle: Flags.string({
      description: "list the sessions in this file, or in the files of this folder or bucket",
      helpValue: "PATH",
      exclusive: ["all", "cwd"],
    }),
    cwd: settingFlags.cwd,
  };
  static override examples = [
    "harness sessions list",
    "harness sessions list --all --query 'parse error'",
    "harness sessions list --json --limit 1",
    "harness sessions list --bundle results",
  ];

  async run(): Promise<void> {
    const { flags } = await this.parse(SessionsList);
    const { all, query, limit, bundle } = flags;
    if (bundle !== undefined) return ofBundles(this.host, bundle, flags);
    const workspace = all ? undefined : await sessionsWorkspace(workspaceOf(flags));
    const found = await withSessions(this.host, (store) =>
      store.list({
        limit,
        ...(workspace === undefined ? {} : { workspace }),
        ...(query === undefined ? {} : { query }),
      }),
    );
    if (flags.json) for (const info of found) answerJson(info);
    else if (found.length > 0) answer(sessionTable(found, { now: Date.now(), all }, stdout));
    else if (!flags.quiet)
      stderr.write(
        all ? "no session was found\n" : "no session in this folder; --all lists those of all folders\n",
      );
  }
}

async function ofBundles(
  host: Host,
  place: string,
  { query, limit, json, quiet }: Readonly<Record<"json" | "quiet", boolean>> & BundleFilter,
): Promise<void> {
  const { bundledSessions } = await import("../../../app/sessions/read-bundle.ts");
  const { sessions, faults } = await bundledSessions(host, place, { query, limit });
  if (json) for (const each of sessions) answerJson(each);
  else if (sessions.length > 0)
    answer(sessionTable(sessions, { now: Date.now(), all: true, bundles: true }, stdout));
  else if (!quiet) stderr.write("no session was found\n");
  for (const fault of faults) stderr.write(`warning: ${visibleLine(fault)}\n`);
  if (faults.length > 0) process.exitCode = EXIT.failed;
}
