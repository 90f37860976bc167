import { Args, Flags } from "@oclif/core";
import { removeEnvironments } from "../../../app/environments/own-environments.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags } from "../../settings.ts";

export class EnvRm extends HarnessCommand {
  static override summary = "Remove environments: those named, or all.";
  static override description =
    "A name is an id as `harness env list` shows it, any beginning of one, or the folder that it is for. One that a box uses stays.";
  static override strict = false;
  static override args = { name: Args.string({ description: "an id, or a workspace", ignoreStdin: true }) };
  static override flags = {
    all: Flags.boolean({ description: "all of yours, half-made ones too" }),
    engine: settingFlags.engine,
  };
  static override examples = ["harness env rm 3f2a", "harness env rm --all"];

  async run(): Promise<void> {
    const { flags, argv } = await this.parse(EnvRm);
    const names = argv.map(String);
    if (names.length > 0 === flags.all)
      throw new HarnessError(EXIT.usage, "say which environments: names, or --all", "harness env list");
    for (const id of await removeEnvironments(this.host, flags.all ? "all" : names))
      if (flags.json) answerJson({ id });
      else answer(id);
  }
}
