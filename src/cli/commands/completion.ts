import { Args } from "@oclif/core";
import { answer, answerJson, HarnessCommand } from "../command.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

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

const completionScript = (shell: Shell): string => ({ bash: BASH, zsh: ZSH, fish: FISH })[shell];

/*
 * All three scripts ask the harness that PATH finds, never one that the line names: a tab after `./harness` in a
 * strange repository starts nothing of that repository. The typed line is passed as one text, and the answer is
 * inserted as it is: neither is ever executed.
 */

const BASH = String.raw`# harness: completion for bash. In ~/.bashrc:  eval "$(harness completion bash)"
_harness_completion() {
  local answer kind="" value rest
  COMPREPLY=()
  answer="$(command harness __complete "${"$"}{COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null </dev/null)" || return 0
  while IFS=$'\t' read -r value rest; do
    if [ -z "$kind" ]; then kind="$value"; else COMPREPLY+=("$value"); fi
  done <<<"$answer"
  case "$kind" in
    files)
      compopt -o bashdefault -o default 2>/dev/null ||
        while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "$2")
      ;;
    folders)
      compopt -o dirnames 2>/dev/null ||
        while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -d -- "$2")
      ;;
    *)
      # A variable's name goes on with its host.
      case "${"$"}{COMPREPLY[0]-}" in *@) compopt -o nospace 2>/dev/null ;; esac
      ;;
  esac
  return 0
}
complete -o nosort -F _harness_completion harness 2>/dev/null || complete -F _harness_completion harness
`;

const ZSH = String.raw`#compdef harness
# harness: completion for zsh. In ~/.zshrc, behind compinit:  eval "$(harness completion zsh)"
# or as a file _harness in a folder of fpath.
_harness() {
  local answer row value
  local -a rows values shown
  answer="$(command harness __complete "${"$"}{(j: :)words[1,CURRENT-1]} $QIPREFIX$PREFIX" 2>/dev/null </dev/null)" || return 1
  rows=("${"$"}{(@f)answer}")
  case "$rows[1]" in
    files)
      [[ "$PREFIX" == --*=* ]] && compset -P '*='
      _files
      ;;
    folders)
      [[ "$PREFIX" == --*=* ]] && compset -P '*='
      _files -/
      ;;
    *)
      for row in "${"$"}{(@)rows[2,-1]}"; do
        value="${"$"}{row%%$'\t'*}"
        values+=("$value")
        if [[ "$row" == *$'\t'* ]]; then shown+=("$value  -- ${"$"}{row#*$'\t'}"); else shown+=("$value"); fi
      done
      (( $#values )) || return 1
      if [[ "$values[1]" == *@ ]]; then compadd -S '' -l -d shown -a values; else compadd -V harness -l -d shown -a values; fi
      ;;
  esac
}
if [[ "${"$"}{funcstack[1]-}" == _harness ]]; then
  _harness "$@"
elif (( $+functions[compdef] )); then
  compdef _harness harness
fi
`;

const FISH = String.raw`# harness: completion for fish. In ~/.config/fish/config.fish:  harness completion fish | source
function __harness_completion
    set -l line (commandline -cp | string collect)
    set -l answer (command harness __complete "$line" 2>/dev/null </dev/null)
    or return 1
    # The word as it is meant: paths are looked for without its quotes, and fish quotes what it puts in place.
    set -l token (string unescape -- (commandline -ct | string collect) | string collect)
    set -l head (string match -r -- '^--[^=]+=' "$token")
    set -l tail (string replace -r -- '^--[^=]+=' '' "$token")
    # Where a path starts, as it is typed and as it is.
    set -l start
    set -l home
    if string match -q -- '~/*' "$tail"
        set tail "$HOME/"(string sub -s 3 -- "$tail")
        set start '~/'
        set home "$HOME/"
    end
    set -l from (math (string length -- "$home") + 1)
    switch "$answer[1]"
        case files
            for found in (__fish_complete_path "$tail")
                printf '%s\n' "$head$start"(string sub -s $from -- $found)
            end
        case folders
            for found in (__fish_complete_directories "$tail" '')
                printf '%s\n' "$head$start"(string sub -s $from -- $found)
            end
        case '*'
            test (count $answer) -gt 1; and printf '%s\n' $answer[2..-1]
    end
end
complete -c harness -e
complete -c harness -f -k -a '(__harness_completion)'
`;
