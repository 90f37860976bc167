import { Flags } from "@oclif/core";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { CommandPolicy } from "../../../policy/decide.ts";
import { effectText } from "../../../policy/effects/text.ts";
import { hintFor } from "../../../policy/judge/hints.ts";
import { explanation, verdictLine } from "../../../render/tty/explained.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { judgedLines } from "../../policy/check-lines.ts";
import { givenCommand, noCommand } from "../../policy/given-command.ts";
import { judgingFor } from "../../policy/rules.ts";
import { exitOf } from "../../policy/verdict-exit.ts";
import { settingFlags } from "../../settings.ts";

const EXAMPLE = "harness policy check -- 'ls -l'";

export class PolicyCheck extends HarnessCommand {
  static override summary = "Judge a command line, without running it.";
  static override description =
    'One word behind -- is a shell line; several are one command with its arguments. Ends with 0 for allow, 10 for ask, 20 for deny. With --stdin each line of the input is a JSON object {"cmd", "mode"?}, answered by one line of JSON, and the end is always 0. The workspace is --cwd or the current folder, and need not exist; nothing is read from it. Rules of your own (policy.toml) count: see docs/policy-rules.md.';
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
    const { flags: argv, text, dashes } = givenCommand(this.argv);
    const { flags } = await this.parse(PolicyCheck, [...argv]);
    if (flags.stdin && dashes) throw new HarnessError(EXIT.usage, "a command and --stdin at once", EXAMPLE);
    if (!flags.stdin && text === undefined) throw noCommand(EXAMPLE);
    const context = await judgingFor(flags);
    const policy = new CommandPolicy();
    if (text === undefined) {
      for await (const decided of judgedLines(process.stdin, policy, context)) answerJson(decided);
      return;
    }
    const decided = policy.decide(text, context);
    if (flags.json) answerJson(decided);
    else if (flags.explain) {
      const effects = decided.effects.map(effectText);
      answer(explanation({ text, decision: decided, effects, hintFor }, process.stdout));
    } else answer(verdictLine(decided, process.stdout));
    process.exitCode = exitOf(decided.decision);
  }
}
