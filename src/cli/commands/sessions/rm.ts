import { Args } from "@oclif/core";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { noteTo } from "../../../app/stderr-messages.ts";
import { recordLostSession, withSessions } from "../../../app/sessions/session-access.ts";
import { settingFlags } from "../../settings.ts";

export class SessionsRm extends HarnessCommand {
  static override summary =
    "Remove sessions, with their audits, what only they keep (outputs, checkpoints), and their changes in layers and copies.";
  static override description =
    "You may shorten an ID to any beginning that fits only one session. If one of several sessions is not known or is in use, none is removed. You cannot undo this: first export what you may want, and apply what is not applied yet. With --json, prints one object per removed session.";
  static override usage = "sessions rm ID...";
  static override strict = false;
  static override args = {
    id: Args.string({ description: "session ID, as shown by `harness sessions list`", ignoreStdin: true }),
  };
  static override flags = { engine: settingFlags.engine };
  static override examples = ["harness sessions rm 1ng41dkw23pc", "harness sessions rm 1ng41 1nh02"];

  async run(): Promise<void> {
    const { flags, argv } = await this.parse(SessionsRm);
    if (argv.length === 0)
      throw new HarnessError(EXIT.usage, "no session was given", "harness sessions list");
    const { removeSessions } = await import("../../../app/sessions/session-changes.ts");
    await withSessions(this.host, async (store) => {
      for (const typed of argv) await recordLostSession(this.host, store, String(typed));
      const ids = new Set(argv.map((typed) => store.open(String(typed)).id));
      const removed = (id: string): void => {
        if (flags.json) answerJson({ id });
        else answer(id);
      };
      await removeSessions(this.host, store, [...ids], { removed, say: noteTo(flags.quiet) });
    });
  }
}
