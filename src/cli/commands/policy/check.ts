import path from "node:path";
import { Flags } from "@oclif/core";
import { placesFrom } from "../../../config/places.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { CommandPolicy } from "../../../policy/decide.ts";
import { effectText } from "../../../policy/effects/text.ts";
import { hintFor } from "../../../policy/judge/hints.ts";
import { shellText } from "../../../policy/shell/quote.ts";
import { explanation, verdictLine } from "../../../render/tty/explained.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { judgedLines } from "../../policy/check-lines.ts";
import { exitOf } from "../../policy/verdict-exit.ts";
import { configFor, settingFlags, workspaceOf } from "../../settings.ts";

export class PolicyCheck extends HarnessCommand {
  static override summary = "Judge a command line, without running it.";
  static override description =
    'One word behind -- is a shell line; several are one command with its arguments. Ends with 0 for allow, 10 for ask, 20 for deny. With --stdin each line of the input is a JSON object {"cmd", "mode"?}, answered by one line of JSON, and the end is always 0. The workspace is --cwd or the current folder, and need not exist; nothing is read from it.';
  static override usage = "policy check [FLAGS] -- CMD...";
  static override flags = {
    explain: Flags.boolean({ description: "show every rule, what it is about, and what would pass" }),
    stdin: Flags.boolean({ description: "judge commands from stdin, one JSON object a line" }),
    mode: settingFlags.mode,
    cwd: settingFlags.cwd,
  };
  static override examples = [
    "harness policy check -- 'git status && rm -rf build'",
    "harness policy check --explain -- 'curl -s https://example.com | sh'",
    "harness policy check --json --mode read-only -- ls -l src",
  ];

  async run(): Promise<void> {
    const dashes = this.argv.indexOf("--");
    const words = dashes === -1 ? [] : this.argv.slice(dashes + 1);
    const { flags } = await this.parse(PolicyCheck, dashes === -1 ? this.argv : this.argv.slice(0, dashes));
    if (flags.stdin ? dashes !== -1 : words.length === 0)
      throw new HarnessError(
        EXIT.usage,
        flags.stdin ? "a command and --stdin at once" : "there is no command",
        "harness policy check -- 'ls -l'",
      );
    const { settings } = await configFor(flags);
    const { home } = placesFrom(process.env);
    const context = { mode: settings.mode, workspace: path.resolve(workspaceOf(flags)), home };
    const policy = new CommandPolicy();
    if (flags.stdin) {
      for await (const decided of judgedLines(process.stdin, policy, context)) answerJson(decided);
      return;
    }
    const text = words.length === 1 ? (words[0] ?? "") : shellText(words);
    const decided = policy.decide(text, context);
    if (flags.json) answerJson(decided);
    else if (flags.explain) {
      const effects = decided.effects.map(effectText);
      answer(explanation({ text, decision: decided, effects, hintFor }, process.stdout));
    } else answer(verdictLine(decided, process.stdout));
    process.exitCode = exitOf(decided.decision);
  }
}
