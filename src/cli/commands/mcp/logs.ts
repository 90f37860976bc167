import { Args } from "@oclif/core";
import { serverLog } from "../../../app/project/mcp-commands.ts";
import { visible } from "../../../core/visible.ts";
import { stderr } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";

export class McpLogs extends HarnessCommand {
  static override summary = "Show what an MCP server wrote to stderr when it last ran.";
  static override description = "Shows the last 64 KiB from the last run that the server was part of.";
  static override args = {
    name: Args.string({
      description: "server name, as shown by `harness mcp list`",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override examples = ["harness mcp logs files"];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpLogs);
    const text = await serverLog(this.host, args.name);
    if (flags.json) answerJson({ name: args.name, log: text ?? null });
    else if (text !== undefined) answer(visible(text));
    else if (!flags.quiet) stderr.write(`there is no log of the MCP server ${visible(args.name)}\n`);
  }
}
