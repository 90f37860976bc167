import { Args, Flags } from "@oclif/core";
import { undonePaths, undoText } from "../../render/change-lines.ts";
import { EXIT } from "../../core/errors.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { noteTo } from "../../app/stderr-messages.ts";
import { withSessions, namedSession } from "../../app/sessions/session-access.ts";
import { settingFlags, workspaceOf } from "../settings.ts";
import { stdout } from "../../render/tty/output.ts";

export class Undo extends HarnessCommand {
  static override summary = "Undo what a session's runs changed in the workspace.";
  static override description =
    "Without ID, undoes the last session of this folder. Only the changes of the runs are undone: if you have changed the same file since then, your lines stay. If both changed the same lines, the file is named, nothing at all is done, and the exit code is 1; --skip does the rest anyway. The state before the undo is kept, and --redo brings it back. Commits and everything else in `.git` are not undone. Nothing is done while a run works in the folder.";
  static override args = {
    id: Args.string({ description: "session ID, as shown by `harness sessions list`", ignoreStdin: true }),
  };
  static override flags = {
    to: Flags.integer({
      description: "keep what was done up to this step (harness diff --steps)",
      helpValue: "STEP",
      min: 0,
      default: 0,
    }),
    redo: Flags.boolean({
      description: "take back the last undo instead",
      default: false,
      exclusive: ["to"],
    }),
    skip: Flags.boolean({ description: "leave what cannot be undone, and do the rest", default: false }),
    "dry-run": Flags.boolean({ description: "only show what would be done", default: false }),
    cwd: settingFlags.cwd,
    engine: settingFlags.engine,
  };
  static override examples = [
    "harness undo --dry-run",
    "harness undo",
    "harness undo --to 3",
    "harness undo --redo",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Undo);
    const { undoSession } = await import("../../app/sessions/session-changes.ts");
    const say = noteTo(flags.quiet);
    await withSessions(this.host, async (store) => {
      const session = await namedSession(store, args.id, workspaceOf(flags));
      const { to: target, redo, skip, "dry-run": dryRun } = flags;
      const undone = await undoSession(this.host, store, session, { target, redo, skip, dryRun, say });
      const { refused, left, done, notes } = undone;
      for (const text of notes) say(text);
      const outcome = { paths: undonePaths(undone), refused, left, done };
      if (flags.json)
        answerJson({ session: session.id, to: redo ? null : target, redo, dry_run: dryRun, ...outcome });
      else answer(undoText({ ...undone, target, redo, dryRun, session: session.id }, stdout));
      if (refused.length > 0) process.exitCode = EXIT.failed;
    });
  }
}
