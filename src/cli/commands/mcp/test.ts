import { Args, Flags } from "@oclif/core";
import { runWorkspace } from "../../../app/host.ts";
import { untilInterrupted } from "../../../app/interruption.ts";
import { type TestedServer, tryServer } from "../../../app/project/mcp-commands.ts";
import { noteTo } from "../../../app/stderr-messages.ts";
import { EXIT } from "../../../core/errors.ts";
import { plural } from "../../../core/wording.ts";
import { visible, visibleLine } from "../../../core/visible.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { boxFlags, configFor, workspaceOf } from "../../settings.ts";

export class McpTest extends HarnessCommand {
  static override summary = "Start an MCP server as a run would, and list its tools with their verdicts.";
  static override description =
    "Asks no model and calls no tool. Ends with 0 if the server is there, 1 if it is not. What the server says about its tools is remembered. If a server with on_change = leave-out now describes its tools differently than before, --accept accepts the new descriptions.";
  static override args = {
    name: Args.string({
      description: "server name, as shown by `harness mcp list`",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override flags = {
    ...boxFlags,
    accept: Flags.boolean({ description: "accept the server's tools as it describes them now" }),
  };
  static override examples = ["harness mcp test files", "harness mcp test files --json"];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpTest);
    const config = await configFor(flags);
    const workspace = runWorkspace(workspaceOf(flags), "harness mcp test NAME --cwd FOLDER");
    const request = { host: this.host, config, workspace, warn: noteTo(flags.quiet) };
    await untilInterrupted(async (signal) => {
      const tried = await tryServer(request, args.name, { accept: flags.accept, signal });
      if (flags.json) answerJson(tried);
      else answer(serverText(tried));
      process.exitCode = tried.up ? EXIT.done : EXIT.failed;
    }, "");
  }
}

function serverText({ name, up, why, tools, left, notices }: TestedServer): string {
  const head = up
    ? `${name} is available, with ${plural(tools.length, "tool")}`
    : `${name} is not available: ${why}`;
  const next = !up && why.includes("; it printed: ") ? [`next: harness mcp logs ${name}`] : [];
  const rows = tools.map((tool) => {
    const verdict = `${tool.decision}${tool.contained ? ", contained" : ""}${tool.held ? ", left out until accepted" : ""}`;
    return `  ${tool.name}  ${verdict}  ${visibleLine(tool.description)}`;
  });
  const others = left.map(({ tool, why: reason }) => `  left out: ${tool}: ${reason}`);
  return visible(
    [head, ...next, ...rows, ...others, ...notices.filter((text) => !text.includes(why) || why === "")].join(
      "\n",
    ),
  );
}
