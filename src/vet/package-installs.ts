/** Looks at what runs, and where things come from, when somebody installs packages of npm's kind or Python's. */
import { folderBefore } from "../core/file-names.ts";
import type { Fields } from "../core/raw-data.ts";
import { imitatedRegistry, isKnownAddress } from "./known-names.ts";
import { isApart } from "./look/danger.ts";
import { type Findings, lineAt, type LookedAtFile } from "./look/looked-at.ts";
import { fieldAt, fieldsOf, isUsualProgram, textIn, textsIn, tomlOf } from "./manifests.ts";
import type { VetReader, Scripts, RepositoryTree } from "./scripts.ts";

const LIFECYCLE = new Set([
  "preinstall",
  "install",
  "postinstall",
  "preprepare",
  "prepare",
  "postprepare",
  "prepublish",
  // After every installation that changed something.
  "dependencies",
]);
/** The path of a package that is installed already: only scripts of its lifecycle ran. */
const INSTALLED = /(?:^|\/)node_modules\//;

export async function lookAtPackage(
  file: LookedAtFile,
  tree: RepositoryTree,
  scripts: Scripts,
  found: Findings,
): Promise<void> {
  const { path, text = "" } = file;
  const fields = fieldsOf(text);
  if (fields === undefined) return;
  const named = new Map(
    Object.entries(fieldsOf(fields["scripts"]) ?? {}).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value] as const] : [],
    ),
  );
  const lineOf = (name: string): number => lineAt(text, Math.max(text.indexOf(`"${name}"`), 0));
  const folder = folderBefore(path);
  const installed = INSTALLED.test(path);
  for (const [name, command] of named) {
    const itself = LIFECYCLE.has(name) && !(installed && /prep|dependencies/.test(name));
    const line = lineOf(name);
    if (itself) found.add("install.script", `npm ${name}: ${command.slice(0, 200)}`, { path, line });
    if (!itself && installed) continue;
    await scripts.look({
      path,
      line,
      what: `npm ${name}`,
      text: command,
      runs: itself ? "itself" : namedRuns(name),
      named,
    });
  }
  lookAtCommands(fields, { path, lineOf }, found);
  const gyp = `${folder}binding.gyp`;
  if (!named.has("install") && !named.has("preinstall") && fields["gypfile"] !== false && tree.has(gyp))
    found.add("install.script", "npm builds binding.gyp with node-gyp", { path: gyp });
  lookAtManager(textIn(fields["packageManager"]), { path, line: lineOf("packageManager") }, found);
  lookAtNpmSources(fields, { path, lineOf }, found);
}

/** `packageManager` is a name and version, or an address that corepack fetches from and runs instead. */
function lookAtManager(manager: string, at: At, found: Findings): void {
  const address = /^[\w.-]+@(https?:\S+)/.exec(manager)?.[1];
  if (address === undefined || INSTALLED.test(at.path)) return;
  if (!isKnownAddress(address, "npm"))
    found.add("install.settings", `packageManager: corepack runs ${address}`, at);
}

const namedRuns = (name: string): "apart" | "asked" => (isApart(name) ? "apart" : "asked");

