import { fold } from "../../core/protected-names.ts";
import { lineAt, type LookedAtFile } from "./looked-at-file.ts";
import type { Found, LookRule } from "./rules.ts";

/** Looks at what git obeys in a tree: attributes, submodules, and settings and hooks that came along with a folder. */

const TRANSPORT = /^(?:ext|fd)::|^file:|^-|--upload-pack|--receive-pack|^\s*$|[\r\n\t\u0000]/;

interface Setting {
  readonly section: string;
  readonly key: string;
  readonly value: string;
  readonly line: number;
}

/** Reads the needed part of git's settings: `[section "name"]`, `key = value`, and values that continue after `\`. */
function* settingsIn(text: string): Generator<Setting> {
  let section = "";
  let line = 0;
  for (const each of text.replace(/\\\n/g, " ").split("\n")) {
    line += 1;
    const head = /^\s*\[\s*([\w.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\](.*)$/.exec(each);
    if (head !== null)
      section =
        head[2] === undefined ? (head[1] ?? "").toLowerCase() : `${(head[1] ?? "").toLowerCase()}.${head[2]}`;
    const pair = /^\s*([A-Za-z][\w-]*)\s*(?:=(.*))?$/.exec(head === null ? each : (head[3] ?? ""));
    if (pair !== null)
      yield { section, key: (pair[1] ?? "").toLowerCase(), value: unquoted(pair[2] ?? "true"), line };
  }
}

/** Removes the blanks around a value; a carriage return that is quoted or escaped stays. */
const unquoted = (value: string): string => value.trim().replace(/^"(.*)"$/s, "$1");

export function lookAtGitFile(file: LookedAtFile, found: Found): boolean {
  const { path, lower, text } = file;
  const names = path.split("/");
  const at = names.findIndex((name) => fold(name) === ".git");
  if (at !== -1) {
    lookAtOwn(file, names.slice(at + 1), found);
    return true;
  }
  if (lower === ".gitmodules" && text !== undefined) lookAtModules(path, text, found);
  if (lower === ".lfsconfig" && text !== undefined) lookAtLargeFiles(path, text, found);
  if (lower === ".gitattributes" && text !== undefined) lookAtAttributes(path, text, found);
  if (
    lower === "config" &&
    text !== undefined &&
    /^\s*\[core\]/m.test(text) &&
    /repositoryformatversion|\bbare\b/i.test(text)
  ) {
    found.add("git.bare", "git treats this folder as a repository", { path });
    lookAtSettings(path, text, found);
  }
  return false;
}

function lookAtModules(path: string, text: string, found: Found): void {
  for (const { section, key, value, line } of settingsIn(text)) {
    const name = section.replace(/^submodule\./, "");
    const setting = `${section} ${key} = ${value}`;
    const add = (rule: LookRule): void => found.add(rule, setting, { path, line });
    if (/(?:^|[\\/])\.\.(?:[\\/]|$)/.test(name) || name.startsWith("-")) add("git.submodule");
    else if (key === "update" && value.startsWith("!")) add("git.submodule");
    else if (
      key === "path" &&
      (/^[-/\\]|(?:^|[\\/])\.\.(?:[\\/]|$)|[\r\u0000-\u001f]|^[a-z]:/i.test(value) ||
        value.split(/[\\/]/).some((each) => fold(each) === ".git"))
    )
      add("git.submodule");
    else if (key === "url" && TRANSPORT.test(value)) add("git.submodule");
    else if (key === "url" && /^(?:http|git|ftp):\/\//.test(value)) add("deps.insecure");
  }
}

/** Looks at where git-lfs fetches from and sends to. */
function lookAtLargeFiles(path: string, text: string, found: Found): void {
  for (const { section, key, value, line } of settingsIn(text))
    if (/^(?:lfs|remote\..*)$/.test(section) && /^(?:url|pushurl|lfsurl|lfspushurl)$/.test(key)) {
      const insecure = /^http:\/\/(?!localhost|127\.)/.test(value);
      const rule = TRANSPORT.test(value) ? "git.setting" : insecure ? "deps.insecure" : "deps.elsewhere";
      found.add(rule, `large files come from ${value}`, { path, line });
    }
}

function lookAtAttributes(path: string, text: string, found: Found): void {
  for (const { 1: name = "", index } of text.matchAll(/^[^#\n]*\sfilter=([^\s]+)/gm))
    if (!/^(?:lfs|git-crypt|nbstripout|strip-notebook-output|jupyternotebook|annex|crypt)$/.test(name))
      found.add("git.filter", `the filter ${name}, if git's settings define it`, {
        path,
        line: lineAt(text, index),
      });
}

function lookAtOwn({ path, text, mode }: LookedAtFile, inner: readonly string[], found: Found): void {
  const [first = "", ...rest] = inner.map((each) => each.toLowerCase());
  const last = inner.at(-1)?.toLowerCase() ?? "";
  if (text === undefined) return;
  if (first === "" && leadsOut(path, text))
    found.add("git.directory", `it says ${text.slice(0, 100)}`, { path });
  else if (last === "config" || last === "config.worktree") lookAtSettings(path, text, found);
  else if ((first === "hooks" || rest.includes("hooks")) && !last.endsWith(".sample") && (mode & 0o111) !== 0)
    found.add(HOOK_OF_TOOLS.test(text) ? "git.hook" : "git.hook-here", text.slice(0, 200), { path });
  else if (last === "attributes") lookAtAttributes(path, text, found);
}

/**
 * Whether a `.git` file leads out of the tree. That of a linked worktree or submodule leads to a directory in the tree,
 * or is somebody's absolute path.
 */
function leadsOut(path: string, text: string): boolean {
  const target = /^gitdir: ([^\r\n]+)\n?$/.exec(text)?.[1];
  if (target === undefined) return true;
  const up = target.match(/(?:^|\/)\.\.(?=\/|$)/g)?.length ?? 0;
  return up >= path.split("/").length || TRANSPORT.test(target);
}

/** Hooks that git-lfs, husky, pre-commit and the like write into a repository when somebody installs them. */
const HOOK_OF_TOOLS =
  /\bgit lfs\b|\bhusky\b|\bpre-commit\b.*\bhook-impl\b|INSTALL_PYTHON|lefthook|simple-git-hooks|overcommit|yorkie/;

const RUNS =
  /^(?:core\.(?:fsmonitor|sshcommand|pager|editor|askpass|gitproxy|alternaterefscommand)|sequence\.editor|interactive\.difffilter|diff\.external|diff\..*\.(?:textconv|command)|filter\..*\.(?:clean|smudge|process)|merge\..*\.driver|(?:diff|merge)tool\..*\.cmd|gpg\.(?:.*\.)?program|credential(?:\..*)?\.helper|pager\..*|remote\..*\.(?:uploadpack|receivepack|vcs)|uploadpack\.packobjectshook|web\.browser|browser\..*\.cmd|man\..*\.cmd|trailer\..*\.(?:cmd|command)|submodule\..*\.update|init\.templatedir|sendemail\..*cmd|instaweb\.\w+)$/;
const HARMLESS =
  /^(?:true|false|cache(?: --.*)?|store|osxkeychain|manager(?:-core)?|libsecret|wincred|git-lfs (?:clean|smudge|filter-process).*|less(?: -\w+)*|cat|delta|vim?|nvim|nano|emacs|code --wait|checkout|rebase|merge|none|gpg2?|ssh-keygen|ssh|!gh auth git-credential|!\/usr\/bin\/gh auth git-credential)?$/;

function lookAtSettings(path: string, text: string, found: Found): void {
  for (const { section, key, value, line } of settingsIn(text)) {
    const name = `${section}.${key}`.toLowerCase();
    const rule = SETTINGS.find(([pattern, , harmless]) => pattern.test(name) && !harmless?.test(value))?.[1];
    if (rule !== undefined) found.add(rule, `${section}.${key} = ${value}`, { path, line });
  }
}

const USUAL_HOOKS = /^(?:\.husky(?:\/_)?|\.githooks|\.git\/hooks|\/dev\/null)\/?$/;

/** Name, rule, and values that are harmless; the first that fits counts. */
const SETTINGS: readonly (readonly [RegExp, LookRule, RegExp?])[] = [
  [/^core\.hookspath$/, "git.setting", USUAL_HOOKS],
  [/^alias\./, "git.runs", /^(?!!)/],
  [RUNS, "git.runs", HARMLESS],
  [/^core\.worktree$/, "git.setting", /^(?!\/|.*\.\.)|^(?:\.\.\/)+[\w./-]+$/],
  [/^include(?:if\..*)?\.path$/, "git.setting"],
  [/^url\..*\.(?:push)?insteadof$/, "git.setting"],
  [/^http\.sslverify$/, "git.setting", /^true$/],
  [/^http\.(?:.*\.)?proxy$/, "git.setting"],
  [/^protocol\.ext\.allow$/, "git.runs", /^never$/],
  [/^remote\..*\.(?:push)?url$/, "git.runs", /^(?!(?:ext|fd)::|-)/],
];
