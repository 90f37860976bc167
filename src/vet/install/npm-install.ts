import { folderBefore } from "../../core/text/file-paths.ts";
import type { Fields } from "../../core/text/json-values.ts";
import { imitatedBy, isKnownAddress } from "../known-hosts.ts";
import { isApart } from "../look/danger.ts";
import type { LookedAtFile } from "../look/looked-at-file.ts";
import { lineAt } from "../look/looked-at-file.ts";
import type { Found } from "../look/rules.ts";
import { fieldAt, fieldsOf, isUsualProgram, textIn } from "./manifest-fields.ts";
import type { Reader, Scripts, Tree } from "./scripts.ts";

/** Looks at what runs, and where things come from, when somebody installs a package of npm's kind. */

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
  tree: Tree,
  scripts: Scripts,
  found: Found,
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
  lookAtSources(fields, { path, lineOf }, found);
}

/** `packageManager` is a name and version, or an address that corepack fetches from and runs instead. */
function lookAtManager(manager: string, at: At, found: Found): void {
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
function lookAtCommands(fields: Fields, { path, lineOf }: PackageFile, found: Found): void {
  if (INSTALLED.test(path)) return;
  const named = typeof fields["bin"] === "string" ? [] : Object.keys(fieldsOf(fields["bin"]) ?? {});
  for (const name of named)
    if (isUsualProgram(name) && !mayHave(textIn(fields["name"]), name))
      found.add("install.bin-name", name, { path, line: lineOf(name) });
}

function lookAtSources(fields: Fields, { path, lineOf }: PackageFile, found: Found): void {
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

export function lookAtNpmrc({ path, text = "" }: LookedAtFile, found: Found): void {
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

function lookAtRegistry(value: string, setting: string, at: At, found: Found): void {
  const address = value.replace(/^["']|["']$/g, "");
  if (/^http:\/\/(?!localhost|127\.)/.test(address)) found.add("install.insecure", setting, at);
  else if (imitatedBy(address) !== undefined) found.add("install.imitated", setting, at);
  else if (!isKnownAddress(address, "npm") && !address.startsWith("$"))
    found.add("install.registry", setting, at);
}

/** `.yarnrc.yml`, `.yarnrc`, `bunfig.toml`: their few settings stand on lines of their own. */
export const lookAtYarnrc: Reader = async ({ path, text = "" }, { tree, scripts, found }) => {
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
  { tree, scripts, found }: Parameters<Reader>[1],
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
