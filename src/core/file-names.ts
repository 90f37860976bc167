/** Names and paths of files, treated purely as text: no link is followed, and nothing is looked up. */

const SLASH = 0x2f;

/** The part after the last slash. */
export const lastName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** The part up to and including the last slash; empty when there is none. */
export const folderBefore = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1);

/** Both paths have no `.` or `..`, and are absolute or start at the same place. A folder is inside itself. */
export const isInside = (folder: string, path: string): boolean =>
  folder === "/"
    ? path.startsWith("/")
    : path.startsWith(folder) && (path.length === folder.length || path.charCodeAt(folder.length) === SLASH);

/**
 * The rest of the path below the folder, without a leading slash; empty for the folder itself. The path must lie
 * inside.
 */
export const pathBelow = (folder: string, path: string): string =>
  path.slice(folder === "/" ? 1 : folder.length + 1);

/** A path below the folder, relative to it; any other path unchanged. */
export const asSeenFrom = (folder: string, path: string): string =>
  path !== folder && isInside(folder, path) ? pathBelow(folder, path) : path;

/** The names of a path, starting from those of a folder; undefined when it leads above the first one. */
export function namesFrom(folder: readonly string[], path: string): readonly string[] | undefined {
  const names = [...folder];
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined) return undefined;
  }
  return names;
}

/**
 * A name that host programs obey, or a name in a folder of a certain name (`.github/hooks`). `*` at one end stands for
 * any text. Names are lower-case.
 */
export interface ProtectedName {
  readonly name: string;
  /** `root`: only at the top of the workspace; `anywhere`: in every folder that a person may open or enter. */
  readonly where: "root" | "anywhere";
  /** The host program that runs or obeys it. */
  readonly why: string;
}

const anywhere = (name: string, why: string): ProtectedName => ({ name, where: "anywhere", why });
const atRoot = (name: string, why: string): ProtectedName => ({ name, where: "root", why });

const MISE = "mise: tools, tasks and environment on entering the folder";
const AGENT = "another coding agent: its permissions, hooks, commands and servers";
const EDITOR = "an editor: tasks, debuggers and tool paths that it starts";
const VIM = "Vim and Neovim, which run it when they are started in this folder";
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
  anywhere(".sl", "sapling: hooks and aliases of its configuration"),
  anywhere(".harness", "harness: settings of the project"),
  atRoot(".harnessignore", "harness: what the model may not see"),
  anywhere(".vscode", EDITOR),
  anywhere("*.code-workspace", EDITOR),
  anywhere(".idea", EDITOR),
  anywhere(".fleet", EDITOR),
  anywhere(".zed", EDITOR),
  anywhere(".helix", EDITOR),
  anywhere(".theia", EDITOR),
  anywhere(".exrc", VIM),
  anywhere(".nvimrc", VIM),
  anywhere(".nvim.lua", VIM),
  anywhere(".lvimrc", VIM),
  anywhere(".dir-locals.el", "Emacs: settings, some with code, for files that are opened below this folder"),
  anywhere(
    ".dir-locals-2.el",
    "Emacs: settings, some with code, for files that are opened below this folder",
  ),
  anywhere(".devcontainer", "an editor: commands run on the host before the container is made"),
  anywhere(".devcontainer.json", "an editor: commands run on the host before the container is made"),
  anywhere(".claude", AGENT),
  anywhere(".codex", AGENT),
  anywhere(".agents", AGENT),
  anywhere(".gemini", AGENT),
  anywhere(".cursor", AGENT),
  anywhere(".windsurf", AGENT),
  anywhere(".opencode", AGENT),
  anywhere("opencode.json", AGENT),
  anywhere("opencode.jsonc", AGENT),
  anywhere(".crush", AGENT),
  anywhere(".crush.json", AGENT),
  anywhere("crush.json", AGENT),
  anywhere(".qwen", AGENT),
  anywhere(".roo", AGENT),
  anywhere(".kilocode", AGENT),
  anywhere(".kiro", AGENT),
  anywhere(".continue", AGENT),
  anywhere(".amp", AGENT),
  anywhere(".amazonq", AGENT),
  anywhere(".augment", AGENT),
  anywhere(".factory", AGENT),
  anywhere(".goose", AGENT),
  anywhere(".junie", AGENT),
  anywhere(".trae", AGENT),
  anywhere(".pi", AGENT),
  anywhere(".vibe", AGENT),
  anywhere(".clinerules", AGENT),
  anywhere(".aider*", AGENT),
  anywhere(".mcp.json", "coding agents: servers that they start on the host"),
  anywhere(".envrc", "direnv: run by the shell on entering the folder"),
  anywhere("mise.toml", MISE),
  anywhere(".mise.toml", MISE),
  anywhere(".mise", MISE),
  anywhere("mise.local.toml", MISE),
  anywhere(".mise.local.toml", MISE),
  anywhere(".config/mise", MISE),
  anywhere("mise/config.toml", MISE),
  anywhere(".github/hooks", AGENT),
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

