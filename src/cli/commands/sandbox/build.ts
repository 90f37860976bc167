import { Flags } from "@oclif/core";
import { ensureImage } from "../../../docker/images/build-image.ts";
import { placesFrom } from "../../../config/places.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { packageRoot } from "../../../app/host.ts";
import { untilInterrupted } from "../../../app/run/interruption.ts";
import { requireEngine } from "../../../app/box-access.ts";
import { stderr } from "../../../render/tty/output.ts";

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
    const request = { root: packageRoot, cache: placesFrom(process.env).cache, env: process.env, onLine };
    const engine = await requireEngine();
    const built = await untilInterrupted((signal) =>
      ensureImage(engine, { ...request, signal }, flags.rebuild),
    );
    if (flags.json) answerJson(built);
    else answer(`${built.tag}  ${built.how}`);
  }
}
