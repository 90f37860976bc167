/** Looks at files that something on the host runs or obeys by itself: an editor, an agent, a shell, direnv, git. */
import type { Handoff } from "../../core/run-record.ts";
import { foldName, isDependencies } from "../../core/file-names.ts";
import type { Fields } from "../../core/raw-data.ts";
import { fieldAt, fieldsOf, textIn, textsIn, tomlOf } from "../manifests.ts";
import { isVariableThatLoads, type Scripts } from "../scripts.ts";
import { type Findings, isProse, lineAt, type LookedAtFile, type LookRule } from "./looked-at.ts";

/** Files that run when somebody enters or opens the folder. */
const BY_ITSELF =
  /(?:^|\/)(?:\.envrc|\.env\.zsh|\.autoenv\w*\.zsh|\.(?:bash|zsh|z|k|c|tc)(?:rc|env|profile|login|logout|_profile|_login|_logout)|\.profile|\.inputrc|\.gdbinit|\.lldbinit|\.n?vimrc|\.exrc|\.nvim\.lua|\.gvimrc|\.dir-locals(?:-2)?\.el|\.?mise(?:\.local)?\.toml|\.husky\/[\w-]+|\.githooks\/[\w-]+|\.lefthook\/.+|lefthook\.ya?ml|\.devcontainer\/.+\.sh)$/i;

/**
 * Settings of the repository owner's own shell: they name keys and agents, and run where this folder is somebody's
 * home.
 */
const OF_A_SHELL =
  /(?:^|\/)\.(?:(?:bash|zsh|z|k|c|tc)(?:rc|env|profile|login|logout|_profile|_login|_logout)|profile)$/i;

export async function lookAtObeyed(
  file: LookedAtFile,
  handoff: Handoff,
  { scripts, found }: { readonly scripts: Scripts; readonly found: Findings },
): Promise<void> {
  const { path, text } = file;
  if (path.split("/").some(isDependencies)) return;
  found.add("obeyed.file", handoff.reason, { path });
  if (text === undefined) return;
  if (PROMPTS.test(path)) await lookAtPrompt(file, { scripts, found });
  if (isProse(file)) return;
  if (BY_ITSELF.test(path)) {
    const runs = OF_A_SHELL.test(path) ? "apart" : "itself";
    await scripts.look({ path, what: handoff.reason.split(":")[0] ?? "", text, runs });
  }
  if (/(?:^|\/)\.(?:idea\/.+\.xml|run\/.+\.run\.xml)$/i.test(path))
    await lookAtIdea(file, { scripts, found });
  const fields = /\.(?:json|jsonc|code-workspace)$/.test(file.ending)
    ? fieldsOf(text)
    : file.ending === ".toml"
      ? tomlOf(text)
      : undefined;
  if (fields !== undefined) await lookAtSettings(file, fields, { scripts, found });
}

