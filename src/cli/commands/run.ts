import { Args } from "@oclif/core";
import type { SessionChoice } from "../../app/sessions/session-access.ts";
import type { ModelFlags } from "../../app/sessions/last-run.ts";
import type { TakenUp } from "../../app/sessions/session-hold.ts";
import { lastAnswer, HarnessCommand } from "../command.ts";
import { configContinued, limitsFrom, runFlags, settingFlags, workspaceOf } from "../settings.ts";
import { promptFrom } from "../terminal.ts";

export class Run extends HarnessCommand {
  static override summary = "Do a task unattended, in a box over the current folder.";
  static override description =
    "Nobody is asked. What the policy allows runs, and so does a call that needs approval but stays inside the workspace; the rest is refused, reported to the model and listed at the end. With --on-ask park, the run waits for `harness approve` instead. stdout carries only the answer or, with --json, one event per line. Ends with 0 done, 1 failed, 2 usage, 3 budget spent, 4 refused, 5 no model, 6 no box, 7 parked, 130 interrupted. PROMPT - reads the task from a pipe. /NAME ARGUMENTS is a command that you or the project added (`harness skills` lists them).";
  static override usage = "run [FLAGS] [PROMPT | -]";
  static override strict = false;
  static override args = { prompt: Args.string({ description: "the task; - reads it from a pipe" }) };
  static override flags = { ...runFlags, ...settingFlags };
  static override examples = [
    'harness run "fix the failing test"',
    'harness run --mode read-only "how does the login work?"',
    "harness run --json --max-time 30m - < task.md",
    'harness run --continue "now write a test for it"',
  ];

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Run);
    const folder = await this.#folder(flags);
    const taken = await this.#takenUp(flags, folder);
    const config = await configContinued({ ...flags, cwd: folder }, taken?.overrides);
    const limits = limitsFrom(flags, config.settings.max_turns);
    const { runUnattended } = await import("../../app/run/unattended-run.ts");
    const finished = await runUnattended({
      host: taken?.host ?? this.host,
      config,
      limits,
      folder: workspaceOf(flags),
      named: flags.cwd !== undefined,
      prompt: async (otherwise) =>
        this.#expanded(await promptFrom(argv.map(String), otherwise), folder, flags.quiet),
      flags,
    });
    if (!flags.json && finished.answer !== null) await lastAnswer(finished.answer);
    process.exitCode = finished.exit_code;
  }

  /** The text of a slash command that somebody added; any other text as it is. */
  async #expanded(prompt: string, folder: string, quiet: boolean): Promise<string> {
    if (!prompt.startsWith("/")) return prompt;
    const [{ expandedPrompt }, { runWorkspace }, { noteTo }] = await Promise.all([
      import("../../app/project/skills-and-commands.ts"),
      import("../../app/host.ts"),
      import("../../app/stderr-messages.ts"),
    ]);
    return expandedPrompt(this.host, runWorkspace(folder), prompt, noteTo(quiet));
  }

  /** Settings from the session that the run continues. */
  async #takenUp(
    flags: SessionChoice & ModelFlags & { readonly quiet: boolean },
    folder: string,
  ): Promise<TakenUp | undefined> {
    if (!flags.continue && flags.resume === undefined) return undefined;
    const [{ hostForChoice }, { noteTo }] = await Promise.all([
      import("../../app/sessions/session-hold.ts"),
      import("../../app/stderr-messages.ts"),
    ]);
    const taken = await hostForChoice(this.host, flags, folder);
    if (taken?.note !== undefined) noteTo(flags.quiet)(taken.note);
    return taken;
  }

  /** The folder whose project settings count. */
  async #folder(flags: { readonly cwd?: string | undefined; readonly resume?: string | undefined }) {
    if (flags.resume === undefined || flags.cwd !== undefined) return workspaceOf(flags);
    const { folderOfSession } = await import("../../app/sessions/session-access.ts");
    return folderOfSession(this.host, flags.resume);
  }
}
