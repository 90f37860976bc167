import { Flags } from "@oclif/core";
import { untilInterrupted } from "../../../app/interruption.ts";
import { buildImage } from "../../../app/boxes/own-boxes.ts";
import { stderr } from "../../../render/tty/output.ts";
import { ProgressLine } from "../../../render/tty/live-lines.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags } from "../../settings.ts";

export class SandboxBuild extends HarnessCommand {
  static override summary = "Build the sandbox image, unless one from the same inputs exists.";
  static override flags = {
    engine: settingFlags.engine,
    rebuild: Flags.boolean({
      description: "build even if the image exists, without the builder's cache",
    }),
  };
  static override examples = ["harness sandbox build", "harness sandbox build --rebuild"];

  async run(): Promise<void> {
    const { flags } = await this.parse(SandboxBuild);
    using progress = new ProgressLine(stderr, { what: "sandbox image", quiet: flags.quiet });
    const build = await buildImage(this.host, { rebuild: flags.rebuild, onLine: progress.line });
    const built = await untilInterrupted(build);
    progress.complete();
    if (flags.json) answerJson(built);
    else answer(`${built.tag}  ${built.how}`);
  }
}
