/**
 * What is run when somebody installs, builds or tests: scripts, the files that they call, and variables that load
 * code.
 */
import { folderBefore, namesFrom } from "../core/file-names.ts";
import { dangersIn, type Runs } from "./look/danger.ts";
import type { Findings, LookedAtFile } from "./look/looked-at.ts";

/** Something that is run: a command line, or a file as a whole. */
export interface Script {
  /** The file that has the command, or that is run. */
  readonly path: string;
  readonly line?: number;
  /** What runs it, as a person knows it: `npm postinstall`. */
  readonly what: string;
  readonly text: string;
  readonly runs: Runs;
  /** Other commands by their names, as `npm run` finds them. */
  readonly named?: ReadonlyMap<string, string>;
}

export interface RepositoryTree {
  readonly has: (path: string) => boolean;
  readonly read: (path: string) => Promise<LookedAtFile | undefined>;
}

/** Reads one kind of file. */
export type VetReader = (
  file: LookedAtFile,
  look: { readonly tree: RepositoryTree; readonly scripts: Scripts; readonly found: Findings },
) => Promise<void> | void;

/** Calls that are followed: from a command to a file, and from that file to one more. */
const MAX_HOPS = 2;
/** Most files that one command leads to. */
const MAX_CALLED = 12;
/** Most characters that are looked at in all scripts together. */
const MAX_TEXT = 64 * 2 ** 20;
const ENDINGS = ["", ".js", ".cjs", ".mjs", ".ts", ".py", ".sh", "/index.js"];

/** Looks at what is run, and at the files that it calls. */
export class Scripts {
  readonly #found: Findings;
  readonly #tree: RepositoryTree;
  readonly #looked = new Set<string>();
  /** Path and name → the text of what runs by itself. */
  readonly seen = new Map<string, string>();
  #left = MAX_TEXT;

  constructor(found: Findings, tree: RepositoryTree) {
    this.#found = found;
    this.#tree = tree;
  }

  async look(script: Script): Promise<void> {
    if (script.runs === "itself") this.seen.set(`${script.path}\n${script.what}`, script.text);
    const way = [script.what];
    this.#dangers(script, way);
    const calls = { left: MAX_CALLED };
    await this.#follow(script, { way, hops: MAX_HOPS, calls });
  }

  /** Files of the tree that a text names, relative to the folder of `path`. */
  filesIn(text: string, path: string): readonly string[] {
    return [...filesCalled(text, path, this.#tree)];
  }

  #dangers(script: Script, way: readonly string[]): void {
    const { path, text, runs, line } = script;
    const key = `${path}\n${line ?? 0}\n${runs}\n${text.length}\n${text.slice(0, 200)}`;
    if (this.#looked.has(key)) return;
    this.#looked.add(key);
    this.#left -= text.length;
    if (this.#left < 0) {
      this.#found.add("look.more", "there are more scripts than were examined");
      return;
    }
    for (const danger of dangersIn(text, runs))
      this.#found.add(danger.rule, `${danger.text} (${way.join(" → ")})`, {
        path,
        line: (line ?? 1) + danger.line - 1,
      });
  }

  async #follow(script: Script, { way, hops, calls }: CallPath): Promise<void> {
    if (hops === 0) return;
    for (const [, name = ""] of script.text.matchAll(NAMED)) {
      const text = script.named?.get(name);
      if (text === undefined || way.includes(name)) continue;
      const calledScript = { ...script, text };
      this.#dangers(calledScript, [...way, name]);
      await this.#follow(calledScript, { way: [...way, name], hops: hops - 1, calls });
    }
    for (const path of filesCalled(script.text, script.path, this.#tree)) {
      if (path === script.path || way.includes(path)) continue;
      if ((calls.left -= 1) < 0) return;
      const file = await this.#tree.read(path);
      if (file?.text === undefined) continue;
      const next: Script = { path, what: path, text: file.text, runs: runsOf(script, path, way) };
      this.#dangers(next, [...way, path]);
      await this.#follow(next, { way: [...way, path], hops: hops - 1, calls });
    }
  }
}

interface CallPath {
  readonly way: readonly string[];
  readonly hops: number;
  readonly calls: { left: number };
}

/** A command for tests, or a file with such a name. */
const TEST = /(?:^|[\s/_.-])(?:tests?|specs?|__tests__)(?:$|[:/_.-])/i;
/** Files that a command for tests leads to are `tried` rather than `asked`. */
const runsOf = ({ runs }: Script, path: string, [command = ""]: readonly string[]): Runs =>
  runs === "asked" && (TEST.test(command) || TEST.test(path)) ? "tried" : runs;
const NAMED = /\b(?:npm|yarn|pnpm|bun)\s+(?:run(?:-script)?\s+)?([\w:.-]{1,80})/g;
/** Words of a command, and texts between quotes in code. */
const WORDS = /[^\s"'`;|&()<>=,$]{2,300}/g;
/** A text with more words is a bundle, which contains its own files. */
const MAX_WORDS = 20_000;

/** Files of the tree that a text names, as they would be found from the folder that it is run in. */
function* filesCalled(command: string, file: string, tree: RepositoryTree): Generator<string> {
  const seen = new Set<string>();
  const folders = foldersOf(file);
  const text = command.replaceAll(TOP_FOLDER, "./");
  let words = 0;
  for (const [word] of text.matchAll(WORDS)) {
    if ((words += 1) > MAX_WORDS) return;
    if (!/[./]/.test(word) && !/^[\w-]+$/.test(word)) continue;
    for (const folder of folders) {
      const base = joinPath(folder, word);
      if (base === undefined || base === "" || seen.has(base)) continue;
      seen.add(base);
      // A bare word is a file only where it is written as one.
      const endings = /[./]/.test(word) ? ENDINGS : [""];
      const path = endings.map((ending) => base + ending).find((each) => tree.has(each));
      if (path !== undefined && !SETTINGS.test(path)) yield path;
    }
  }
}

/** Names that tools have for the folder that they were started in, or for the project's. */
const TOP_FOLDER =
  /\$(?:\{(?:workspace(?:Folder|Root)|PWD|CURDIR|CLAUDE_PROJECT_DIR|GITHUB_WORKSPACE|INIT_CWD|project\.basedir|basedir|rootDir|projectDir|(?:CMAKE|PROJECT)_(?:CURRENT_)?SOURCE_DIR)\}|(?:PWD|CLAUDE_PROJECT_DIR|GITHUB_WORKSPACE|INIT_CWD|rootDir|projectDir)\b|\((?:CURDIR|PWD|SRCDIR|MSBuild\w{1,40}Directory|SolutionDir|ProjectDir)\)|(?:ProjectFileDir|PROJECT_DIR)\$)\/?/g;

/** The file's own folder and, for settings of a tool, the folder that these settings lie in. */
function foldersOf(file: string): readonly string[] {
  const own = folderBefore(file);
  const hidden = /(?:^|\/)\.[\w-]/.exec(own);
  return hidden === null ? [own] : [own, own.slice(0, hidden.index + (hidden[0].startsWith("/") ? 1 : 0))];
}

/** Files that are read rather than run. */
const SETTINGS = /(?:\.(?:json|ya?ml|toml|lock|md|txt|html?|css|svg|cfg|ini|xml|d\.ts)|LICENSE|README)$/i;

function joinPath(folder: string, word: string): string | undefined {
  if (word.startsWith("/")) return undefined;
  const names = folder.split("/").filter((each) => each !== "");
  return namesFrom(names, word)?.join("/");
}

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
