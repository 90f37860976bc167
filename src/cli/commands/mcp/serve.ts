import { Flags } from "@oclif/core";
import { HarnessCommand } from "../../command.ts";
import { boxFlags, configFor, settingFlags, workspaceOf } from "../../settings.ts";
import { stderr } from "../../../render/tty/output.ts";

export class McpServe extends HarnessCommand {
  static override summary = "Offer the box to other agents, as an MCP server on stdin and stdout.";
  static override description =
    "An agent that starts this command gets commands, files and search in a box over the current folder, under your policy: every call is judged, run and recorded as in `run`. Nobody is asked: a call that needs approval runs if it is contained, and is refused otherwise; with --on-ask refuse it is refused in any case. stdout carries only the protocol. The box starts with the first call and is removed when the client leaves. `harness sessions show`, `harness diff` and `harness undo` know what was done.";
  static override flags = {
    ...boxFlags,
    canaries: settingFlags.canaries,
    "on-ask": Flags.option({
      options: ["refuse", "contained"] as const,
      description: "what happens to a call that needs approval: refuse it, or run it if it is contained",
      helpGroup: "BOX",
    })(),
  };
  static override examples = [
    "harness mcp serve",
    "harness mcp serve --mode read-only --cwd ~/project",
    "claude mcp add sandbox -- harness mcp serve --cwd ~/project",
  ];

  async run(): Promise<void> {
    const { flags } = await this.parse(McpServe);
    const config = await configFor(flags);
    const { serveBox } = await import("../../../app/serve-mcp.ts");
    if (process.stdin.isTTY && !flags.quiet)
      stderr.write("note: this speaks MCP, and is meant to be started by another agent; Ctrl-D ends it\n");
    process.exitCode = await serveBox({
      host: this.host,
      config,
      folder: workspaceOf(flags),
      runtime: flags.runtime ?? null,
      quiet: flags.quiet,
      input: process.stdin,
    });
  }
}
