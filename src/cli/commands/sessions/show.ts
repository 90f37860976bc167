import { Args } from "@oclif/core";
import { costsIn } from "../../../render/report-form.ts";
import { sessionText } from "../../../render/lists/sessions-lines.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { withSessions } from "../../../app/sessions/session-access.ts";
import { stdout } from "../../../render/tty/output.ts";

export class SessionsShow extends HarnessCommand {
  static override summary = "Show a session: what it was about, and what was said.";
  static override description =
    "An id may be shortened to any beginning that fits one session. Long results of tools are cut; export has all of them. With --json, one object with all its records.";
  static override args = {
    id: Args.string({
      description: "a session, as `harness sessions list` shows it",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override examples = ["harness sessions show 1ng41dkw23pc", "harness sessions show 1ng41 --json"];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SessionsShow);
    const { info, records, costs } = await withSessions(this.host, (store) => {
      const session = store.open(args.id);
      return { info: session.info(), records: session.records(), costs: costsIn(session.events()) };
    });
    if (flags.json) answerJson({ ...info, costs, records });
    else answer(sessionText(info, { records, costs }, Date.now(), stdout));
  }
}
