import { Args } from "@oclif/core";
import { setSetting, settingPath } from "../../../config/config-edit.ts";
import { envNameOf } from "../../../config/load-config.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { stderr } from "../../../render/tty/output.ts";

export class ConfigSet extends HarnessCommand {
  static override summary = "Write one setting to your config file.";
  static override args = {
    key: Args.string({
      required: true,
      description: "name of a setting, e.g. mode or search.store",
      ignoreStdin: true,
    }),
    value: Args.string({ required: true, description: "text, a number or JSON", ignoreStdin: true }),
  };
  static override examples = ["harness config set chat_model qwen3:14b", "harness config set memory 4g"];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ConfigSet);
    const [file] = this.host.places.configFiles;
    await setSetting(file, args.key, args.value);
    if (flags.json) answerJson({ key: args.key, file });
    else answer(`${args.key} is set in ${file}`);
    const variable = envNameOf(settingPath(args.key));
    if (this.host.env[variable]) stderr.write(`note: ${variable} is set and overrides the file\n`);
  }
}
