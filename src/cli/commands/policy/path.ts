import { Args, Flags } from "@oclif/core";
import { judgedPath } from "../../../app/project/policy-context.ts";
import { stdout } from "../../../render/tty/output.ts";
import { pathVerdict } from "../../../render/policy-lines.ts";
import { answer, answerJson, exitOf, HarnessCommand } from "../../command.ts";
import { judgingFor, settingFlags } from "../../settings.ts";

export class PolicyPath extends HarnessCommand {
  static override summary = "Judge reading or writing one path, as the file tools would.";
  static override description =
    "Writes nothing, and reads only links along the path and the .harnessignore of the workspace and of the folders above it in its repository. The workspace is --cwd or the current folder, and need not exist. Ends with 0 for allow, 10 for ask, 20 for deny. Put a path that starts with - after --.";
  static override args = {
    path: Args.string({
      required: true,
      description: "path, relative to the workspace or absolute",
      ignoreStdin: true,
    }),
  };
  static override flags = {
    op: Flags.option({
      options: ["read", "write"] as const,
      required: true,
      description: "what is done with the path",
    })(),
    mode: settingFlags.mode,
    cwd: settingFlags.cwd,
  };
  static override examples = [
    "harness policy path src/main.ts --op write",
    "harness policy path .git/hooks/pre-commit --op write --json",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(PolicyPath);
    const decided = await judgedPath(this.host, args.path, {
      ...(await judgingFor(this.host, flags)),
      op: flags.op,
    });
    const { decision, contained, rules } = decided;
    if (flags.json) answerJson({ decision, contained, rules, path: decided.path });
    else answer(pathVerdict(decided, stdout));
    process.exitCode = exitOf(decision);
  }
}
