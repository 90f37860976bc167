import path from "node:path";
import { Args, Flags } from "@oclif/core";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { visibleLine } from "../../../core/visible.ts";
import { copiedStateText, savedStateTable } from "../../../render/sessions-lines.ts";
import { stderr, stdout } from "../../../render/tty/output.ts";
import {
  copyState,
  savedStatesOf,
  sessionsWithLayers,
  sessionsWorkspace,
} from "../../../app/sessions/session-access.ts";
import { noteTo } from "../../../app/stderr-messages.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags, workspaceOf } from "../../settings.ts";

const warn = (text: string): void => void stderr.write(`warning: ${visibleLine(text)}\n`);

export class SessionsCheckpoints extends HarnessCommand {
  static override summary = "List the saved states of this folder, or copy one into a new folder.";
  static override description =
    "Runs that work on the folder itself save its state before and after each call that may write. This command reads these states without the session database, so it also works if that database was lost or damaged. Without STATE, it lists the states of the folder (--cwd or the current folder, which need not exist any more), newest first, with what changed since the state before. With STATE and --out, it writes the files of that state into DIR, which must be new or empty, and changes nothing else. `.git` and `.harness` are in no state. Sessions whose changes lie in a layer or a copy are named, so that `harness diff` and `harness apply` can be given their ID. Files whose content is not there are named, and the command ends with 1 (docs/undo.md).";
  static override usage = "sessions checkpoints [STATE --out DIR] [--all]";
  static override args = {
    state: Args.string({ description: "saved state, as this command lists it", ignoreStdin: true }),
  };
  static override flags = {
    out: Flags.string({ description: "write the state into this new folder", helpValue: "DIR" }),
    all: Flags.boolean({ description: "list the states of all folders" }),
    cwd: settingFlags.cwd,
  };
  static override examples = [
    "harness sessions checkpoints",
    "harness sessions checkpoints --all --json",
    "harness sessions checkpoints 1ng41dkw23pc.1796063135131 --out ../recovered",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SessionsCheckpoints);
    if ((args.state === undefined) !== (flags.out === undefined))
      throw new HarnessError(
        EXIT.usage,
        "a copy needs both a saved state and --out",
        "harness sessions checkpoints STATE --out DIR",
      );
    if (args.state !== undefined) {
      const copied = await copyState(this.host, args.state, path.resolve(flags.out ?? ""));
      if (flags.json) answerJson(copied);
      else answer(copiedStateText(copied));
      if (copied.left.length > 0) process.exitCode = EXIT.failed;
      return;
    }
    const say = noteTo(flags.quiet);
    const workspace = flags.all ? undefined : await sessionsWorkspace(workspaceOf(flags));
    const found = await savedStatesOf(this.host, { workspace, warn });
    for (const { session } of await sessionsWithLayers(this.host, workspace))
      say(`${session} has changes outside the folder: harness diff ${session} shows them`);
    if (flags.json) for (const each of found) answerJson(each);
    else if (found.length > 0) answer(savedStateTable(found, { now: Date.now(), all: flags.all }, stdout));
    else
      say(
        flags.all
          ? "no state was saved"
          : "no state of this folder was saved; --all lists those of all folders",
      );
  }
}
