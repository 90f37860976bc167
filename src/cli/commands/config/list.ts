import { SETTING_KEYS } from "../../../config/settings-schema.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { configFor, printable } from "../../settings.ts";

export class ConfigList extends HarnessCommand {
  static override summary = "Show every setting, its value and who set it.";
  static override examples = ["harness config list", "harness config list --json"];

  async run(): Promise<void> {
    const { flags } = await this.parse(ConfigList);
    const { settings, origins } = await configFor({});
    if (flags.json) {
      const rows = SETTING_KEYS.map((key) => [key, { value: settings[key], origin: origins[key] }]);
      answerJson(Object.fromEntries(rows));
      return;
    }
    const rows = SETTING_KEYS.map((key) => [key, printable(key, settings[key]), origins[key] ?? ""] as const);
    const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
    answer(
      rows
        .map((row) =>
          row
            .map((cell, column) => cell.padEnd(widths[column] ?? 0))
            .join("  ")
            .trimEnd(),
        )
        .join("\n"),
    );
  }
}
