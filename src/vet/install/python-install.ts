import { folderBefore } from "../../core/text/file-paths.ts";
import type { Fields } from "../../core/text/json-values.ts";
import { imitatedBy, isKnownAddress } from "../known-hosts.ts";
import { lineAt, type LookedAtFile } from "../look/looked-at-file.ts";
import type { Found } from "../look/rules.ts";
import { fieldAt, fieldsOf, isUsualProgram, textsIn, tomlOf } from "./manifest-fields.ts";
import type { Scripts, Tree } from "./scripts.ts";

/** Looks at what pip runs when it installs, what Python loads by itself, and where packages come from. */

export async function lookAtSetup(
  { path, text = "" }: LookedAtFile,
  scripts: Scripts,
  found: Found,
): Promise<void> {
  const calls = /\bsetup\s*\(/.test(text);
  if (calls) found.add("install.script", "pip runs setup.py", { path });
  await scripts.look({ path, what: "pip install", text, runs: "itself" });
}

export async function lookAtPyproject(
  file: LookedAtFile,
  { tree, scripts, found }: { readonly tree: Tree; readonly scripts: Scripts; readonly found: Found },
): Promise<void> {
  const { path, text = "" } = file;
  const fields = tomlOf(text);
  lookAtSources(fields, file, found);
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
  found: Found,
): Promise<void> {
  const code = text.split("\n").findIndex((line) => /^import[\s(]/.test(line));
  if (code === -1) return;
  if (!USUAL_PTH.test(name))
    found.add("install.python-start", "Python runs its lines every time it starts", { path, line: code + 1 });
  await scripts.look({ path, what: "python", text, runs: "itself" });
}

interface At {
  readonly path: string;
  readonly line: number;
}

function lookAtIndex(address: string, at: At, found: Found): void {
  if (/^http:\/\/(?!localhost|127\.)/.test(address)) found.add("install.insecure", address, at);
  else if (imitatedBy(address) !== undefined) found.add("install.imitated", address, at);
  else if (!isKnownAddress(address, "pip")) found.add("install.registry", address, at);
}

/** Requirements and `pip.conf` name indexes in almost the same words. */
export function lookAtRequirements({ path, text = "" }: LookedAtFile, found: Found): void {
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
function lookAtDirect(requirement: string, at: At, found: Found): void {
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
function lookAtSources(fields: Fields | undefined, { path, text = "" }: LookedAtFile, found: Found): void {
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

export function lookAtPipfile(file: LookedAtFile, found: Found): void {
  const fields = tomlOf(file.text ?? "");
  lookAtSources(fields, file, found);
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
