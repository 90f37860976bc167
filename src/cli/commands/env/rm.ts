import { Args, Flags } from "@oclif/core";
import { removeEnvironments } from "../../../app/boxes/own-boxes.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags } from "../../settings.ts";

export class EnvRm extends HarnessCommand {
  static override summary = "Remove the environments that you name, or all of them.";
  static override description =
    "A name is an ID as shown by `harness env list`, any beginning of an ID, or the folder that the environment is for. An environment that a box uses stays.";
  static override strict = false;
  static override args = {
    name: Args.string({ description: "environment ID, or a workspace folder", ignoreStdin: true }),
  };
  static override flags = {
    all: Flags.boolean({ description: "remove all your environments, including unfinished ones" }),
    engine: settingFlags.engine,
  };
  static override examples = ["harness env rm 3f2a", "harness env rm --all"];

  async run(): Promise<void> {
    const { flags, argv } = await this.parse(EnvRm);
    const names = argv.map(String);
    if (names.length > 0 === flags.all)
      throw new HarnessError(
        EXIT.usage,
        "give either the names of environments or --all",
        "harness env list",
      );
    for (const id of await removeEnvironments(this.host, flags.all ? "all" : names))
      if (flags.json) answerJson({ id });
      else answer(id);
  }
}