async function lookAtSettings(
  { path, lower, text = "" }: LookedAtFile,
  fields: Fields,
  { scripts, found }: { readonly scripts: Scripts; readonly found: Findings },
): Promise<void> {
  const add = (rule: LookRule, words: string, near = ""): void =>
    found.add(rule, words, {
      path,
      ...(near === "" ? {} : { line: lineAt(text, Math.max(text.indexOf(near), 0)) }),
    });
  const run = (what: string, command: string, runs: "itself" | "asked" = "itself"): Promise<void> =>
    scripts.look({ path, what, text: command, runs });
  await lookAtTasks(fields, { path, add, run });
  if (/^\.?devcontainer\.json$/.test(lower)) await lookAtContainer(fields, { path, add, run });
  for (const [key, value] of Object.entries({ ...fields, ...fieldsOf(fields["settings"]) }))
    if (EDITOR_VARIABLES.test(key)) {
      for (const [name, each] of Object.entries(fieldsOf(value) ?? {}))
        if (isVariableThatLoads(name, textIn(each)))
          add("obeyed.editor-program", `${key}: ${name}=${textIn(each)}`, name);
    } else if (EDITOR_PROGRAMS.test(key) && textsIn(value).some((each) => /[\\/]|\$\{workspace/.test(each)))
      add("obeyed.editor-program", `${key}: ${textsIn(value).join(" ")}`, key);
    else if (EDITOR_TRUST.test(key) && (value === "on" || typeof value === "boolean"))
      add("obeyed.loosened", `${key}: ${String(value)}`, key);
  if (EDITORS.test(path)) await lookAtPrograms(fields, { path, add, run }, scripts);
  await lookAtServers(fields, { path, add, run });
  if (AGENTS.test(path)) await lookAtAgents(fields, { path, add, run });
}

async function lookAtTasks(fields: Fields, { add, run }: SettingsContext): Promise<void> {
  for (const task of tasksIn(fields)) {
    const parts = ["command", "args", "osx", "linux", "windows"].map((key) => task[key]);
    const command = textsIn(parts).join(" ");
    const opens = fieldAt(task, "runOptions", "runOn") === "folderOpen";
    if (opens) add("obeyed.on-open", command, "folderOpen");
    await run("an editor's task", command, opens ? "itself" : "asked");
  }
}

const EDITORS = /(?:^|\/)\.(?:vscode|zed|helix|fleet|theia)\/(?!(?:tasks|launch|extensions|mcp)\.json$)/;
/** Keys whose value is a program, whatever an editor or one of its extensions calls them. */
const PROGRAM =
  /(?:^|[._-])(?:command|cmd|program|path|binary|shell|\w*(?:executable|interpreter|exec|server|tool|bin)(?:path)?)$/i;
const COMMAND = /(?:^|[._-])(?:command|cmd)s?$/i;

/** Looks at programs of the tree that an editor's settings make it start, and at command lines among them. */
async function lookAtPrograms(
  fields: Fields,
  { path, add, run }: SettingsContext,
  scripts: Scripts,
): Promise<void> {
  for (const [key, value] of leavesOf(fields)) {
    if (!PROGRAM.test(key)) continue;
    for (const file of scripts.filesIn(value, path)) {
      if (file === path || file.split("/").some(isDependencies)) continue;
      add("obeyed.editor-program", `${key}: ${value}`, key.split(".").at(-1));
      await run("an editor starts it", `./${file}`);
    }
    if (COMMAND.test(key)) await run("an editor's command", value);
  }
}

/** Texts in a value, each with the keys that lead to it. */
function* leavesOf(value: unknown, key = "", depth = 0): Generator<readonly [key: string, text: string]> {
  if (typeof value === "string") yield [key, value];
  else if (depth < 8 && typeof value === "object" && value !== null)
    for (const [name, each] of Object.entries(value))
      yield* leavesOf(each, Array.isArray(value) ? key : key === "" ? name : `${key}.${name}`, depth + 1);
}

/** Parts of the machine that an editor's container may have. */
const OF_THE_HOST =
  /(?:^|,)\s*(?:source|src)=(?:\/(?:etc|root|home|boot|usr|var|proc|sys)?\/?|~|\$\{localEnv:(?:HOME|USERPROFILE)\}\/?)(?:,|$)|(?:^|[=,\s])(?:\/(?:etc|root|home)?\/?|~|\$\{localEnv:HOME\}):\/|(?:docker|containerd|podman|crio)\.sock\b|\$\{localEnv:(?:HOME|USERPROFILE)\}\/\.(?:ssh|aws|gnupg|kube|docker|config)\b/;
const ISOLATION_OPTIONS =
  /^--(?:privileged(?:=true)?$|(?:pid|ipc|userns|uts)=host$|security-opt=(?:\w+=)?unconfined$|cap-add=(?:ALL|SYS_ADMIN|SYS_MODULE|DAC_READ_SEARCH)$|device=\/dev\/(?:sd|nvme|mem|kmem))/;

function lookAtReach(fields: Fields, add: SettingsContext["add"]): void {
  const words = textsIn(fields["runArgs"]);
  const flags = words.map((word, at) => (word.includes("=") ? word : `${word}=${words[at + 1] ?? ""}`));
  const mounts = [fields["mounts"], fields["workspaceMount"]].flat().map((each) => {
    const { source, src } = fieldsOf(typeof each === "string" ? undefined : each) ?? {};
    return typeof each === "string" ? each : `source=${textIn(source ?? src)}`;
  });
  const opened = [...words, ...flags].find((each) => ISOLATION_OPTIONS.test(each));
  if (opened !== undefined || fields["privileged"] === true)
    add(
      "script.privilege",
      `the container's isolation is weakened: ${opened ?? "privileged"}`,
      opened?.split("=")[0] ?? "privileged",
    );
  for (const each of [...mounts, ...flags])
    if (OF_THE_HOST.test(each) && !/readonly|:ro\b/.test(each))
      add("script.privilege", `the container gets from the machine: ${each}`, each);
}

/** Commands that make folders and empty files for a container's mounts. */
const HARMLESS_COMMAND =
  /^(?:(?:mkdir|touch|echo|true)(?:\s+[\w./~"'-]+|\s+["']?\$\{(?:local)?env:\w+\}[\w./"'-]*)*\s*(?:&&|;|$)\s*)+$/i;
const CONTAINER = ["initialize", "onCreate", "updateContent", "postCreate", "postStart", "postAttach"];

async function lookAtContainer(fields: Fields, { add, run }: SettingsContext): Promise<void> {
  lookAtReach(fields, add);
  for (const key of CONTAINER.map((each) => `${each}Command`)) {
    const command = textsIn(fields[key]).join(" ");
    if (command === "") continue;
    if (key === "initializeCommand" && !HARMLESS_COMMAND.test(command))
      add("obeyed.on-open", `${key}: ${command}`, key);
    await run(`dev container ${key}`, command);
  }
}

const tasksIn = (fields: Fields): readonly Fields[] =>
  [fields["tasks"], fieldAt(fields, "tasks", "tasks"), fields["build_systems"]].flatMap(objectsIn);

function objectsIn(list: unknown): readonly Fields[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((each: unknown) => (typeof each === "string" ? [] : [fieldsOf(each) ?? {}]));
}

const EDITOR_VARIABLES = /^terminal\.integrated\.env\./;
/** Settings of an editor that name a program to run. */
const EDITOR_PROGRAMS =
  /^(?:git\.path|npm\.|terminal\.integrated\.(?:automationProfile|profiles|shell)\S*|.*\.(?:executablePath|execPath|serverPath|server\.path|binaryPath|nodePath|runtime|interpreterPath|toolPath)|php\.validate\.executablePath|rust-analyzer\.(?:server\.path|cargo\.buildScripts\.overrideCommand|check\.overrideCommand|procMacro\.server)|go\.(?:alternateTools|goroot)|clangd\.path|deno\.path|cmake\.cmakePath)$/;
const EDITOR_TRUST =
  /^(?:security\.workspace\.trust\.(?:enabled|startupPrompt|banner)|task\.allowAutomaticTasks|chat\.tools\.(?:autoApprove|global\.autoApprove)|github\.copilot\.chat\.agent\.autoApprove)$/;

interface SettingsContext {
  readonly path: string;
  readonly add: (rule: LookRule, words: string, near?: string) => void;
  readonly run: (what: string, command: string, runs?: "itself" | "asked") => Promise<void>;
}

const AGENTS =
  /(?:^|\/)(?:\.(?:claude|codex|gemini|cursor|opencode|windsurf|qwen|agents)\/|opencode\.jsonc?$)/;

async function lookAtServers(fields: Fields, { add, run }: SettingsContext): Promise<void> {
  for (const servers of ["mcpServers", "servers", "mcp", "mcp_servers"].map((key) => fields[key]))
    for (const [name, server] of Object.entries(fieldsOf(servers) ?? {})) {
      const command = textsIn([fieldAt(fieldsOf(server), "command"), fieldAt(fieldsOf(server), "args")]).join(
        " ",
      );
      if (command === "") continue;
      add("obeyed.agent-command", `the server ${name}: ${command}`, name);
      await run(`an agent's server ${name}`, command);
    }
}

const HELPERS = ["apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "otelHeadersHelper"];
const ADDRESSES = /(?:BASE_URL|_PROXY|NODE_OPTIONS|LD_PRELOAD|NODE_TLS_REJECT_UNAUTHORIZED)$/;

async function lookAtAgents(fields: Fields, { add, run }: SettingsContext): Promise<void> {
  const hooks = Object.entries(fieldsOf(fields["hooks"]) ?? {}).map(
    ([name, hook]) => [`hook ${name}`, hook] as const,
  );
  for (const [name, value] of [...hooks, ...HELPERS.map((key) => [key, fields[key]] as const)]) {
    const command = textsIn(value).join(" ");
    if (command === "") continue;
    add("obeyed.agent-command", `${name}: ${command}`, name.split(" ").at(-1));
    await run(`an agent's ${name}`, command);
  }
  for (const [name, value] of Object.entries(fieldsOf(fields["env"]) ?? {}))
    if (ADDRESSES.test(name) && !/localhost|127\.0\.0\.1/.test(textsIn(value).join("")))
      add("obeyed.agent-address", `${name}=${textsIn(value).join("")}`, name);
  const loose = loosenedPermission(fields);
  if (loose !== undefined) add("obeyed.loosened", loose);
}

function loosenedPermission(fields: Fields): string | undefined {
  const allowed = textsIn(fieldAt(fields, "permissions", "allow"));
  const any = allowed.find((each) => /^(?:Bash|Bash\(\*?\)|Bash\(:?\*\)|\*)$/.test(each));
  if (any !== undefined) return `${any} is allowed`;
  if (fieldAt(fields, "permissions", "defaultMode") === "bypassPermissions")
    return "permissions are bypassed";
  const permissions = ["permission", "permissions"].flatMap((key) => [
    fields[key],
    fieldAt(fields, key, "bash"),
  ]);
  if (permissions.some((each) => each === "allow" || fieldAt(fieldsOf(each), "*") === "allow"))
    return "every command is allowed";
  if (fields["approval_policy"] === "never" || fields["sandbox_mode"] === "danger-full-access")
    return "nothing needs approval, or there is no sandbox";
  return ["enableAllProjectMcpServers", "yolo", "autoAccept"].find((key) => fields[key] === true);
}

/** Commands, skills and helpers of agents: texts for a model that may hold commands which the agent itself runs. */
const PROMPTS = /(?:^|\/)\.(?:claude|agents|codex|gemini|opencode|cursor|qwen)\/(?:.*\/)?[^/]+\.(?:md|mdc)$/i;
const RUN_IN_PROMPT = /(?<![`\w])!`([^`\n]{1,2000})`|^```!\n([^]{1,4000}?)\n```|^!\{([^}\n]{1,2000})\}/gm;
const RUN_IN_HEAD = /^\s*-?\s*command:\s*(.{1,2000})$/gm;

async function lookAtPrompt(
  { path, text = "" }: LookedAtFile,
  { scripts, found }: { readonly scripts: Scripts; readonly found: Findings },
): Promise<void> {
  const head = /^---\n[^]*?\n---\n/.exec(text)?.[0] ?? "";
  for (const match of [...head.matchAll(RUN_IN_HEAD), ...text.matchAll(RUN_IN_PROMPT)]) {
    const command = match.slice(1).find((each) => each !== undefined) ?? "";
    const line = lineAt(text, match.index + match[0].search(/\S/));
    found.add("obeyed.agent-command", command.slice(0, 160), { path, line });
    await scripts.look({ path, line, what: "an agent's own command", text: command, runs: "itself" });
  }
}

/** Looks at what JetBrains' editors start: when a project is opened, when a file is saved, and by hand. */
async function lookAtIdea(
  { path, lower, text = "" }: LookedAtFile,
  { scripts, found }: { readonly scripts: Scripts; readonly found: Findings },
): Promise<void> {
  const opens = text.indexOf("ProjectStartup");
  if (opens !== -1 && /<configuration\b/.test(text))
    found.add("obeyed.on-open", "configurations that are run when the project is opened", {
      path,
      line: lineAt(text, opens),
    });
  const values = Array.from(
    text.matchAll(/\bvalue\s*=\s*("[^"]{0,4000}"|'[^']{0,4000}')/g),
    ([, value = ""]) => value.slice(1, -1),
  );
  const command = values
    .join(" ")
    .replaceAll("&quot;", '"')
    .replaceAll("&#10;", "\n")
    .replaceAll("&gt;", ">")
    .replaceAll("&lt;", "<")
    .replaceAll("&amp;", "&");
  const runs = lower === "watchertasks.xml" ? "itself" : "asked";
  await scripts.look({ path, what: "an editor's configuration", text: command, runs });
}

/** A line at either end of a text that sets options of vim or emacs. */
const MODELINE =
  /(?:^|\s)(?:vim?|ex)(?:[<=>]?\d+)?:[^\n]{0,300}\b(?:foldexpr|fde|formatexpr|fex|indentexpr|inde|includeexpr|inex|foldtext|fdt|statusline|stl|tabline|rulerformat|keywordprg|kp|equalprg|ep|formatprg|fp|makeprg|mp|grepprg|gp)\s*=[^\n]{0,300}(?:\b(?:system|execute|writefile|readfile|libcall\w*|job_start|term_start|jobstart|luaeval|py3?eval|perleval|source|feedkeys|assert_fails)\b|!)|(?:^|[\s;*#-])eval:\s*\([^\n]{0,200}(?:shell-command|call-process|start-process|make-process|load-file|url-retrieve|write-region|eval-buffer)/m;
const MODELINE_REACH = 4096;

export function lookAtModeline({ path, text = "" }: LookedAtFile, found: Findings): void {
  const whole = text.length <= 2 * MODELINE_REACH;
  for (const part of whole ? [text] : [text.slice(0, MODELINE_REACH), text.slice(-MODELINE_REACH)]) {
    if (!/(?:vim?|ex)(?:[<=>]?\d+)?:|eval:/.test(part)) continue;
    const match = MODELINE.exec(part);
    if (match === null) continue;
    const at = text.lastIndexOf(match[0]) + match[0].search(/\S/);
    found.add("obeyed.modeline", match[0].trim().slice(0, 160), { path, line: lineAt(text, at) });
    return;
  }
}

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

export function lookAtGitFile(file: LookedAtFile, found: Findings): boolean {
  const { path, lower, text } = file;
  const names = path.split("/");
  const at = names.findIndex((name) => foldName(name) === ".git");
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
    lookAtGitSettings(path, text, found);
  }
  return false;
}

function lookAtModules(path: string, text: string, found: Findings): void {
  for (const { section, key, value, line } of settingsIn(text)) {
    const name = section.replace(/^submodule\./, "");
    const setting = `${section} ${key} = ${value}`;
    const add = (rule: LookRule): void => found.add(rule, setting, { path, line });
    if (/(?:^|[\\/])\.\.(?:[\\/]|$)/.test(name) || name.startsWith("-")) add("git.submodule");
    else if (key === "update" && value.startsWith("!")) add("git.submodule");
    else if (
      key === "path" &&
      (/^[-/\\]|(?:^|[\\/])\.\.(?:[\\/]|$)|[\r\u0000-\u001f]|^[a-z]:/i.test(value) ||
        value.split(/[\\/]/).some((each) => foldName(each) === ".git"))
    )
      add("git.submodule");
    else if (key === "url" && TRANSPORT.test(value)) add("git.submodule");
    else if (key === "url" && /^(?:http|git|ftp):\/\//.test(value)) add("deps.insecure");
  }
}

/** Looks at where git-lfs fetches from and sends to. */
function lookAtLargeFiles(path: string, text: string, found: Findings): void {
  for (const { section, key, value, line } of settingsIn(text))
    if (/^(?:lfs|remote\..*)$/.test(section) && /^(?:url|pushurl|lfsurl|lfspushurl)$/.test(key)) {
      const insecure = /^http:\/\/(?!localhost|127\.)/.test(value);
      const rule = TRANSPORT.test(value) ? "git.setting" : insecure ? "deps.insecure" : "deps.elsewhere";
      found.add(rule, `large files come from ${value}`, { path, line });
    }
}

function lookAtAttributes(path: string, text: string, found: Findings): void {
  for (const { 1: name = "", index } of text.matchAll(/^[^#\n]*\sfilter=([^\s]+)/gm))
    if (!/^(?:lfs|git-crypt|nbstripout|strip-notebook-output|jupyternotebook|annex|crypt)$/.test(name))
      found.add("git.filter", `the filter ${name}, if git's settings define it`, {
        path,
        line: lineAt(text, index),
      });
}

function lookAtOwn({ path, text, mode }: LookedAtFile, inner: readonly string[], found: Findings): void {
  const [first = "", ...rest] = inner.map((each) => each.toLowerCase());
  const last = inner.at(-1)?.toLowerCase() ?? "";
  if (text === undefined) return;
  if (first === "" && leadsOut(path, text))
    found.add("git.directory", `it says ${text.slice(0, 100)}`, { path });
  else if (last === "config" || last === "config.worktree") lookAtGitSettings(path, text, found);
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
const HARMLESS_SETTING =
  /^(?:true|false|cache(?: --.*)?|store|osxkeychain|manager(?:-core)?|libsecret|wincred|git-lfs (?:clean|smudge|filter-process).*|less(?: -\w+)*|cat|delta|vim?|nvim|nano|emacs|code --wait|checkout|rebase|merge|none|gpg2?|ssh-keygen|ssh|!gh auth git-credential|!\/usr\/bin\/gh auth git-credential)?$/;

function lookAtGitSettings(path: string, text: string, found: Findings): void {
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
  [RUNS, "git.runs", HARMLESS_SETTING],
  [/^core\.worktree$/, "git.setting", /^(?!\/|.*\.\.)|^(?:\.\.\/)+[\w./-]+$/],
  [/^include(?:if\..*)?\.path$/, "git.setting"],
  [/^url\..*\.(?:push)?insteadof$/, "git.setting"],
  [/^http\.sslverify$/, "git.setting", /^true$/],
  [/^http\.(?:.*\.)?proxy$/, "git.setting"],
  [/^protocol\.ext\.allow$/, "git.runs", /^never$/],
  [/^remote\..*\.(?:push)?url$/, "git.runs", /^(?!(?:ext|fd)::|-)/],
];
