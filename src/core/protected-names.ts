/** A name that host programs obey. `*` at one end stands for any text. Names are lower-case. */
export interface ProtectedName {
  readonly name: string;
  /** `root`: only at the top of the workspace; `anywhere`: in every folder that a person may open or enter. */
  readonly where: "root" | "anywhere";
  /** The host program that runs or obeys it. */
  readonly why: string;
}

const anywhere = (name: string, why: string): ProtectedName => ({ name, where: "anywhere", why });
const atRoot = (name: string, why: string): ProtectedName => ({ name, where: "root", why });

const AGENT = "another coding agent: its permissions, hooks, commands and servers";
const EDITOR = "an editor: tasks, debuggers and tool paths that it starts";
const SHELL = "a shell started with this folder as its home";

/** The whole table. A name that is not listed is writable. */
export const PROTECTED: readonly ProtectedName[] = [
  anywhere(".git", "git: hooks, filters, fsmonitor and aliases of its configuration"),
  anywhere(".gitmodules", "git: addresses and update commands of submodules"),
  anywhere(".githooks", "git: a usual core.hooksPath"),
  anywhere(".husky", "git: the hooks of husky, a usual core.hooksPath"),
  atRoot(".gitconfig", "git started with this folder as its home"),
  anywhere(".hg", "mercurial: hooks and extensions of hgrc"),
  anywhere(".jj", "jujutsu: aliases and tools of its configuration"),
  anywhere(".harness", "harness: settings of the project"),
  atRoot(".harnessignore", "harness: what the model may not see"),
  anywhere(".vscode", EDITOR),
  anywhere("*.code-workspace", EDITOR),
  anywhere(".idea", EDITOR),
  anywhere(".fleet", EDITOR),
  anywhere(".zed", EDITOR),
  anywhere(".devcontainer", "an editor: commands run on the host before the container is made"),
  anywhere(".devcontainer.json", "an editor: commands run on the host before the container is made"),
  anywhere(".claude", AGENT),
  anywhere(".codex", AGENT),
  anywhere(".agents", AGENT),
  anywhere(".gemini", AGENT),
  anywhere(".cursor", AGENT),
  anywhere(".windsurf", AGENT),
  anywhere(".opencode", AGENT),
  anywhere(".aider*", AGENT),
  anywhere(".mcp.json", "coding agents: servers that they start on the host"),
  anywhere(".envrc", "direnv: run by the shell on entering the folder"),
  anywhere("mise.toml", "mise: tools, tasks and environment on entering the folder"),
  anywhere(".mise.toml", "mise: tools, tasks and environment on entering the folder"),
  anywhere(".mise", "mise: tools, tasks and environment on entering the folder"),
  anywhere("mise.local.toml", "mise: tools, tasks and environment on entering the folder"),
  anywhere(".mise.local.toml", "mise: tools, tasks and environment on entering the folder"),
  atRoot(".profile", SHELL),
  atRoot(".bashrc", SHELL),
  atRoot(".bash_profile", SHELL),
  atRoot(".bash_login", SHELL),
  atRoot(".bash_logout", SHELL),
  atRoot(".zshrc", SHELL),
  atRoot(".zshenv", SHELL),
  atRoot(".zprofile", SHELL),
  atRoot(".zlogin", SHELL),
  atRoot(".zlogout", SHELL),
  atRoot(".kshrc", SHELL),
  atRoot(".cshrc", SHELL),
  atRoot(".tcshrc", SHELL),
  atRoot(".inputrc", SHELL),
];

/** Folders full of third-party code, never opened as projects: in them only git repositories count. */
export const isDependencies = (name: string): boolean => DEPENDENCIES.has(name.toLowerCase());

export const DEPENDENCIES: ReadonlySet<string> = new Set([
  "node_modules",
  "bower_components",
  ".venv",
  "venv",
  "site-packages",
  ".tox",
  ".yarn",
]);

const EXACT = new Map(
  PROTECTED.filter(({ name }) => !name.includes("*")).map((entry) => [entry.name, entry]),
);
const PATTERNS = PROTECTED.filter(({ name }) => name.includes("*")).map((entry) => ({
  entry,
  fits: entry.name.startsWith("*")
    ? (name: string) => name.endsWith(entry.name.slice(1))
    : (name: string) => name.startsWith(entry.name.slice(0, -1)),
}));

/** Looks a name up; `atTop` when it lies directly in the workspace. */
export const protectedName = (name: string, atTop: boolean): ProtectedName | undefined =>
  protectedFolded(fold(name), atTop);

function byPattern(folded: string): ProtectedName | undefined {
  for (const { entry, fits } of PATTERNS) if (fits(folded)) return entry;
  return undefined;
}

/** The same for a name that is folded already. */
export function protectedFolded(folded: string, atTop: boolean): ProtectedName | undefined {
  const entry = EXACT.get(folded) ?? byPattern(folded);
  return entry?.where === "root" && !atTop ? undefined : entry;
}

// Characters that HFS+ ignores when it compares names.
const IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;
const PLAIN = /^[\u0020-\u007e]*$/;

/** One spelling for all those that a case-insensitive file system treats as the same name. */
export function fold(name: string): string {
  const plain = PLAIN.test(name)
    ? name.toLowerCase()
    : name.replace(IGNORED, "").normalize("NFKC").toUpperCase().toLowerCase();
  if (plain === "git~1") return ".git";
  // Windows drops trailing dots and spaces, and `::$INDEX_ALLOCATION` names the folder itself.
  return /[. :]/.test(plain.slice(1)) ? trimmed(plain.replace(/::\$index_allocation$/, "")) : plain;
}

/** A loop, because a pattern for trailing characters would start again at each dot. */
function trimmed(name: string): string {
  let end = name.length;
  while (end > 0 && (name[end - 1] === "." || name[end - 1] === " ")) end -= 1;
  return name.slice(0, end);
}

const SPACE = 0x20;
const DOT = 0x2e;
const SLASH = 0x2f;
const COLON = 0x3a;
const LAST = 0x7d;

/** Whether `fold` only lower-cases: no Windows spelling (`:`, `~`), no dot or space at a name's end. */
function isSimple(path: string): boolean {
  for (let at = 0; at < path.length; at += 1) {
    const code = path.charCodeAt(at);
    if (code < SPACE || code > LAST || code === COLON) return false;
    if (code !== DOT && code !== SPACE) continue;
    const next = path.charCodeAt(at + 1);
    if (at + 1 === path.length || next === DOT || next === SPACE || next === SLASH) return false;
  }
  return true;
}

/** `fold` for every name of a path. */
export const foldPath = (path: string): string =>
  isSimple(path) ? path.toLowerCase() : path.split("/").map(fold).join("/");
