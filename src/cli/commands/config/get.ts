import { printable } from "../../../config/settings-schema.ts";
import { Args } from "@oclif/core";
import { settingPath } from "../../../config/config-edit.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { configFor } from "../../settings.ts";

export class ConfigGet extends HarnessCommand {
  static override summary = "Print the value of one setting.";
  static override args = {
    key: Args.string({
      required: true,
      description: "name of a setting, e.g. mode or search.store",
      ignoreStdin: true,
    }),
  };
  static override examples = ["harness config get chat_model", "harness config get search.store --json"];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ConfigGet);
    const key = settingPath(args.key);
    const { settings, origins } = await configFor({});
    const value = key.startsWith("search.")
      ? settings.search[key.slice("search.".length) as keyof typeof settings.search]
      : settings[key as keyof typeof settings];
    if (flags.json) answerJson({ key, value, origin: origins[key] ?? "default" });
    else answer(printable(key, value));
  }
}
