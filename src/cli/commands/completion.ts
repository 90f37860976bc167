import { Args } from "@oclif/core";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { completionScript, SHELLS } from "../completion/completion-scripts.ts";

export class Completion extends HarnessCommand {
  static override summary = "Print a script that lets your shell complete commands, flags and their values.";
  static override description =
    'For bash, in ~/.bashrc: eval "$(harness completion bash)". For zsh, in ~/.zshrc after compinit: eval "$(harness completion zsh)". For fish, in ~/.config/fish/config.fish: harness completion fish | source. When you press Tab, the shell asks the harness in your PATH. Sessions, models, MCP servers and settings come from this machine\'s own files; no network, engine or model is asked, and nothing of a project is read.';
  static override args = {
    shell: Args.string({
      required: true,
      options: [...SHELLS],
      description: "shell to print the script for",
      ignoreStdin: true,
    }),
  };
  static override examples = [
    "harness completion bash > ~/.local/share/bash-completion/completions/harness",
    "harness completion zsh > ~/.zfunc/_harness",
    "harness completion fish > ~/.config/fish/completions/harness.fish",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Completion);
    const shell = SHELLS.find((each) => each === args.shell) ?? "bash";
    const script = completionScript(shell);
    if (flags.json) answerJson({ shell, script });
    else answer(script);
  }
}
