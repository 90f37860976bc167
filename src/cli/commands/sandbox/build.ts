import { Flags } from "@oclif/core";
import { untilInterrupted } from "../../../app/interruption.ts";
import { buildImage } from "../../../app/own-boxes.ts";
import { stderr } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";

export class SandboxBuild extends HarnessCommand {
  static override summary = "Build the sandbox image, unless one of the same inputs is there.";
  static override flags = {
    rebuild: Flags.boolean({
      description: "build even when the image is there, without the builder's cache",
    }),
  };
  static override examples = ["harness sandbox build", "harness sandbox build --rebuild"];

  async run(): Promise<void> {
    const { flags } = await this.parse(SandboxBuild);
    const onLine = flags.quiet ? () => undefined : (line: string) => void stderr.write(`${line}\n`);
    const build = await buildImage(this.host, { rebuild: flags.rebuild, onLine });
    const built = await untilInterrupted(build);
    if (flags.json) answerJson(built);
    else answer(`${built.tag}  ${built.how}`);
  }
}
