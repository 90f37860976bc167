import { HarnessCommand } from "../command.ts";
import { configFor, settingFlags } from "../settings.ts";
import { noteTo } from "../../app/stderr-messages.ts";
import { stderr } from "../../render/tty/output.ts";

const { cwd: _, ...flags } = settingFlags;

export class Acp extends HarnessCommand {
  static override summary = "Serve as an editor's agent, with the Agent Client Protocol on stdin and stdout.";
  static override description =
    "An editor that starts this command (Zed and others) shows the agent's work and asks you what the chat would ask. Everything is done in a box over the folder that the editor names, under your policy. The editor's own files, terminals and MCP servers are never used. The modes offered to the editor are no looser than --mode. The sessions are the same as the chat's: `harness resume`, `harness diff` and `harness undo` know them.";
  static override flags = flags;
  static override examples = ["harness acp", "harness acp --provider ollama --model qwen3:8b"];

  async run(): Promise<void> {
    const { flags } = await this.parse(Acp);
    const { serveEditor } = await import("../../app/editor-sessions.ts");
    if (process.stdin.isTTY && !flags.quiet)
      stderr.write("note: this speaks ACP, and is meant to be started by an editor; Ctrl-D ends it\n");
    process.exitCode = await serveEditor({
      host: this.host,
      configFor: (folder, overrides) => configFor({ ...flags, cwd: folder }, overrides),
      runtime: flags.runtime ?? null,
      warn: noteTo(flags.quiet),
      input: process.stdin,
    });
  }
}
