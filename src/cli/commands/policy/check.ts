import { runsUnattended } from "../../../core/decision.ts";
import { Flags } from "@oclif/core";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { type CommandDecision, CommandPolicy } from "../../../policy/decide.ts";
import { effectText } from "../../../policy/effects/described-effects.ts";
import { hintFor } from "../../../policy/ruling.ts";
import { explanation, verdictLine } from "../../../render/tty/explained.ts";
import { answer, answerEach, answerJson, HarnessCommand } from "../../command.ts";
import {
  judgedLines,
  givenCommand,
  noCommand,
  nextCommand,
  judgingFor,
  exitOf,
} from "../../../app/policy-commands.ts";
import { settingFlags } from "../../settings.ts";
import { stdout } from "../../../render/tty/output.ts";

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
    if (flags.stdin && flags.explain)
      throw new HarnessError(EXIT.usage, "--explain is about one command, not about --stdin", EXAMPLE);
    if (!flags.stdin && text === undefined) throw noCommand(EXAMPLE);
    const context = await judgingFor(flags);
    const policy = new CommandPolicy();
    if (text === undefined) {
      await answerEach(judgedLines(process.stdin, policy, context));
      return;
    }
    const explain = flags.explain && !flags.json;
    const decided = explain
      ? await explained(text, { policy, context, cwd: flags.cwd })
      : policy.decide(text, context);
    if (flags.json) answerJson(decided);
    else if (!explain) answer(verdictLine(decided, stdout));
    process.exitCode = exitOf(decided.decision);
  }
}

interface Asked {
  readonly policy: CommandPolicy;
  readonly context: Awaited<ReturnType<typeof judgingFor>>;
  readonly cwd: string | undefined;
}

async function explained(text: string, { policy, context, cwd }: Asked): Promise<CommandDecision> {
  const { decision, standings } = policy.explain(text, context);
  const { ruleFor } = await import("../../../policy/rules/remember-rule.ts");
  const allowable =
    decision.decision === "ask" &&
    context.mode === "workspace-write" &&
    ruleFor(text, context, policy).kind === "rules";
  const more = {
    verdicts: standings.map(({ verdict }) => verdict),
    effects: decision.effects.map(effectText),
    unattended: runsUnattended(decision, context.mode),
    ...(allowable ? { remedy: nextCommand("allow", text, { cwd }) } : {}),
  };
  answer(explanation({ text, decision, hintFor, ...more }, stdout));
  return decision;
}
