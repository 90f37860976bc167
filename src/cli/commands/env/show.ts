import { Flags } from "@oclif/core";
import { chooseRecipe } from "../../../app/boxes/workspace-environment.ts";
import { pushedImage } from "../../../app/boxes/pod-environment.ts";
import { runWorkspace } from "../../../app/host.ts";
import { environmentLog, environmentOf, noteFor } from "../../../app/boxes/own-boxes.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { visibleWhole } from "../../../core/visible.ts";
import { recipeLines, standingLines } from "../../../render/environment-lines.ts";
import { stdout } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { configFor, settingFlags, workspaceOf } from "../../settings.ts";

export class EnvShow extends HarnessCommand {
  static override summary =
    "Show what an environment for the current folder consists of, and where each line comes from.";
  static override description = "Builds nothing and runs nothing of the project.";
  static override flags = {
    cwd: settingFlags.cwd,
    env: settingFlags.env,
    log: Flags.boolean({ description: "show what the last build printed" }),
  };
  static override examples = ["harness env show", "harness env show --log", "harness env show --env backend"];

  async run(): Promise<void> {
    const { flags } = await this.parse(EnvShow);
    const workspace = runWorkspace(workspaceOf(flags), "harness env show --cwd FOLDER");
    const { settings } = await configFor(flags);
    const { env } = settings;
    if (flags.log) {
      const log = await environmentLog(this.host, workspace, env);
      if (log === undefined)
        throw new HarnessError(EXIT.failed, "no environment was built for this folder", "harness env build");
      if (flags.json) return answerJson({ workspace, log });
      return answer(
        log
          .split("\n")
          .map((line) => visibleWhole(line))
          .join("\n"),
      );
    }
    const [chosen, record] = await Promise.all([
      chooseRecipe(this.host, workspace, env),
      environmentOf(this.host, workspace, env),
    ]);
    const note = record === undefined ? undefined : await noteFor(this.host, { workspace, settings }, record);
    const { files, ...shown } = chosen;
    if (flags.json)
      answerJson({
        workspace,
        ...shown,
        files: files.map(({ path, hash }) => ({ path, hash })),
        built: record?.made ?? null,
        pushed: pushedImage(record) ?? null,
        note: note ?? null,
        installed: record?.installed ?? null,
      });
    else
      answer(`${recipeLines(chosen, stdout)}${standingLines(record, { note, pushed: pushedImage(record) })}`);
    return undefined;
  }
}
