import { Args, Flags } from "@oclif/core";
import type { Mode } from "../../core/decision.ts";
import { EXIT } from "../../core/errors.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { changedVerdict, rerunLines } from "../../render/tty/replay-lines.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { untilInterrupted } from "../../app/run/interruption.ts";
import { noteTo } from "../../app/stderr-messages.ts";
import { changedVerdicts, rerun, type PastCommand, pastCommands } from "../../app/run/replay-run.ts";
import { lazyJudge } from "../../app/run/agent-assembly.ts";
import { sessionFor, sessionsWorkspace, withSessions } from "../../app/session-access.ts";
import { configFor, settingFlags, workspaceOf } from "../settings.ts";
import { openBoxFor } from "../../app/box-access.ts";
import { stdout } from "../../render/tty/output.ts";

export class Replay extends HarnessCommand {
  static override summary = "Run a session's commands again in a fresh box, and list what differs.";
  static override description =
    "Without ID, the last session of this folder. The commands of its shell are run in their order over the folder as it is now, in a layer (or with --isolation copy, a copy) that is thrown away; files that other tools wrote are not written again, and there is no network. What is refused by the policy of today is not run. Ends with 1 when something differs. With --policy nothing is run: the verdicts that would change under the rules of FILE are listed.";
  static override args = {
    id: Args.string({ description: "a session, as `harness sessions list` shows it" }),
  };
  static override flags = {
    policy: Flags.string({ description: "judge only, under these rules", helpValue: "FILE" }),
    isolation: Flags.option({ options: ["overlay", "copy"] as const, description: "how the box sees it" })(),
    cwd: settingFlags.cwd,
  };
  static override examples = ["harness replay", "harness replay 1ng41dkw23pc --policy stricter.toml"];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Replay);
    const here = await sessionsWorkspace(workspaceOf(flags));
    await withSessions(async (store) => {
      const session = sessionFor(store, args.id, here);
      const commands = pastCommands(session);
      if (flags.policy === undefined) await runAgain(store, session, commands, flags);
      else await judgeAgain(session, commands, flags.policy, flags.json);
    });
  }
}

async function judgeAgain(
  session: Session,
  commands: readonly PastCommand[],
  file: string,
  json: boolean,
): Promise<void> {
  const changed = await changedVerdicts(commands, file, session.info());
  for (const each of changed)
    if (json) answerJson(each);
    else answer(changedVerdict(each, stdout));
  const summary = { judged: commands.length, changed: changed.length };
  if (json) answerJson({ summary });
  else answer(`commands judged: ${summary.judged}; verdicts that change: ${summary.changed}`);
}

interface Given {
  readonly isolation?: "overlay" | "copy" | undefined;
  readonly json: boolean;
  readonly quiet: boolean;
}

async function runAgain(
  store: SessionStore,
  session: Session,
  commands: readonly PastCommand[],
  { isolation = "overlay", json, quiet }: Given,
): Promise<void> {
  const { workspace, mode: then } = session.info();
  const { settings } = await configFor({});
  // What had a network then gets none by being looked at again.
  const mode: Mode = then === "read-only" ? then : "workspace-write";
  const counts = { same: 0, differs: 0, "not run": 0 };
  await untilInterrupted(async (signal) => {
    const opening = {
      settings: { ...settings, mode, isolation },
      workspace,
      runtime: null,
      watchChanges: false,
      keep: null,
    };
    await using box = await openBoxFor({ ...opening, warn: noteTo(quiet) }, signal);
    const judge = await lazyJudge(mode, workspace)();
    const { outputs } = session;
    const desk = { workspace, outputs, notes: store.notes(workspace), timeoutMs: settings.timeout };
    for await (const each of rerun(commands, { box, judge, mode, desk }, signal)) {
      counts[each.outcome] += 1;
      if (json) answerJson(each);
      else if (each.outcome !== "same" || !quiet) answer(rerunLines(each, stdout));
    }
  });
  if (json) answerJson({ summary: counts });
  else answer(`same: ${counts.same}; differ: ${counts.differs}; not run: ${counts["not run"]}`);
  if (counts.differs > 0) process.exitCode = EXIT.failed;
}
