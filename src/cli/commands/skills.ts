import { visibleLine } from "../../core/visible.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { settingFlags, workspaceOf } from "../settings.ts";

export class Skills extends HarnessCommand {
  static override summary = "List skills and slash commands: yours, and the project's trusted ones.";
  static override description =
    "Skills are folders with a SKILL.md; the model is told their names and descriptions. Commands are Markdown files that you type as /NAME. Both are read from skills/ and commands/ in your settings folder, ~/.agents and ~/.claude and, after `harness trust`, in the project's .harness, .agents and .claude. Whatever does not count is listed with the reason.";
  static override flags = { cwd: settingFlags.cwd };
  static override examples = ["harness skills", "harness skills --json"];

  async run(): Promise<void> {
    const { flags } = await this.parse(Skills);
    const { runWorkspace } = await import("../../app/host.ts");
    const { skillsAndCommands } = await import("../../app/project/skills-and-commands.ts");
    const folder = runWorkspace(workspaceOf(flags), "harness skills --cwd FOLDER");
    const { skills, commands, problems, untrusted } = await skillsAndCommands(this.host, folder);
    if (flags.json) return answerJson({ skills, commands, problems, untrusted });
    const lines = [
      ...skills.map((each) => `skill      ${wordsOf(each.name, each)}`),
      ...commands.map((each) => `command    ${wordsOf(`/${each.name}`, each)}`),
      ...problems.map(({ file, why }) => `unusable   ${file}: ${why}`),
      ...untrusted.map(({ kind, file, why }) => `untrusted  ${kind}, ${file}: ${why}; next: harness trust`),
    ];
    answer(
      lines.length === 0
        ? "there are no skills and no commands"
        : lines.map((line) => visibleLine(line)).join("\n"),
    );
  }
}

const WHOSE = { user: "yours", project: "the project's" };

const wordsOf = (
  name: string,
  { origin, place, description }: { origin: "user" | "project"; place: string; description: string },
): string => `${name}  (${WHOSE[origin]}, ${place})  ${description}`;
