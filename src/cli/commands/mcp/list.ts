import { listServers } from "../../../app/project/mcp-commands.ts";
import { runWorkspace } from "../../../app/host.ts";
import { noteTo } from "../../../app/stderr-messages.ts";
import { visibleWhole } from "../../../core/visible.ts";
import { stderr } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { configFor, settingFlags, workspaceOf } from "../../settings.ts";

export class McpList extends HarnessCommand {
  static override summary = "List the MCP servers that a run here would have, and those that do not count.";
  static override description =
    "Starts nothing. Servers come from your settings (mcp), and from a project's .harness/mcp.json or .mcp.json, which count once you trust them. With --json, prints one object per line.";
  static override flags = { cwd: settingFlags.cwd };
  static override examples = ["harness mcp list", "harness mcp list --json"];

  async run(): Promise<void> {
    const { flags } = await this.parse(McpList);
    const config = await configFor(flags);
    const workspace = runWorkspace(workspaceOf(flags), "harness mcp list --cwd FOLDER");
    const all = await listServers({ host: this.host, config, workspace, warn: noteTo(flags.quiet) });
    if (flags.json) for (const each of all) answerJson(each);
    else if (all.length === 0 && !flags.quiet) stderr.write("there are no MCP servers\n");
    for (const { name, why, where, what, origin } of flags.json ? [] : all)
      answer(
        visibleWhole(
          why === "" ? `${name}  ${where}  ${what}  (${origin})` : `${name || origin}  ignored: ${why}`,
        ),
      );
  }
}
