import { Flags } from "@oclif/core";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { parsedLines, readingText } from "../../../app/reply-lines.ts";

const EXAMPLE = "harness model parse --stdin --json < replies.jsonl";

export class ModelParse extends HarnessCommand {
  static override summary = "Find the tool calls in replies, without running them.";
  static override description =
    'Each line of the input is a JSON object {"text", "tools"}: a reply, and the tools that were offered, by name or as {"name", "parameters"}. Each line is answered in order, with the calls that would be run, the calls that cannot be read, and the text that a user would see. A line that is no such object is answered with an error. The exit code is always 0.';
  static override usage = "model parse --stdin [FLAGS]";
  static override flags = {
    stdin: Flags.boolean({ description: "read replies from stdin, one JSON object per line" }),
  };
  static override examples = [EXAMPLE];

  async run(): Promise<void> {
    const { flags } = await this.parse(ModelParse);
    if (!flags.stdin) throw new HarnessError(EXIT.usage, "no replies were given", EXAMPLE);
    for await (const reading of parsedLines(process.stdin)) {
      if (flags.json) answerJson(reading);
      else answer(readingText(reading));
    }
  }
}
