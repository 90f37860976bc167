import { Args, Flags } from "@oclif/core";
import { attemptOf, withSessions } from "../../../app/sessions/session-access.ts";
import { noteTo } from "../../../app/stderr-messages.ts";
import { visible } from "../../../core/visible.ts";
import { answer, answerEach, answerJson, HarnessCommand } from "../../command.ts";
import { attemptFlag } from "../../settings.ts";

export class SessionsExport extends HarnessCommand {
  static override summary = "Write all records of a session as JSON lines, or the session as one file.";
  static override description =
    "Each line is a record, in the order in which the records were made: messages, what was rolled back or cleared, what was shortened for the model, files as the model knew them, the shell's state, and how each turn ended. --bundle writes one file (a tar) that `harness replay --bundle` opens anywhere: events, records, the changes as a patch, the audit and the settings, each with its hash. Recognisable secrets are masked, an existing file is not replaced, and the sha256 of the file is printed.";
  static override args = {
    id: Args.string({
      description: "session ID, as shown by `harness sessions list`",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override flags = {
    bundle: Flags.string({ description: "write everything to this new file", helpValue: "FILE" }),
    attempt: attemptFlag,
  };
  static override examples = [
    "harness sessions export 1ng41dkw23pc > session.jsonl",
    "harness sessions export 1ng41dkw23pc --bundle session.tar",
    "harness sessions export 1ng41dkw23pc --attempt 2 --bundle second.tar",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SessionsExport);
    const { bundle: file, attempt } = flags;
    if (file === undefined) {
      const records = await withSessions(this.host, (store) =>
        attemptOf(store, store.open(args.id), attempt).records(),
      );
      return answerEach(toAsync(records));
    }
    const { exportBundle } = await import("../../../app/sessions/bundle-file.ts");
    const say = noteTo(flags.quiet);
    const done = await withSessions(this.host, (store) =>
      exportBundle(this.host, store, { session: attemptOf(store, store.open(args.id), attempt), file, say }),
    );
    if (flags.json) answerJson(done);
    else answer(`${done.sha256}  ${visible(done.file)}`);
  }
}

async function* toAsync<T>(values: readonly T[]): AsyncGenerator<T> {
  yield* values;
}
