import { Args } from "@oclif/core";
import { removeServer } from "../../../config/config-edit.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";

export class McpRemove extends HarnessCommand {
  static override summary = "Remove an MCP server from your config file.";
  static override args = {
    name: Args.string({
      description: "server name, as shown by `harness mcp list`",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override examples = ["harness mcp remove files"];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpRemove);
    const [file] = this.host.places.configFiles;
    if (!(await removeServer(file, args.name)))
      throw new HarnessError(EXIT.usage, `${file} has no MCP server ${args.name}`, "harness mcp list");
    if (flags.json) answerJson({ name: args.name, file });
    else answer(`${args.name} is no longer in ${file}`);
  }
}
