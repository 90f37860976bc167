import { Args, Flags } from "@oclif/core";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { appliedPaths, appliedText } from "../../render/change-lines.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { noteTo } from "../../app/stderr-messages.ts";
import { namedSession, recordLostSession, withSessions } from "../../app/sessions/session-access.ts";
import { settingFlags, workspaceOf } from "../settings.ts";
import { isTerminal, prompter } from "../terminal.ts";
import { stdout } from "../../render/tty/output.ts";

export class Apply extends HarnessCommand {
  static override summary = "Move a session's changes from its layer or copy into the folder itself.";
  static override description =
    "For sessions with --isolation overlay or copy. Without ID, applies the last session of this folder. Each file is replaced atomically. If you have changed the same file since the session began, both changes are merged. If both changed the same lines, the file is named, yours stays, and the exit code is 1. Paths that the host would run or obey by itself (hooks, editor and agent settings, links out of the folder) each need a yes, with --accept or on a terminal; without it nothing is moved, and the exit code is 4. `harness undo` takes back what was applied.";
  static override args = {
    id: Args.string({ description: "session ID, as shown by `harness sessions list`", ignoreStdin: true }),
  };
  static override flags = {
    only: Flags.string({
      description: "move only this path, or what is in this folder",
      helpValue: "PATH",
      multiple: true,
    }),
    accept: Flags.string({
      description: "say yes to a dangerous path; `dangerous` says yes to all of them",
      helpValue: "PATH",
      multiple: true,
    }),
    interactive: Flags.boolean({ char: "i", description: "ask about each part, on a terminal" }),
    "dry-run": Flags.boolean({ description: "only show what would be done" }),
    cwd: settingFlags.cwd,
    engine: settingFlags.engine,
  };
  static override examples = [
    "harness apply --dry-run",
    "harness apply",
    "harness apply --only src --only README.md",
    "harness apply --accept .vscode/tasks.json",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Apply);
    const { only, accept = [], interactive, "dry-run": dryRun } = flags;
    if (interactive && !isTerminal())
      throw new HarnessError(EXIT.usage, "--interactive needs a terminal", "harness apply --only PATH");
    const { applySession, belowWorkspace } = await import("../../app/sessions/apply-changes.ts");
    await withSessions(this.host, async (store) => {
      await recordLostSession(this.host, store, args.id);
      const session = await namedSession(store, args.id, workspaceOf(flags));
      const { workspace } = session.info();
      const options = {
        ...(only === undefined ? {} : { only: only.map((typed) => belowWorkspace(typed, workspace)) }),
        accept,
        dryRun,
        interactive,
        prompter: prompter(),
        say: noteTo(flags.quiet),
      };
      const outcome = await applySession(this.host, store, session, options);
      const { handoff, blocked, refused, left, done, whole } = outcome;
      if (flags.json)
        answerJson({
          session: session.id,
          dry_run: dryRun,
          paths: appliedPaths(outcome),
          refused,
          left,
          handoff,
          blocked,
          done,
          whole,
        });
      else answer(appliedText(outcome, stdout));
      if (blocked.length > 0) process.exitCode = EXIT.refused;
      else if (refused.length > 0) process.exitCode = EXIT.failed;
    });
  }
}
