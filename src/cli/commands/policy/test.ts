import { Args, Flags } from "@oclif/core";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { scoreTable, wrongVerdict } from "../../../render/policy-lines.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import {
  commandPolicy,
  holdsRules,
  linesOf,
  NOWHERE,
  readJudged,
  rulesIn,
  Score,
} from "../../../app/project/policy-commands.ts";
import { judgingFor, settingFlags } from "../../settings.ts";
import { stdout } from "../../../render/tty/output.ts";

export class PolicyTest extends HarnessCommand {
  static override summary = "Test the policy on a file of commands whose verdicts are known.";
  static override description =
    'Each line is a JSON object {"cmd", "want", "mode"?, "class"?, "why"?, "debatable"?}; want is allow, ask, deny or not-allow. Lists the wrong verdicts, then counts the right ones by class; debatable ones are counted separately. Ends with 0 if all are right, 1 if some are wrong, 2 if the file cannot be read. A file of rules (.toml, or .json with "rules") is tested with its own examples.';
  static override args = {
    file: Args.string({
      required: true,
      description: "file of commands or rules, or - for stdin",
      ignoreStdin: true,
    }),
  };
  static override flags = {
    mode: settingFlags.mode,
    cwd: settingFlags.cwd,
    rules: Flags.string({
      description: "judge by the rules in this file instead of yours",
      helpValue: "FILE",
    }),
  };
  static override examples = [
    "harness policy test commands.jsonl",
    "harness policy test --json - < commands.jsonl",
    "harness policy test proposed.toml",
    "harness policy test --rules proposed.toml commands.jsonl",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(PolicyTest);
    const score = await this.#score(args.file, flags);
    const { wrong, classes, sure, debatable } = score;
    if (flags.json) {
      for (const each of wrong) answerJson(each);
      answerJson({ summary: { ...sure, debatable, classes: Object.fromEntries(classes) } });
    } else {
      const verdicts = wrong.map((each) =>
        wrongVerdict({ ...each, where: `${args.file}:${each.line}` }, stdout),
      );
      answer([...verdicts, scoreTable(classes, score)].join("\n"));
    }
    process.exitCode = sure.right === sure.total ? EXIT.done : EXIT.failed;
  }

  async #score(file: string, flags: { readonly rules?: string | undefined }): Promise<Score> {
    const { host } = this;
    const context = await judgingFor(host, flags);
    if (await holdsRules(file)) {
      const { rules, examples } = await rulesIn(host, file);
      const { ignore: _, ...others } = context;
      const at = { ...others, workspace: NOWHERE, mode: "workspace-write", rules } as const;
      const score = new Score(commandPolicy(), at);
      for (const [index, each] of examples.entries()) score.judge(each, index + 1);
      return score;
    }
    const by = flags.rules === undefined ? {} : { rules: (await rulesIn(host, flags.rules)).rules };
    const score = new Score(commandPolicy(), { ...context, ...by });
    await judgeAll(file, score);
    return score;
  }
}

const EXAMPLE = 'write lines such as {"cmd": "ls -l", "want": "allow"}';

async function judgeAll(file: string, score: Score): Promise<void> {
  const name = file === "-" ? "stdin" : file;
  let number = 0;
  for await (const line of linesOf(file)) {
    number += 1;
    if (line.trim() === "") continue;
    const judged = readJudged(line);
    if (typeof judged === "string")
      throw new HarnessError(EXIT.usage, `${name}:${number}: ${judged}`, EXAMPLE);
    score.judge(judged, number);
  }
  if (score.sure.total + score.debatable.total === 0)
    throw new HarnessError(EXIT.usage, `${name} holds no commands`, EXAMPLE);
}
