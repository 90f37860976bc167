import { healthTable } from "../../render/tty/setup-lines.ts";
import { checkUp, exitFor } from "../../app/checkup.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { configFor, settingFlags, workspaceOf } from "../settings.ts";
import { stdout } from "../../render/tty/output.ts";

export class Doctor extends HarnessCommand {
  static override summary = "Check everything that a run depends on.";
  static override description =
    "Each line says ok, warn or fail, with the command that mends it. The exit code says whether `run` would work: 0, or 2 (config), 6 (sandbox), 5 (model).";
  static override flags = settingFlags;
  static override examples = [
    "harness doctor",
    "harness doctor --json --provider openai --base-url http://127.0.0.1:1234/v1",
  ];

  async run(): Promise<void> {
    const { flags } = await this.parse(Doctor);
    const checks = await checkUp(this.host, workspaceOf(flags), () => configFor(flags));
    const exit = exitFor(checks);
    if (flags.json) answerJson({ ok: exit === 0, exit_code: exit, checks });
    else answer(healthTable(checks, stdout));
    process.exitCode = exit;
  }
}
