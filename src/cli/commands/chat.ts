import { EXIT, HarnessError } from "../../core/errors.ts";
import { requireTerminal } from "../terminal-input.ts";
import { HarnessCommand } from "../command.ts";
import { settingFlags } from "../settings.ts";

const HINT = 'harness run "fix the failing test"   (harness --help lists all commands)';

export class Chat extends HarnessCommand {
  static override summary = "Chat with the agent; harness without a command does the same.";
  static override description =
    "Asks before it runs anything that the policy does not allow by itself, and shows you the whole command with the reason. Ctrl-C cancels the work in progress and leaves the conversation as it was before; /help lists the rest.";
  static override flags = settingFlags;
  static override examples = ["harness", "harness --mode read-only", "harness chat --model qwen3:8b"];

  async run(): Promise<void> {
    const { flags } = await this.parse(Chat);
    if (flags.json)
      throw new HarnessError(EXIT.usage, "the chat has no JSON output", 'harness run --json "…"');
    requireTerminal(HINT);
    const { welcome } = await import("../chat/start-chat.ts");
    await welcome(this.host, flags);
    const { startChat } = await import("../chat/start-chat.ts");
    process.exitCode = await startChat(this.host, flags);
  }
}
