import { Args, Flags } from "@oclif/core";
import { untilInterrupted } from "../../app/interruption.ts";
import {
  changedVerdicts,
  type PastCommand,
  pastCommands,
  replayRun,
  type Rerun,
} from "../../app/run/replay-run.ts";
import { sessionGiven, withSessions } from "../../app/sessions/session-access.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { stdout } from "../../render/tty/output.ts";
import { bundleLines, changedVerdict, rerunLines } from "../../render/tty/replay-lines.ts";
import { reportText } from "../../render/tty/report-text.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { configFor, settingFlags, workspaceOf } from "../settings.ts";

export class Replay extends HarnessCommand {
  static override summary = "Run a session's commands again in a fresh box, and list what differs.";
  static override description =
    "Without ID, the last session of this folder. The commands of its shell are run in their order over the folder as it is now, in a layer (or with --isolation copy, a copy) that is thrown away; files that other tools wrote are not written again, and there is no network. What is refused by the policy of today is not run. Ends with 1 when something differs. With --policy nothing is run: the verdicts that would change under the rules of FILE are listed. With --bundle nothing is run either: a file of `harness sessions export --bundle` is checked (every part against its hash, the audit against its chain) and shown as `harness report` shows a session; it ends with 1 when a byte of it is another one.";
  static override args = {
    id: Args.string({ description: "a session, as `harness sessions list` shows it" }),
  };
  static override flags = {
    policy: Flags.string({ description: "judge only, under these rules", helpValue: "FILE" }),
    bundle: Flags.string({
      description: "check and show a session that is in this file",
      helpValue: "FILE",
      exclusive: ["policy", "isolation"],
    }),
    isolation: Flags.option({ options: ["overlay", "copy"] as const, description: "how the box sees it" })(),
    cwd: settingFlags.cwd,
    engine: settingFlags.engine,
  };
  static override examples = [
    "harness replay",
    "harness replay 1ng41dkw23pc --policy stricter.toml",
    "harness replay --bundle session.tar",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Replay);
    if (flags.bundle !== undefined) return this.#show(flags.bundle, args.id, flags.json);
    await withSessions(this.host, async (store) => {
      const session = await sessionGiven(store, args.id, workspaceOf(flags));
      const commands = pastCommands(session);
      if (flags.policy === undefined) await this.#runAgain(store, session, commands, flags);
      else await this.#judgeAgain(session, commands, flags.policy, flags.json);
    });
  }

  async #show(file: string, id: string | undefined, json: boolean): Promise<void> {
    if (id !== undefined)
      throw new HarnessError(
        EXIT.usage,
        "a bundle holds one session: say no ID with it",
        `harness replay --bundle FILE`,
      );
    const { readBundle, shownBundle } = await import("../../app/sessions/bundle-file.ts");
    const { manifest, sha256, report } = shownBundle(await readBundle(file), file);
    if (json) answerJson({ bundle: { sha256, ...manifest }, report });
    else answer(`${bundleLines(manifest, sha256, stdout)}\n${reportText(report, stdout)}`);
    if (report.audit?.ok === false) process.exitCode = EXIT.failed;
  }

  async #judgeAgain(
    session: Session,
    commands: readonly PastCommand[],
    file: string,
    json: boolean,
  ): Promise<void> {
    const changed = await changedVerdicts(this.host, commands, file, session.info());
    for (const each of changed)
      if (json) answerJson(each);
      else answer(changedVerdict(each, stdout));
    const summary = { judged: commands.length, changed: changed.length };
    if (json) answerJson({ summary });
    else answer(`commands judged: ${summary.judged}; verdicts that change: ${summary.changed}`);
  }

  async #runAgain(
    store: SessionStore,
    session: Session,
    commands: readonly PastCommand[],
    { isolation = "overlay", json, quiet }: ReplayFlags,
  ): Promise<void> {
    const { settings } = await configFor({});
    const counts = { same: 0, differs: 0, "not run": 0 };
    const onResult = (each: Rerun): void => {
      counts[each.outcome] += 1;
      if (json) answerJson(each);
      else if (each.outcome !== "same" || !quiet) answer(rerunLines(each, stdout));
    };
    const input = { host: this.host, settings: { ...settings, isolation }, store, session, quiet, onResult };
    await untilInterrupted((signal) => replayRun(commands, input, signal));
    if (json) answerJson({ summary: counts });
    else answer(`same: ${counts.same}; differ: ${counts.differs}; not run: ${counts["not run"]}`);
    if (counts.differs > 0) process.exitCode = EXIT.failed;
  }
}

interface ReplayFlags {
  readonly isolation?: "overlay" | "copy" | undefined;
  readonly json: boolean;
  readonly quiet: boolean;
}