const EXACT = new Map(PROTECTED.filter(({ name }) => !/[*/]/.test(name)).map((entry) => [entry.name, entry]));
/** By the last of two names. */
const IN_FOLDER = new Map(
  PROTECTED.filter(({ name }) => name.includes("/")).map((entry) => [
    lastName(entry.name),
    { entry, folder: entry.name.slice(0, -lastName(entry.name).length - 1) },
  ]),
);
const PATTERNS = PROTECTED.filter(({ name }) => name.includes("*")).map((entry) => ({
  entry,
  fits: entry.name.startsWith("*")
    ? (name: string) => name.endsWith(entry.name.slice(1))
    : (name: string) => name.startsWith(entry.name.slice(0, -1)),
}));

/** Looks a name up; `atTop` when it lies directly in the workspace, `folder`: the name of the folder that it lies in. */
export function protectedName(name: string, atTop: boolean, folder = ""): ProtectedName | undefined {
  const folded = foldName(name);
  return protectedFolded(folded, atTop, IN_FOLDER.has(folded) ? foldName(folder) : "");
}

/** The first protected name of a path below the workspace. */
export function protectedIn(names: readonly string[]): ProtectedName | undefined {
  for (const [at, name] of names.entries()) {
    const entry = protectedName(name, at === 0, names[at - 1]);
    if (entry !== undefined) return entry;
  }
  return undefined;
}

function byPattern(folded: string): ProtectedName | undefined {
  for (const { entry, fits } of PATTERNS) if (fits(folded)) return entry;
  return undefined;
}

/** The same for names that are folded already. */
export function protectedFolded(folded: string, atTop: boolean, folder: string): ProtectedName | undefined {
  const entry = EXACT.get(folded) ?? byPattern(folded);
  if (entry !== undefined) return entry.where === "root" && !atTop ? undefined : entry;
  const inFolder = IN_FOLDER.get(folded);
  return inFolder?.folder === folder ? inFolder.entry : undefined;
}

// Characters that HFS+ ignores when it compares names.
const IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;
const PLAIN = /^[\u0020-\u007e]*$/;

