import { printable, type SettingKey, SETTING_KEYS } from "../../../config/settings-schema.ts";
import { visibleWhole } from "../../../core/visible.ts";
import { alignedRows } from "../../../render/tty/columns.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { configFor } from "../../settings.ts";

/** Longer values exceed their column: few terminals are wide enough for all. */
const MAX_VALUE_WIDTH = 48;

export class ConfigList extends HarnessCommand {
  static override summary = "Show every setting with its value and where the value comes from.";
  static override examples = ["harness config list", "harness config list --json"];

  async run(): Promise<void> {
    const { flags } = await this.parse(ConfigList);
    const { settings, origins, project } = await configFor({});
    const ignored = new Map(project?.ignored.map(({ key, to }) => [key, to]));
    const ignoredOf = (key: SettingKey) =>
      ignored.has(key) ? { ignored: { value: ignored.get(key), origin: project?.file } } : {};
    if (flags.json) {
      const rows = SETTING_KEYS.map((key) => [
        key,
        { value: settings[key], origin: origins[key], ...ignoredOf(key) },
      ]);
      answerJson(Object.fromEntries(rows));
      return;
    }
    const rows = SETTING_KEYS.flatMap((key) => {
      const counts = [key, printable(key, settings[key]), origins[key] ?? ""] as const;
      if (!ignored.has(key)) return [counts];
      const why = `ignored: ${project?.file} is not trusted (harness trust)`;
      return [counts, ["", visibleWhole(printable(key, ignored.get(key))), visibleWhole(why)] as const];
    });
    answer(alignedRows(rows, MAX_VALUE_WIDTH).join("\n"));
  }
}