/** `<!(…)` and `<!@(…)` are commands of the shell. */
export async function lookAtGyp({ path, text = "" }: LookedAtFile, scripts: Scripts): Promise<void> {
  const commands = Array.from(text.matchAll(/<!@?\(([^\n]{0,500})\)/g), ([, command]) => command).join("\n");
  const actions = Array.from(
    text.matchAll(/['"]action['"]\s*:\s*\[([^\]]{0,2000})\]/g),
    ([, words]) => words,
  ).join("\n");
  await scripts.look({ path, what: "node-gyp", text: `${commands}\n${actions}`, runs: "itself" });
}

const GROUPS = [
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "peerDependencies",
  "overrides",
  "resolutions",
];

interface PackageFile {
  readonly path: string;
  readonly lineOf: (name: string) => number;
}

/** Whether the package is that program itself, or brings it along. */
const mayHave = (owner: string, command: string): boolean =>
  owner.includes(command) || /^(?:npm|corepack)$/.test(owner);

/** Looks at the commands that an installation makes. */
function lookAtCommands(fields: Fields, { path, lineOf }: PackageFile, found: Findings): void {
  if (INSTALLED.test(path)) return;
  const named = typeof fields["bin"] === "string" ? [] : Object.keys(fieldsOf(fields["bin"]) ?? {});
  for (const name of named)
    if (isUsualProgram(name) && !mayHave(textIn(fields["name"]), name))
      found.add("install.bin-name", name, { path, line: lineOf(name) });
}

function lookAtNpmSources(fields: Fields, { path, lineOf }: PackageFile, found: Findings): void {
  if (INSTALLED.test(path)) return;
  for (const group of [...GROUPS.map((each) => fields[each]), fieldAt(fields, "pnpm", "overrides")])
    for (const [name, from] of Object.entries(fieldsOf(group) ?? {})) {
      if (typeof from !== "string") continue;
      const at = { path, line: lineOf(name) };
      if (/^http:|^git:\/\/|^git\+http:|^[\w+]+:\/\/(?:[^/@\s]*@)?(?:\d{1,3}\.){3}\d{1,3}[:/]/.test(from))
        found.add("deps.insecure", `${name} comes from ${from}`, at);
      else if (/^(?:git|https?:|[\w.-]+\/[\w.-]+(?:#|$)|github:|gitlab:|bitbucket:|gist:)/.test(from))
        found.add("deps.elsewhere", `${name} comes from ${from}`, at);
    }
}

interface Setting {
  readonly line: number;
  readonly name: string;
  readonly value: string;
}

function* settingsIn(text: string): Generator<Setting> {
  let line = 0;
  for (const each of text.split("\n")) {
    line += 1;
    const match = /^\s*([^#;=\s][^=]{0,200}?)\s*=\s*(.*)$/.exec(each);
    if (match !== null) yield { line, name: (match[1] ?? "").toLowerCase(), value: (match[2] ?? "").trim() };
  }
}

/** Settings that name a program, or code that is loaded. */
const PROGRAMS =
  /^(?:script-shell|shell|node-options|onload-script|git|editor|viewer|browser|init-module|init\.module|globalconfig|userconfig|prefix|python|node_gyp|scripts-prepend-node-path|.*:tokenhelper|tokenhelper|global-pnpmfile|pnpmfile)$/;

export function lookAtNpmrc({ path, text = "" }: LookedAtFile, found: Findings): void {
  for (const { line, name, value } of settingsIn(text)) {
    const at = { path, line };
    const setting = `${name}=${value}`;
    if (name.endsWith("registry")) lookAtRegistry(value, setting, at, found);
    else if (PROGRAMS.test(name)) found.add("install.settings", setting, at);
    else if (name === "strict-ssl" && value === "false") found.add("install.insecure", setting, at);
    else if (/^(?:ca|cafile|proxy|https-proxy|http-proxy)$/.test(name))
      found.add("install.settings", setting, at);
    else if (name === "ignore-scripts" && value === "false") found.add("install.script", setting, at);
  }
}

interface At {
  readonly path: string;
  readonly line: number;
}

function lookAtRegistry(value: string, setting: string, at: At, found: Findings): void {
  const address = value.replace(/^["']|["']$/g, "");
  const rule = registryRule(address, "npm");
  // A variable's value is not known here.
  if (rule !== undefined && !(rule === "install.registry" && address.startsWith("$")))
    found.add(rule, setting, at);
}

/** What is odd about an address that packages come from. */
function registryRule(
  address: string,
  kind: "npm" | "pip",
): "install.insecure" | "install.imitated" | "install.registry" | undefined {
  if (/^http:\/\/(?!localhost|127\.)/.test(address)) return "install.insecure";
  if (imitatedRegistry(address) !== undefined) return "install.imitated";
  return isKnownAddress(address, kind) ? undefined : "install.registry";
}

/** `.yarnrc.yml`, `.yarnrc`, `bunfig.toml`: their few settings stand on lines of their own. */
export const lookAtYarnrc: VetReader = async ({ path, text = "" }, { tree, scripts, found }) => {
  let line = 0;
  for (const each of text.split("\n")) {
    line += 1;
    const at = { path, line };
    const [, name = "", value = ""] = /^\s*-?\s*"?([\w-]+)"?\s*[:= ]\s*(.*)$/.exec(each) ?? [];
    if (/registry(?:Server)?$/i.test(name)) lookAtRegistry(textIn(value), each.trim(), at, found);
    else if (/^(?:yarnPath|yarn-path|path|spec|preload|initScope)$/.test(name))
      await lookAtProgram(textIn(value), each, at, { tree, scripts, found });
    else if (/^enableStrictSsl$/i.test(name) && value.includes("false"))
      found.add("install.insecure", each.trim(), at);
    else if (/^unsafeHttpWhitelist$/.test(name)) found.add("install.insecure", each.trim(), at);
  }
};

async function lookAtProgram(
  value: string,
  setting: string,
  at: At,
  { tree, scripts, found }: Parameters<VetReader>[1],
): Promise<void> {
  const usual =
    /^(?:\.\/)?\.yarn\/(?:releases|plugins)\//.test(value) ||
    value.startsWith("@yarnpkg/") ||
    /^https:\/\/raw\.[a-z]+\.com\/yarnpkg\//.test(value) ||
    isKnownAddress(value, "yarn plugins");
  if (value !== "") found.add(usual ? "install.script" : "install.settings", setting.trim(), at);
  // Yarn itself is a huge bundle; what is added to it is small.
  const path = folderBefore(at.path) + value.replace(/^\.\//, "");
  if (/\.yarn\/releases\//.test(value) || !tree.has(path)) return;
  const text = (await tree.read(path))?.text ?? "";
  await scripts.look({ path, what: "yarn loads it", text, runs: "asked" });
}

/** What pip runs when it installs, what Python loads by itself, and where packages come from. */

export async function lookAtSetup(
  { path, text = "" }: LookedAtFile,
  scripts: Scripts,
  found: Findings,
): Promise<void> {
  const calls = /\bsetup\s*\(/.test(text);
  if (calls) found.add("install.script", "pip runs setup.py", { path });
  await scripts.look({ path, what: "pip install", text, runs: "itself" });
}

export async function lookAtPyproject(
  file: LookedAtFile,
  {
    tree,
    scripts,
    found,
  }: { readonly tree: RepositoryTree; readonly scripts: Scripts; readonly found: Findings },
): Promise<void> {
  const { path, text = "" } = file;
  const fields = tomlOf(text);
  lookAtPythonSources(fields, file, found);
  await lookAtPlugins(fields, path, scripts);
  const folder = folderBefore(path);
  const backend = fieldAt(fields, "build-system", "build-backend");
  const own = textsIn(fieldAt(fields, "build-system", "backend-path"));
  const hooks = [
    ...own.flatMap((each) =>
      typeof backend === "string" ? [`${each}/${backend.split(":")[0]?.replaceAll(".", "/")}.py`] : [],
    ),
    ...textsIn(fieldAt(fields, "tool", "poetry", "build")).filter((each) => each.endsWith(".py")),
    ...textsIn(fieldAt(fields, "tool", "pdm", "build")).filter((each) => each.endsWith(".py")),
    ...textsIn(fieldAt(fields, "tool", "hatch", "build")).filter((each) => each.endsWith(".py")),
    ...(fieldAt(fields, "tool", "hatch", "build", "hooks", "custom") === undefined ? [] : ["hatch_build.py"]),
    ...(fieldAt(fields, "tool", "hatch", "metadata", "hooks", "custom") === undefined
      ? []
      : ["hatch_build.py"]),
  ];
  const commands = [fieldAt(fields, "project", "scripts"), fieldAt(fields, "tool", "poetry", "scripts")];
  for (const name of commands.flatMap((each) => Object.keys(fieldsOf(each) ?? {})))
    if (isUsualProgram(name) && name !== fieldAt(fields, "project", "name"))
      found.add("install.bin-name", name, { path });
  await lookAtTasks(fields, path, scripts);
  if (own.length > 0)
    found.add("install.script", `pip builds with ${textsIn(backend).join("")} from this tree`, { path });
  for (const hook of new Set(
    hooks.map((each) => (folder + each).replace(/\/\.?\/|^\.\//g, (at) => (at === "./" ? "" : "/"))),
  )) {
    if (!tree.has(hook)) continue;
    found.add("install.script", "pip runs it during the build", { path: hook });
    await scripts.look({
      path: hook,
      what: "pip build",
      text: (await tree.read(hook))?.text ?? "",
      runs: "itself",
    });
  }
  for (const each of [
    ...textsIn(fieldAt(fields, "tool", "uv", "index")),
    ...textsIn(fieldAt(fields, "tool", "poetry", "source")),
    ...textsIn(fieldAt(fields, "tool", "uv", "index-url")),
    ...textsIn(fieldAt(fields, "tool", "uv", "extra-index-url")),
  ])
    if (/^https?:/.test(each)) lookAtIndex(each, { path, line: 1 }, found);
}

/** Looks at commands that task runners know by a name; pdm starts some itself. */
async function lookAtTasks(fields: Fields | undefined, path: string, scripts: Scripts): Promise<void> {
  for (const keys of [
    ["pdm", "scripts"],
    ["poe", "tasks"],
    ["taskipy", "tasks"],
    ["hatch", "envs"],
  ])
    for (const [name, value] of Object.entries(fieldsOf(fieldAt(fields, "tool", ...keys)) ?? {})) {
      const runs =
        keys[0] === "pdm" && /^(?:pre|post)_(?:install|lock|build)$/.test(name) ? "itself" : "asked";
      await scripts.look({ path, what: `${keys[0]} ${name}`, text: textsIn(value).join("\n"), runs });
    }
}

/** Files that setuptools, pip, pytest-cov and the like make when they install something. */
const USUAL_PTH =
  /^(?:distutils-precedence|__editable__.*|_virtualenv|.*-nspkg|a1_coverage|pytest-cov|.*coverage.*|zope.*|google.*|sphinxcontrib.*|protobuf.*|mypy.*|matplotlib.*|_?ddtrace.*|pywin32|easy-install|.*\.egg-link|debugpy.*)\.pth$/i;

export async function lookAtPth(
  { path, name, text = "" }: LookedAtFile,
  scripts: Scripts,
  found: Findings,
): Promise<void> {
  const code = text.split("\n").findIndex((line) => /^import[\s(]/.test(line));
  if (code === -1) return;
  if (!USUAL_PTH.test(name))
    found.add("install.python-start", "Python runs its lines every time it starts", { path, line: code + 1 });
  await scripts.look({ path, what: "python", text, runs: "itself" });
}

function lookAtIndex(address: string, at: At, found: Findings): void {
  const rule = registryRule(address, "pip");
  if (rule !== undefined) found.add(rule, address, at);
}

/** Requirements and `pip.conf` name indexes in almost the same words. */
export function lookAtRequirements({ path, text = "" }: LookedAtFile, found: Findings): void {
  let line = 0;
  for (const each of text.split("\n")) {
    line += 1;
    const at = { path, line };
    const index =
      /^\s*(?:-i|--index-url|--extra-index-url|-f|--find-links|index-url|extra-index-url|find-links)[\s=]+(\S+)/.exec(
        each,
      )?.[1];
    if (index !== undefined && /^\w+:/.test(index)) lookAtIndex(index, at, found);
    if (/^\s*(?:--trusted-host|trusted-host)[\s=]/.test(each)) found.add("install.insecure", each.trim(), at);
    lookAtDirect(each, at, found);
  }
}

const NUMBERED = /^[\w+]+:\/\/(?:[^/@\s]*@)?(?!127\.)(?:\d{1,3}\.){3}\d{1,3}[:/]/;

/** Looks at a requirement that names an address. */
function lookAtDirect(requirement: string, at: At, found: Findings): void {
  const direct =
    /^\s*(?:-e\s+)?(?:[\w.[\],\s-]{1,200}@\s*)?((?:git\+|hg\+|svn\+|https?:|git:|file:)[^\s;]+)/.exec(
      requirement,
    )?.[1];
  if (direct === undefined) return;
  if (/^(?:git\+)?(?:http|git):\/\/(?!localhost|127\.)/.test(direct) || NUMBERED.test(direct))
    found.add("deps.insecure", direct, at);
  else if (!isKnownAddress(direct, "pip")) found.add("deps.elsewhere", direct, at);
}

/** Looks at the build requirements, dependencies and package sources in `pyproject.toml` and `Pipfile`. */
function lookAtPythonSources(
  fields: Fields | undefined,
  { path, text = "" }: LookedAtFile,
  found: Findings,
): void {
  const listed = [
    fieldAt(fields, "build-system", "requires"),
    fieldAt(fields, "project", "dependencies"),
    fieldAt(fields, "project", "optional-dependencies"),
    fieldAt(fields, "dependency-groups"),
  ].flatMap((each) => textsIn(each));
  const tables = [
    fieldAt(fields, "tool", "poetry", "dependencies"),
    fieldAt(fields, "tool", "poetry", "dev-dependencies"),
    ...Object.values(fieldsOf(fieldAt(fields, "tool", "poetry", "group")) ?? {}).map((each) =>
      fieldAt(fieldsOf(each), "dependencies"),
    ),
    fieldAt(fields, "tool", "uv", "sources"),
    fieldAt(fields, "packages"),
    fieldAt(fields, "dev-packages"),
  ].flatMap((each) => Object.values(fieldsOf(each) ?? {}));
  const named = tables.flatMap((each) =>
    ["git", "url", "file"].flatMap((key) => textsIn(fieldAt(fieldsOf(each), key))),
  );
  for (const each of [...listed, ...named])
    lookAtDirect(each, { path, line: lineAt(text, Math.max(text.indexOf(each), 0)) }, found);
}

export function lookAtPipfile(file: LookedAtFile, found: Findings): void {
  const fields = tomlOf(file.text ?? "");
  lookAtPythonSources(fields, file, found);
  const sources = fields?.["source"];
  for (const each of Array.isArray(sources) ? sources : []) {
    const url = fieldAt(fieldsOf(each), "url");
    if (typeof url === "string") lookAtIndex(url, { path: file.path, line: 1 }, found);
  }
}

/** Settings that name modules of the tree which Python's checks load. */
const PLUGINS: readonly (readonly string[])[] = [
  ["mypy", "plugins"],
  ["pylint"],
  ["coverage", "run", "plugins"],
  ["pytest", "ini_options", "addopts"],
  ["flake8"],
];

async function lookAtPlugins(fields: Fields | undefined, path: string, scripts: Scripts): Promise<void> {
  for (const keys of PLUGINS) {
    const named = textsIn(fieldAt(fields, "tool", ...keys));
    const files = named.flatMap((each) => Array.from(each.matchAll(MODULE), ([module]) => asFile(module)));
    const text = [...named, ...files].join("\n");
    await scripts.look({ path, what: `${keys[0]}`, text, runs: "asked" });
  }
}

const MODULE = /\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+/g;
const asFile = (module: string): string => `./${module.replaceAll(".", "/")}.py`;
