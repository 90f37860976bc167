import { Args } from "@oclif/core";
import type { Host } from "../../../app/host.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import type { SessionInfo, SessionRecord } from "../../../core/session.ts";
import { costsIn, type RunCost } from "../../../render/report-form.ts";
import { sessionText } from "../../../render/sessions-lines.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { withSessions } from "../../../app/sessions/session-access.ts";
import { bundleFlag, refuseIdOfBundle } from "../../settings.ts";
import { stdout } from "../../../render/tty/output.ts";

export class SessionsShow extends HarnessCommand {
  static override summary = "Show a session: what it was about and what was said.";
  static override description =
    "You may shorten an ID to any beginning that fits only one session. Long tool results are cut; `harness sessions export` has all of them. With --json, prints one object with all records. --bundle shows the session in a file from `harness sessions export --bundle` or in an object of a bucket (s3://BUCKET/KEY).";
  static override args = {
    id: Args.string({
      description: "session ID, as shown by `harness sessions list`",
      ignoreStdin: true,
    }),
  };
  static override flags = { bundle: bundleFlag };
  static override examples = [
    "harness sessions show 1ng41dkw23pc",
    "harness sessions show 1ng41 --json",
    "harness sessions show --bundle session.tar",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SessionsShow);
    const { info, records, costs } = await (flags.bundle === undefined
      ? this.#kept(args.id)
      : sessionOfBundle(this.host, flags.bundle, args.id));
    if (flags.json) answerJson({ ...info, costs, records });
    else answer(sessionText(info, { records, costs }, Date.now(), stdout));
  }

  #kept(id: string | undefined): Promise<ShownSession> {
    if (id === undefined)
      throw new HarnessError(EXIT.usage, "no session was given", "harness sessions list, or --bundle FILE");
    return withSessions(this.host, (store) => {
      const session = store.open(id);
      return { info: session.info(), records: session.records(), costs: costsIn(session.events()) };
    });
  }
}

interface ShownSession {
  readonly info: SessionInfo & { readonly bundle?: string };
  readonly records: readonly SessionRecord[];
  readonly costs: readonly RunCost[];
}

async function sessionOfBundle(host: Host, file: string, id: string | undefined): Promise<ShownSession> {
  refuseIdOfBundle(id, "sessions show");
  const { eventsOfBundle, infoOfBundle, readBundle, recordsOfBundle } =
    await import("../../../app/sessions/read-bundle.ts");
  const read = await readBundle(host, file);
  return {
    info: { ...infoOfBundle(read), bundle: file },
    records: recordsOfBundle(read),
    costs: costsIn(eventsOfBundle(read)),
  };
}