/** One spelling for all those that a case-insensitive file system treats as the same name. */
export function foldName(name: string): string {
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
const COLON = 0x3a;
const LAST_CODE = 0x7d;

/** Whether `fold` only lower-cases: no Windows spelling (`:`, `~`), no dot or space at a name's end. */
function isSimple(path: string): boolean {
  for (let at = 0; at < path.length; at += 1) {
    const code = path.charCodeAt(at);
    if (code < SPACE || code > LAST_CODE || code === COLON) return false;
    if (code !== DOT && code !== SPACE) continue;
    const next = path.charCodeAt(at + 1);
    if (at + 1 === path.length || next === DOT || next === SPACE || next === SLASH) return false;
  }
  return true;
}

/** `fold` for every name of a path. */
export const foldPath = (path: string): string =>
  isSimple(path) ? path.toLowerCase() : path.split("/").map(foldName).join("/");

const TESTS =
  /(?:_test\.(?:go|py|rb|exs)|(?:^|\/)test_[^/]*\.py|[.-](?:test|spec)\.[cm]?[jt]sx?|Tests?\.(?:java|kt|cs|php|swift)|_spec\.rb)$/;
const SOURCE = /\.(?:[cm]?[jt]sx?|py|rs|rb|php|java|kt|go|c|cc|cpp)$/;
const IN_TESTS = /(?:^|\/)(?:tests?|__tests__|spec)\//;

/** Whether the path is a test, by the names that test runners look for. */
export const isTest = (path: string): boolean =>
  TESTS.test(path) || (SOURCE.test(path) && IN_TESTS.test(path));

/** Whatever lies where tests are: expected results, shared code, and programs that are tests by their name. */
const MEASURES =
  /(?:^|\/)(?:tests?|__tests__|__snapshots__|spec|specs|fixtures|testdata|t)\/|(?:^|\/)(?:conftest\.py|tests?\.\w+)$|(?:^|[/_.-])tests?[_.-][^/]*$|[_-]tests?\.\w+$|\.(?:snap|bats|t)$|^(?:scripts\/|tools\/|ci\/)?(?:checks?|verify)\.\w+$/i;

/** Files whose names say how tests are run, or that a test runner loads by itself. */
const RUNS_TESTS =
  /(?:^|\/)(?:conftest\.py|pytest\.ini|tox\.ini|setup\.cfg|\.mocharc\.\w+|(?:jest|vitest|karma|ava|playwright)\.config\.\w+)$/;

const SHADOWS = /^(?:unittest|pytest|sitecustomize|usercustomize)(?:\.py$|\/)/;

/** Whether the file would be loaded in place of the test runner, or before it, because of its name. */
export const isInPlaceOfRunner = (path: string): boolean => SHADOWS.test(path);

/** Whether the file decides which tests run, and how they end. */
export const isRunnerFile = (path: string): boolean => RUNS_TESTS.test(path) || SHADOWS.test(path);

/** Whether the file measures others' work: a test, a part of a test, or what runs tests. */
export const isOfTests = (path: string): boolean => isTest(path) || MEASURES.test(path) || isRunnerFile(path);

/** Names that look like others: invisible characters, changes of text direction, letters of other scripts. */

const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Variation_Selector}\u115F\u1160\u3164\uFFA0]/gu;

/** Letters that most fonts draw like an ASCII character; those that Unicode itself equates (NFKC) are not listed. */
const DRAWN: Readonly<Record<string, string>> = {
  a: "аαɑ",
  b: "Ьƅ",
  c: "сϲᴄ",
  d: "ԁ",
  e: "еҽ",
  g: "ɡց",
  h: "һհ",
  i: "іιı",
  j: "јϳ",
  k: "κк",
  l: "ӏǀ",
  n: "ոп",
  o: "оοօᴏ",
  p: "рρ",
  q: "ԛզ",
  r: "гᴦ",
  s: "ѕꜱ",
  t: "τт",
  u: "υսᴜ",
  v: "νѵᴠ",
  w: "ԝᴡ",
  x: "хχ",
  y: "уүγ",
  z: "ᴢ",
  "-": "‐‑‒–—−",
  "/": "⁄∕",
  ".": "․",
};
const ASCII_LOOKS: ReadonlyMap<string, string> = new Map(
  Object.entries(DRAWN).flatMap(([plain, drawn]) => Array.from(drawn, (each) => [each, plain] as const)),
);

/** The ASCII character that a character looks like, if it is not ASCII itself. */
const plainOf = (sign: string): string | undefined => {
  const same = sign.normalize("NFKC");
  return ASCII_LOOKS.get(sign) ?? (same !== sign && /^[!-~]$/.test(same) ? same : undefined);
};

/** Names with the same skeleton look the same, or nearly so, and may be the same file on another system. */
export const skeletonOf = (name: string): string =>
  Array.from(
    name.replaceAll(HIDDEN, "").normalize("NFC").toLowerCase(),
    (sign) => plainOf(sign) ?? sign,
  ).join("");

/** Why a person may misread a name; undefined when nobody would. */
export function whyDeceptive(name: string): string | undefined {
  const hidden = [...new Set(name.match(HIDDEN))];
  if (hidden.length > 0) return `it has invisible characters: ${hidden.map(codeOf).join(", ")}`;
  const odd = [...new Set(name.normalize("NFC"))].filter((sign) => plainOf(sign.toLowerCase()) !== undefined);
  // A word in another script also has letters that look like no ASCII letter.
  const looks = skeletonOf(name);
  if (odd.length === 0 || !/^[ -~]*$/.test(looks)) return undefined;
  return `it looks like ${JSON.stringify(looks)}, with ${odd.map(codeOf).join(", ")} in it`;
}

const codeOf = (sign: string): string =>
  `U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
