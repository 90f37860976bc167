import { Args } from "@oclif/core";
import { answerEach, HarnessCommand } from "../../command.ts";
import { withSessions } from "../../../app/session-access.ts";

export class SessionsExport extends HarnessCommand {
  static override summary = "Write all records of a session, as JSON lines.";
  static override description =
    "Each line is a record, in the order they were made: messages, what was rolled back or cleared, what was shown shorter to the model, files as the model knew them, the shell's state, and how each turn ended.";
  static override args = {
    id: Args.string({ description: "a session, as `harness sessions list` shows it", required: true }),
  };
  static override examples = ["harness sessions export 1ng41dkw23pc > session.jsonl"];

  async run(): Promise<void> {
    const { args } = await this.parse(SessionsExport);
    const records = await withSessions(this.host, (store) => store.open(args.id).records());
    await answerEach(each(records));
  }
}

async function* each<T>(values: readonly T[]): AsyncGenerator<T> {
  yield* values;
}
