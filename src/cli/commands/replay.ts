import { Args, Flags } from "@oclif/core";
import { runWorkspace } from "../../app/host.ts";
import { untilInterrupted } from "../../app/interruption.ts";
import type { ReplayedCall, ReplayedEnd } from "../../app/sessions/conversation-replay.ts";
import {
  changedVerdicts,
  type PastCommand,
  pastCommands,
  replayRun,
  type Rerun,
} from "../../app/sessions/replay-run.ts";
import { attemptOf, namedSession, withSessions } from "../../app/sessions/session-access.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { AgentEvent } from "../../core/events.ts";
import { eventsOf, type Session, type SessionStore } from "../../core/session.ts";
import { changedVerdict } from "../../render/policy-lines.ts";
import { bundleLines, replayedEnd, reportText, rerunLines } from "../../render/report-text.ts";
import { stdout } from "../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { attemptFlag, configFor, refuseIdOfBundle, settingFlags, workspaceOf } from "../settings.ts";

export class Replay extends HarnessCommand {
  static override summary = "Run a session's commands again in a fresh box, and list what differs.";
  static override description =
    "Without ID, uses the last session of this folder. The commands of the session's shell run in order over the folder as it is now, in a layer that is thrown away (or a copy, if the setting isolation or a remote engine requires it). Files that other tools wrote are not written again, and there is no network. Commands that today's policy refuses are not run. Ends with 1 if something differs. --policy runs nothing: it lists the verdicts that would change under the rules in FILE. --conversation plays the whole conversation again through the same loop: each request is answered with the recorded replies, and the results of the calls and the endings are compared. --bundle takes a file from `harness sessions export --bundle` or an object of a bucket (s3://BUCKET/KEY), checks every part against its hash and the audit against its chain, and shows it as `harness report` shows a session. It ends with 1 if any byte differs, and runs nothing unless you add --conversation, which plays the conversation over this folder.";
  static override usage =
    "replay [ID | --bundle FILE] [--conversation | --policy FILE] [--attempt N] [FLAGS]";
  static override args = {
    id: Args.string({ description: "session ID, as shown by `harness sessions list`", ignoreStdin: true }),
  };
  static override flags = {
    policy: Flags.string({
      description: "only judge the commands, under the rules in this file",
      helpValue: "FILE",
    }),
    bundle: Flags.string({
      description: "check and show the session in this file",
      helpValue: "FILE",
      exclusive: ["policy"],
    }),
    conversation: Flags.boolean({
      description: "play the recorded replies again through the whole loop",
      exclusive: ["policy"],
    }),
    attempt: { ...attemptFlag, exclusive: ["bundle"] },
    isolation: Flags.option({
      options: ["overlay", "copy"] as const,
      description: "how the box gets the folder: a layer over it (overlay) or a copy (copy)",
    })(),
    cwd: settingFlags.cwd,
    engine: settingFlags.engine,
  };
  static override examples = [
    "harness replay",
    "harness replay 1ng41dkw23pc --policy stricter.toml",
    "harness replay --conversation",
    "harness replay --conversation --attempt 2",
    "harness replay --bundle session.tar",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Replay);
    if (flags.bundle !== undefined) return this.#ofBundle(flags.bundle, args.id, flags);
    await withSessions(this.host, async (store) => {
      const named = await namedSession(store, args.id, workspaceOf(flags));
      const session = attemptOf(store, named, flags.attempt);
      if (flags.conversation)
        return this.#playAgain(
          store,
          { events: eventsOf(session), folder: session.info().workspace, ownWord: true },
          flags,
        );
      const commands = pastCommands(session);
      if (flags.policy === undefined) await this.#runAgain(store, session, commands, flags);
      else await this.#judgeAgain(session, commands, flags.policy, flags.json);
    });
  }

  async #ofBundle(
    file: string,
    id: string | undefined,
    flags: ReplayFlags & { readonly conversation: boolean; readonly cwd?: string | undefined },
  ): Promise<void> {
    refuseIdOfBundle(id, "replay");
    if (!flags.conversation && flags.isolation !== undefined)
      throw new HarnessError(
        EXIT.usage,
        "--isolation has no effect here: --bundle without --conversation runs nothing",
        `harness replay --bundle FILE --conversation --isolation ${flags.isolation}`,
      );
    const { eventsOfBundle, readBundle, shownBundle } = await import("../../app/sessions/read-bundle.ts");
    const read = await readBundle(this.host, file);
    if (flags.conversation) {
      const events = eventsOfBundle(read);
      const folder = runWorkspace(
        workspaceOf({ cwd: flags.cwd }),
        "harness replay --bundle FILE --conversation --cwd FOLDER",
      );
      return withSessions(this.host, (store) =>
        this.#playAgain(store, { events, folder, ownWord: false }, flags),
      );
    }
    const { manifest, sha256, report } = shownBundle(read);
    if (flags.json) answerJson({ bundle: { sha256, ...manifest }, report });
    else answer(`${bundleLines(manifest, sha256, stdout)}\n${reportText(report, stdout)}`);
    if (report.audit?.ok === false) process.exitCode = EXIT.failed;
  }

  async #playAgain(
    store: SessionStore,
    { events, folder, ownWord }: Recorded,
    { isolation, engine, json, quiet }: ReplayFlags,
  ): Promise<void> {
    const { replayConversation } = await import("../../app/sessions/conversation-replay.ts");
    const config = await configFor({ cwd: folder, engine, ...(isolation && { isolation }) });
    const counts = { same: 0, differs: 0, "not run": 0 };
    const input = {
      host: this.host,
      config,
      store,
      events,
      ownWord,
      workspace: runWorkspace(folder),
      isolation: throwawayIsolation(config.settings),
      onCall: (each: ReplayedCall): void => {
        counts[each.outcome] += 1;
        if (json) answerJson(each);
        else if (each.outcome !== "same" || !quiet) answer(rerunLines(each, stdout));
      },
      onEnd: (each: ReplayedEnd): void => {
        if (each.outcome === "differs") counts.differs += 1;
        if (json) answerJson(each);
        else if (each.outcome !== "same" || !quiet) answer(replayedEnd(each, stdout));
      },
    };
    await untilInterrupted((signal) => replayConversation(input, signal));
    this.#sum(counts, json);
    if (counts["not run"] > 0) process.exitCode = EXIT.failed;
  }

  #sum(counts: Readonly<Record<Rerun["outcome"], number>>, json: boolean): void {
    if (json) answerJson({ summary: counts });
    else answer(`same: ${counts.same}; differ: ${counts.differs}; not run: ${counts["not run"]}`);
    if (counts.differs > 0) process.exitCode = EXIT.failed;
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
    { isolation, engine, json, quiet }: ReplayFlags,
  ): Promise<void> {
    // The settings of the session's project, whatever the current folder is.
    const cwd = session.info().workspace;
    const { settings } = await configFor({ cwd, engine, ...(isolation && { isolation }) });
    const counts = { same: 0, differs: 0, "not run": 0 };
    const onResult = (each: Rerun): void => {
      counts[each.outcome] += 1;
      if (json) answerJson(each);
      else if (each.outcome !== "same" || !quiet) answer(rerunLines(each, stdout));
    };
    const shape = { ...settings, isolation: throwawayIsolation(settings) };
    const input = { host: this.host, settings: shape, store, session, quiet, onResult };
    await untilInterrupted((signal) => replayRun(commands, input, signal));
    this.#sum(counts, json);
  }
}

/** A copy if the settings, or an engine that sees no file of this machine, require one. */
const throwawayIsolation = ({ isolation }: Pick<Settings, "isolation">): "overlay" | "copy" =>
  isolation === "copy" ? "copy" : "overlay";

interface Recorded {
  readonly events: Iterable<AgentEvent>;
  readonly folder: string;
  readonly ownWord: boolean;
}

interface ReplayFlags {
  readonly engine?: string | undefined;
  readonly isolation?: "overlay" | "copy" | undefined;
  readonly json: boolean;
  readonly quiet: boolean;
}
