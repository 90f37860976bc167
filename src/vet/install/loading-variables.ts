/** Variables through which a program loads code, or starts another program, before it does its own work. */

const ALWAYS =
  /^(?:LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_ENV|ENV|PROMPT_COMMAND|PYTHONSTARTUP|PERL5DB|GIT_SSH|GIT_SSH_COMMAND|GIT_ASKPASS|GIT_EXTERNAL_DIFF|GIT_PAGER|GIT_EDITOR|SSH_ASKPASS|LESSOPEN|RUSTC_WRAPPER|RUSTC_WORKSPACE_WRAPPER)$/;
/** Variables that load code through an option that names it. */
const OPTIONS: readonly (readonly [RegExp, RegExp])[] = [
  [
    /^NODE_OPTIONS$/,
    /(?:^|\s)["']?(?:-r|--require|--import|--(?:experimental-)?loader)[\s=]\s*["']?(?:\.{0,2}\/|data:|\$)/,
  ],
  [/^(?:PERL5OPT)$/, /-M|-I\s?[./]/],
  [/^(?:RUBYOPT)$/, /-r\s?[./]/],
  [
    /^(?:JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|MAVEN_OPTS|GRADLE_OPTS|SBT_OPTS)$/,
    /-javaagent|-agentpath|-agentlib|OnOutOfMemoryError|OnError/,
  ],
  [/^GOFLAGS$/, /-toolexec/],
  [/^LD_PRELOAD$/, /^(?!\/(?:usr\/|lib|opt\/))\s*\S/],
];

export const isVariableThatLoads = (name: string, value: string): boolean =>
  (ALWAYS.test(name) && /[/$\s]/.test(value) && !/^\/(?:usr|etc|bin)\//.test(value)) ||
  OPTIONS.some(([names, values]) => names.test(name) && values.test(value));

interface Variable {
  readonly name: string;
  readonly value: string;
  readonly line: number;
}

/** The variables of a file with one on each line, without quotes and `export`. */
export function* variablesIn(text: string): Generator<Variable> {
  let line = 0;
  for (const each of text.split("\n")) {
    line += 1;
    const [, name, value = ""] = /^\s*(?:export\s+)?(\w{1,100})\s*=\s*(.{0,2000})$/.exec(each) ?? [];
    if (name !== undefined) yield { name, value: value.trim().replace(/^(["'])(.*)\1$/, "$2"), line };
  }
}
