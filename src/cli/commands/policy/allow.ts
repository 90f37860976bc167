import { allowCommand, typedCommand, nextCommand, noCommand } from "../../../app/project/policy-commands.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { visible, visibleLine } from "../../../core/visible.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { judgingFor, settingFlags } from "../../settings.ts";

export class PolicyAllow extends HarnessCommand {
  static override summary = "Allow exactly this command from now on, with rules in your policy file.";
  static override description =
    "Writes the narrowest possible rules to the policy file in your settings, with the command as their example, and shows them. A command that is denied, already allowed, or not understood well enough for a rule is refused: the exit code is 2, and nothing is written.";
  static override usage = "policy allow [FLAGS] -- CMD...";
  static override flags = { cwd: settingFlags.cwd };
  static override examples = ["harness policy allow -- npm run build"];

  async run(): Promise<void> {
    const { flags: argv, text } = typedCommand(this.argv);
    const { flags } = await this.parse(PolicyAllow, [...argv]);
    if (text === undefined) throw noCommand("harness policy allow -- npm run build");
    const made = await allowCommand(this.host, text, await judgingFor(this.host, flags));
    if (made.kind === "refused")
      throw new HarnessError(
        EXIT.usage,
        `no rule was written: ${visibleLine(made.reason)}`,
        nextCommand("check --explain", text, flags),
      );
    const { file, rules } = made;
    if (flags.json) answerJson({ file, rules });
    else answer(`${visible(file)}\n\n${made.text}`);
  }
}
