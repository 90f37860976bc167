import { chooseRecipe } from "../../../app/environment-recipe.ts";
import { runWorkspace } from "../../../app/host.ts";
import { recipeLines } from "../../../render/tty/environment-lines.ts";
import { stdout } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags, workspaceOf } from "../../settings.ts";

export class EnvShow extends HarnessCommand {
  static override summary =
    "Show what an environment for the current folder is made of, and where each line came from.";
  static override description = "Nothing is built and nothing of the project is run.";
  static override flags = { cwd: settingFlags.cwd, env: settingFlags.env };
  static override examples = [
    "harness env show",
    "harness env show --json",
    "harness env show --env backend",
  ];

  async run(): Promise<void> {
    const { flags } = await this.parse(EnvShow);
    const workspace = await runWorkspace(workspaceOf(flags), "harness env show --cwd FOLDER");
    const chosen = await chooseRecipe(this.host, workspace, flags.env ?? null);
    const { files, ...told } = chosen;
    if (flags.json)
      answerJson({ workspace, ...told, files: files.map(({ path, hash }) => ({ path, hash })) });
    else answer(recipeLines(chosen, stdout));
  }
}
