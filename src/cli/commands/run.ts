import { Args } from "@oclif/core";
import { HarnessCommand } from "../command.ts";
import { settingFlags, runFlags } from "../settings.ts";

export class Run extends HarnessCommand {
  static override summary = "Do a task unattended, in a box over the current folder.";
  static override description =
    "Nobody is asked: what is allowed runs, and so does what asks but stays inside the workspace; the rest is refused, told to the model, and listed at the end; --on-ask park has the run wait for `harness approve` instead. stdout has the answer alone, or with --json one event a line. Ends with 0 done, 1 failed, 2 usage, 3 budget spent, 4 refused, 5 no model, 6 no box, 7 parked, 130 interrupted. PROMPT - reads the task from a pipe.";
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
    const { runUnattended } = await import("../../app/run/unattended-run.ts");
    process.exitCode = await runUnattended(argv.map(String), flags);
  }
}
