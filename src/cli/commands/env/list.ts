import { ownEnvironments } from "../../../app/boxes/own-boxes.ts";
import { environmentTable } from "../../../render/environment-lines.ts";
import { stderr, stdout } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags } from "../../settings.ts";

export class EnvList extends HarnessCommand {
  static override summary = "List your environments, with their sizes and what of each is in a registry.";
  static override description = "With --json, prints one object per line.";
  static override flags = { engine: settingFlags.engine };
  static override examples = ["harness env list", "harness env list --json"];

  async run(): Promise<void> {
    const { flags } = await this.parse(EnvList);
    const all = await ownEnvironments(this.host);
    if (flags.json) for (const each of all) answerJson(each);
    else if (all.length > 0) answer(environmentTable(all, stdout));
    else if (!flags.quiet) stderr.write("there are no environments\n");
  }
}
