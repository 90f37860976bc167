import { Args, Flags } from "@oclif/core";
import { requireTerminal } from "../terminal-input.ts";
import { HarnessCommand } from "../command.ts";
import { settingFlags } from "../settings.ts";

export class Resume extends HarnessCommand {
  static override summary = "Continue an earlier session in the chat.";
  static override description =
    "Without ID, continues the last session of the folder. The model knows what was said and which files it has read. It is the model of the session's last run, unless flags name another.";
  static override args = {
    id: Args.string({ description: "session ID, or the beginning of it", ignoreStdin: true }),
  };
  static override flags = {
    fork: Flags.boolean({ description: "continue in a new session and leave the earlier one unchanged" }),
    ...settingFlags,
  };
  static override examples = ["harness resume", "harness resume 7f3a"];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Resume);
    requireTerminal(`harness run ${args.id === undefined ? "--continue" : `--resume ${args.id}`} "…"`);
    const { startChat } = await import("../chat/start-chat.ts");
    process.exitCode = await startChat(this.host, flags, { id: args.id, fork: flags.fork });
  }
}
