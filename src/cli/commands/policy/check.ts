import { Flags } from "@oclif/core";
import {
  commandPolicy,
  explain,
  typedCommand,
  judgedLines,
  nextCommand,
  noCommand,
} from "../../../app/project/policy-commands.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import type { CommandDecision } from "../../../policy/decide.ts";
import { explanation, verdictLine } from "../../../render/policy-lines.ts";
import { stdout } from "../../../render/tty/output.ts";
import { answer, answerEach, answerJson, exitOf, HarnessCommand } from "../../command.ts";
import { judgingFor, settingFlags } from "../../settings.ts";

const EXAMPLE = "harness policy check -- 'ls -l'";

export class PolicyCheck extends HarnessCommand {
  static override summary = "Judge a command line without running it.";
  static override description =
    'One word after -- is a shell line; several words are one command with its arguments. Ends with 0 for allow, 10 for ask, 20 for deny. With --stdin, each line of the input is a JSON object {"cmd", "mode"?}, each is answered with one line of JSON, and the exit code is always 0. The workspace is --cwd or the current folder, and need not exist; nothing is read from it. Your own rules (policy.toml) count: see docs/policy-rules.md.';
  static override usage = "policy check [FLAGS] -- CMD...";
  static override flags = {
    explain: Flags.boolean({ description: "show every rule, what it is about and what would pass" }),
    stdin: Flags.boolean({ description: "judge commands from stdin, one JSON object per line" }),
    mode: settingFlags.mode,
    cwd: settingFlags.cwd,
    "allow-domain": settingFlags["allow-domain"],
  };
  static override examples = [
    "harness policy check -- 'git status && rm -rf build'",
    "harness policy check --explain -- 'curl -s https://example.com | sh'",
    "harness policy check --json --mode read-only -- ls -l src",
  ];

  async run(): Promise<void> {
    const { flags: argv, text, dashes } = typedCommand(this.argv);
    const { flags } = await this.parse(PolicyCheck, [...argv]);
    if (flags.stdin && dashes)
      throw new HarnessError(EXIT.usage, "give either a command or --stdin, not both", EXAMPLE);
    if (flags.stdin && flags.explain)
      throw new HarnessError(EXIT.usage, "--explain needs one command and does not go with --stdin", EXAMPLE);
    if (!flags.stdin && text === undefined) throw noCommand(EXAMPLE);
    const context = await judgingFor(this.host, flags);
    const policy = commandPolicy();
    if (text === undefined) {
      await answerEach(judgedLines(process.stdin, policy, context));
      return;
    }
    const explains = flags.explain && !flags.json;
    const decided = explains
      ? await explained(text, { policy, context, cwd: flags.cwd })
      : policy.decide(text, context);
    if (flags.json) answerJson(decided);
    else if (!explains) answer(verdictLine(decided, stdout));
    process.exitCode = exitOf(decided.decision);
  }
}

interface ExplainParts {
  readonly policy: ReturnType<typeof commandPolicy>;
  readonly context: Awaited<ReturnType<typeof judgingFor>>;
  readonly cwd: string | undefined;
}

async function explained(text: string, { policy, context, cwd }: ExplainParts): Promise<CommandDecision> {
  const { allowable, ...explained } = await explain(text, policy, context);
  const remedy = allowable ? { remedy: nextCommand("allow", text, { cwd }) } : {};
  answer(explanation({ text, ...explained, ...remedy }, stdout));
  return explained.decision;
}
