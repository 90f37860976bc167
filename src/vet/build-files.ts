/** Reads the files that say what builds, tests and set-ups of the other ecosystems run. */
import { folderBefore } from "../core/file-names.ts";
import type { Fields } from "../core/raw-data.ts";
import { imitatedRegistry, isKnownAddress } from "./known-names.ts";
import { type Findings, lineAt, type LookedAtFile } from "./look/looked-at.ts";
import { makefileParts, XML_BUILDS } from "./build-languages.ts";
import { fieldAt, fieldsOf, textsIn, tomlOf } from "./manifests.ts";
import { isVariableThatLoads, type VetReader, type RepositoryTree, variablesIn } from "./scripts.ts";

const wholeFile =
  (what: string, runs: "itself" | "asked" | "apart", isFinding = false): VetReader =>
  async ({ path, text = "" }, { scripts, found }) => {
    if (isFinding) found.add("install.script", what, { path });
    await scripts.look({ path, what, text, runs });
  };

/** `$(shell …)` and `!=` run when make reads the file, whatever the target. */
const makefile: VetReader = async ({ path, text = "" }, { scripts }) => {
  for (const { 0: all, index } of text.matchAll(/\$[({]shell\s[^\n]{0,2000}|^[\w.-]+\s*!=\s*[^\n]{0,2000}/gm))
    await scripts.look({ path, line: lineAt(text, index), what: "make", text: all, runs: "itself" });
  const { asked, apart } = makefileParts(text);
  await scripts.look({ path, what: "make", text: asked, runs: "asked" });
  if (apart !== "") await scripts.look({ path, what: "a make target", text: apart, runs: "apart" });
};

const cmake: VetReader = async ({ path, text = "" }, { scripts, found }) => {
  for (const { 0: all, index } of text.matchAll(/\bexecute_process\s*\([^)]{0,2000}\)/gi))
    await scripts.look({ path, line: lineAt(text, index), what: "cmake", text: all, runs: "itself" });
  for (const { 0: all, 1: inner = "", index } of text.matchAll(
    /\b(?:ExternalProject_Add|FetchContent_Declare|file\s*\(\s*DOWNLOAD)\s*\(?([^)]{0,2000})\)/gi,
  )) {
    const at = { path, line: lineAt(text, index) };
    if (/\bhttp:\/\/(?!localhost|127\.)/i.test(inner)) found.add("deps.insecure", all.slice(0, 160), at);
    else if (/\bURL\b|DOWNLOAD/i.test(all) && !/\b(?:URL_HASH|URL_MD5|EXPECTED_HASH|GIT_TAG)\b/i.test(inner))
      found.add("deps.elsewhere", all.replace(/\s+/g, " ").slice(0, 160), at);
  }
  await scripts.look({ path, what: "cmake", text, runs: "asked" });
};

const cargoConfig: VetReader = async (file, look) => {
  const fields = tomlOf(file.text ?? "");
  const { path } = file;
  const { scripts, found } = look;
  for (const [key, value] of cargoPrograms(fields)) {
    const command = textsIn(value).join(" ");
    if (command === "") continue;
    const own = /^(?:ba|z|da)?sh\b|[./]/.test(command.split(" ")[0] ?? "") || /\bsh -c\b/.test(command);
    found.add(own ? "install.settings" : "install.script", `cargo runs ${key} = ${command}`, { path });
    await scripts.look({ path, what: `cargo's ${key}`, text: command, runs: "itself" });
  }
  for (const [name, value] of Object.entries(fieldsOf(fieldAt(fields, "env")) ?? {})) {
    const set = textsIn(typeof value === "string" ? value : fieldAt(fieldsOf(value), "value")).join("");
    if (isVariableThatLoads(name, set)) found.add("install.settings", `cargo sets ${name}=${set}`, { path });
  }
  for (const [name, value] of Object.entries(fieldsOf(fieldAt(fields, "alias")) ?? {}))
    await scripts.look({ path, what: `cargo ${name}`, text: textsIn(value).join(" "), runs: "asked" });
  for (const each of [...textsIn(fieldAt(fields, "source")), ...textsIn(fieldAt(fields, "registries"))])
    if (/^(?:sparse\+)?https?:/.test(each)) lookAtCargoRegistry(each, path, found);
};

function cargoPrograms(fields: Fields | undefined): readonly (readonly [key: string, value: unknown])[] {
  const compilers = ["rustc", "rustc-wrapper", "rustc-workspace-wrapper", "rustdoc"];
  const targets = Object.entries(fieldsOf(fieldAt(fields, "target")) ?? {});
  const registries = ["registry", "registries"].flatMap((group) => [
    fieldAt(fields, group),
    ...Object.values(fieldsOf(fieldAt(fields, group)) ?? {}),
  ]);
  return [
    ...compilers.map((key) => [key, fieldAt(fields, "build", key)] as const),
    ...targets.flatMap(([target, each]) =>
      ["runner", "linker"].map((key) => [`${target}.${key}`, fieldAt(fieldsOf(each), key)] as const),
    ),
    ["credential-provider", fieldAt(fields, "registry", "global-credential-providers")] as const,
    ...registries.map(
      (each) =>
        [
          "credential-provider",
          fieldAt(fieldsOf(typeof each === "string" ? undefined : each), "credential-provider"),
        ] as const,
    ),
  ];
}

function lookAtCargoRegistry(address: string, path: string, found: Findings): void {
  if (imitatedRegistry(address) !== undefined) found.add("install.imitated", address, { path });
  else if (!isKnownAddress(address, "cargo") && !/github\.com\/rust-lang\//.test(address))
    found.add(/^(?:sparse\+)?http:/.test(address) ? "install.insecure" : "install.registry", address, {
      path,
    });
}

const cargoToml: VetReader = async ({ path, text = "" }, { found, scripts, tree }) => {
  const fields = tomlOf(text);
  const own = fieldAt(fields, "package", "build");
  const build = typeof own === "string" ? folderBefore(path) + own : "";
  // A script with the usual name is looked at as a file of its own.
  if (own !== "build.rs" && tree.has(build)) {
    found.add("install.script", "cargo runs it", { path: build });
    const script = await tree.read(build);
    await scripts.look({ path: build, what: "cargo build", text: script?.text ?? "", runs: "itself" });
  }
  if (fieldAt(fields, "lib", "proc-macro") === true || fieldAt(fields, "lib", "proc_macro") === true)
    await procMacro(fields, path, { scripts, tree });
  for (const group of ["dependencies", "dev-dependencies", "build-dependencies", "patch"])
    for (const [name, each] of Object.entries(fieldsOf(fieldAt(fields, group)) ?? {})) {
      const git = textsIn(fieldAt(fieldsOf(each), "git")).join("");
      if (git !== "")
        found.add(
          /^(?:http|git):|^[\w+]+:\/\/(?:[^/@\s]*@)?(?:\d{1,3}\.){3}\d{1,3}[:/]/.test(git)
            ? "deps.insecure"
            : "deps.elsewhere",
          `${name} comes from ${git}`,
          { path },
        );
    }
};

/** Looks at the code of a macro: the compiler, and an editor's server, runs it to compile code that uses the macro. */
async function procMacro(
  fields: Fields | undefined,
  path: string,
  { scripts, tree }: Pick<Parameters<VetReader>[1], "scripts" | "tree">,
): Promise<void> {
  const folder = folderBefore(path);
  const top = folder + (textsIn(fieldAt(fields, "lib", "path")).join("") || "src/lib.rs");
  const text = await textOfFile(top, tree);
  const below = folderBefore(top);
  const modules = Array.from(text.matchAll(/^\s*(?:pub(?:\([\w\s]+\))?\s+)?mod\s+(\w{1,60})\s*;/gm)).flatMap(
    ([, name = ""]) => [`${below}${name}.rs`, `${below}${name}/mod.rs`],
  );
  for (const each of [top, ...modules])
    await scripts.look({
      path: each,
      what: "the compiler runs it",
      text: await textOfFile(each, tree),
      runs: "itself",
    });
}

const go: VetReader = async ({ path, text = "" }, { scripts, found }) => {
  for (const { 1: command = "", index } of text.matchAll(/^\/\/go:generate\s+([^\n]{1,1000})/gm))
    await scripts.look({
      path,
      line: lineAt(text, index),
      what: "go generate",
      text: command,
      runs: "itself",
    });
  for (const { 0: flags, index } of text.matchAll(/^(?:\/\/\s*)?#cgo\s[^\n]{0,700}/gm))
    if (LOADS_INTO_COMPILER.test(flags))
      found.add("install.settings", flags.trim().slice(0, 160), { path, line: lineAt(text, index) });
};

/** Flags that have a compiler load code, or start programs in place of its own. */
const LOADS_INTO_COMPILER =
  /\s-fplugin=|\s-specs=|\s-B\s?(?:[./]|\$\{SRCDIR)|\s-fuse-ld=[./]|\s-wrapper\b|-plugin[=,]|\s-Xclang[ ,]-load/;

const goMod: VetReader = ({ path, text = "" }, { found }) => {
  for (const { 1: from = "", 2: to = "", index } of text.matchAll(
    /^\s*(?:replace\s+)?([^\s/]{1,100}\.[^\s]{1,300})(?:[ \t]+v\S{1,100})?[ \t]+=>[ \t]+(\S{1,300})/gm,
  ))
    if (from !== to)
      found.add("deps.elsewhere", `${from} is replaced by ${to}`, { path, line: lineAt(text, index) });
};

const textOfFile = async (path: string, tree: RepositoryTree): Promise<string> =>
  (await tree.read(path))?.text ?? "";

/** The file of this tree that has the class of `Name\\Space::method`. */
function classFile(
  method: string,
  fields: Fields | undefined,
  { path, tree }: { readonly path: string; readonly tree: RepositoryTree },
): string | undefined {
  const name = /^\\?([\w\\]{1,200})::\w+$/.exec(method.trim())?.[1];
  if (name === undefined) return undefined;
  const folder = folderBefore(path);
  const rows = ["autoload", "autoload-dev"].flatMap((group) =>
    ["psr-4", "psr-0"].flatMap((form) =>
      Object.entries(fieldsOf(fieldAt(fields, group, form)) ?? {}).flatMap(([prefix, places]) =>
        textsIn(places).map((place) => ({ prefix: form === "psr-4" ? prefix : "", place })),
      ),
    ),
  );
  return rows
    .filter(({ prefix }) => name.startsWith(prefix))
    .map(({ prefix, place }) =>
      [folder + place.replace(/^\.\/|\/$/g, ""), ...name.slice(prefix.length).split("\\")]
        .filter((part) => part !== "")
        .join("/"),
    )
    .map((way) => `${way}.php`)
    .find((way) => tree.has(way));
}

const BY_ITSELF =
  /^(?:pre|post)-(?:install|update|autoload-dump|root-package-install|create-project|package-\w+|operations-exec|pool-create)(?:-cmd)?$|^(?:pre-autoload-dump|post-autoload-dump|init|command)$/;

const composer: VetReader = async ({ path, text = "" }, { scripts, found, tree }) => {
  const fields = fieldsOf(text);
  for (const [name, value] of Object.entries(fieldsOf(fields?.["scripts"]) ?? {})) {
    const command = textsIn(value).join("\n");
    const itself = BY_ITSELF.test(name);
    const line = lineAt(text, Math.max(text.indexOf(`"${name}"`), 0));
    if (itself) found.add("install.script", `composer ${name}: ${command.slice(0, 200)}`, { path, line });
    const runs = itself ? "itself" : "asked";
    await scripts.look({ path, line, what: `composer ${name}`, text: command, runs });
    for (const method of textsIn(value)) {
      const source = classFile(method, fields, { path, tree });
      if (source === undefined) continue;
      const sourceText = await textOfFile(source, tree);
      await scripts.look({ path: source, what: `composer ${name}`, text: sourceText, runs });
    }
  }
  const folder = folderBefore(path);
  for (const each of textsIn(fieldAt(fields, "autoload", "files"))) {
    if (!tree.has(folder + each)) continue;
    const loaded = await textOfFile(folder + each, tree);
    await scripts.look({ path: folder + each, what: "composer autoload", text: loaded, runs: "asked" });
  }
  if (fields?.["type"] === "composer-plugin") await composerPlugin(fields, path, { scripts, found, tree });
  lookAtRepositories(fields, path, found);
  if (/"secure-http"\s*:\s*false/.test(text)) found.add("install.insecure", "secure-http is off", { path });
};

/** Composer loads and activates a plugin as soon as it is installed. */
async function composerPlugin(
  fields: Fields,
  path: string,
  { scripts, found, tree }: Parameters<VetReader>[1],
): Promise<void> {
  for (const name of textsIn(fieldAt(fields, "extra", "class"))) {
    const source = classFile(`${name}::activate`, fields, { path, tree });
    if (source === undefined) continue;
    found.add("install.script", `composer loads its plugin ${name}`, { path: source });
    const text = await textOfFile(source, tree);
    await scripts.look({ path: source, what: "composer", text, runs: "itself" });
  }
}

function lookAtRepositories(fields: Fields | undefined, path: string, found: Findings): void {
  for (const each of textsIn(fields?.["repositories"]))
    if (/^http:\/\/(?!localhost|127\.)/.test(each)) found.add("install.insecure", each, { path });
    else if (imitatedRegistry(each) !== undefined) found.add("install.imitated", each, { path });
    else if (each.startsWith("https:") && !isKnownAddress(each, "composer"))
      found.add("install.registry", each, { path });
}

const gemfile: VetReader = async ({ path, text = "" }, { scripts, found }) => {
  const source = /^\s*source\s*\(?\s*["'](http:\/\/[^"']{1,200})/m.exec(text);
  if (source !== null)
    found.add("install.insecure", source[1] ?? "", { path, line: lineAt(text, source.index) });
  await scripts.look({ path, what: "bundler", text, runs: "itself" });
};

const rustToolchain: VetReader = ({ path, text = "" }, { found }) => {
  const own = textsIn(fieldAt(tomlOf(text), "toolchain", "path")).join("");
  if (own !== "") found.add("install.settings", `cargo and rustc are taken from ${own}`, { path });
};

/**
 * Looks at the lines that a patch adds. Those for installed packages run wherever the packages are loaded, and nobody
 * is asked.
 */
const patch: VetReader = async ({ path, text = "" }, { scripts }) => {
  const added = text
    .split("\n")
    .map((line) => (line.startsWith("+") && !line.startsWith("+++") ? line.slice(1) : ""))
    .join("\n");
  const ofPackages = /^\+\+\+ \S*node_modules\//m.test(text) || /(?:^|\/)(?:\.yarn\/)?patches\//.test(path);
  await scripts.look({ path, what: "a patch adds it", text: added, runs: ofPackages ? "asked" : "loaded" });
};

/** Variables that a shell, an editor or a library sets from a file. */
const variables: VetReader = ({ path, text = "" }, { found }) => {
  for (const { name, value, line } of variablesIn(text))
    if (isVariableThatLoads(name, value))
      found.add("install.settings", `${name}=${value.slice(0, 120)}`, { path, line });
};

/** Looks at the cells of code; what they have printed does not count. */
const notebook: VetReader = async ({ path, text = "" }, { scripts }) => {
  const cells = fieldsOf(text, MAX_NOTEBOOK)?.["cells"];
  const code = (Array.isArray(cells) ? cells : []).flatMap((cell: unknown) => {
    const fields = typeof cell === "string" ? undefined : fieldsOf(cell);
    return fields?.["cell_type"] === "code" ? [textsIn(fields["source"]).join("")] : [];
  });
  await scripts.look({ path, what: "running its cells", text: code.join("\n"), runs: "cells" });
};

const MAX_NOTEBOOK = 16 * 2 ** 20;

/** Folders of the machine that a container may write. */
const HOST_FOLDERS =
  /^\s*-\s*["']?((?:\/|\/etc|\/root|\/home|\/boot|\/usr|\/var|~|\$\{?HOME\}?)\/?):\/(?![^\n]*:ro\b)/m;

const compose: VetReader = async ({ path, text = "" }, { scripts, found }) => {
  const host = HOST_FOLDERS.exec(text);
  if (host !== null)
    found.add("script.privilege", `a container can write to ${host[1]} on the machine`, {
      path,
      line: lineAt(text, host.index) + (host[0].startsWith("\n") ? 1 : 0),
    });
  await scripts.look({ path, what: "run by hand", text, runs: "apart" });
};

const workflow: VetReader = async ({ path, text = "" }, { scripts, found }) => {
  const target = /^\s*-?\s*pull_request_target\b|\bon:\s*\[?[^\n]{0,100}pull_request_target/m.exec(text);
  if (target !== null)
    found.add("ci.pull-request-target", "strangers' pull requests run it with its secrets", {
      path,
      line: lineAt(text, target.index),
    });
  const injected =
    /\$\{\{\s*github\.(?:event\.(?:issue|pull_request|comment|review|discussion|head_commit)\.(?:title|body|message|head\.ref)|head_ref)\s*\}\}/.exec(
      text,
    );
  if (injected !== null) found.add("ci.injection", injected[0], { path, line: lineAt(text, injected.index) });
  await scripts.look({ path, what: "CI", text, runs: "apart" });
};

/** By the path in lower case; the first that fits counts. */
const READERS: readonly (readonly [RegExp, VetReader])[] = [
  [/(?:^|\/)(?:gnu|bsd)?makefile(?:\.\w+)?$|\.mk$/, makefile],
  [/(?:^|\/)cmakelists\.txt$|\.cmake$/, cmake],
  [/(?:^|\/)build\.rs$/, wholeFile("cargo runs build.rs", "itself", true)],
  [/(?:^|\/)\.cargo\/config(?:\.toml)?$/, cargoConfig],
  [/(?:^|\/)cargo\.toml$/, cargoToml],
  ...XML_BUILDS,
  [/(?:^|\/)go\.(?:mod|work)$/, goMod],
  [/\.go$/, go],
  [/(?:^|\/)composer\.json$/, composer],
  [/(?:^|\/)(?:gemfile|gems\.rb)$/, gemfile],
  [/(?:^|\/)setup\.l?hs$/, wholeFile("cabal runs Setup.hs", "itself", true)],
  [/(?:^|\/)devbox\.json$/, wholeFile("devbox enters a shell", "itself")],
  [
    /(?:^|\/)(?:makefile|build)\.pl$|(?:^|\/)configure\.(?:win|ucrt)$|\.nix$|(?:^|\/)\.gitpod\.ya?ml$|(?:^|\/)\.zed\/tasks\.json$/,
    wholeFile("a build runs it", "asked"),
  ],
  [/\.ipynb$/, notebook],
  [
    /(?:^|\/)\.(?:rprofile|irbrc|pryrc|ghci|ocamlinit|iex\.exs|perldb|utoprc|lambdabot|sbclrc|guile|erlang|juliarc\.jl)$/,
    wholeFile("an interpreter started here runs it", "itself"),
  ],
  [
    /(?:^|\/)\.?(?:pylintrc|mypy\.ini|coveragerc|flake8)$|(?:^|\/)\.(?:rspec|mocharc\.\w+|nycrc(?:\.\w+)?|avarc|tap(?:rc|-rc)?|yardopts|rubocop\.yml|simplecov)$|(?:^|\/)(?:setup\.cfg|pytest\.ini)$/,
    wholeFile("a check or test loads it", "asked"),
  ],
  [/\.(?:patch|diff)$/, patch],
  [
    /(?:^|\/)\.aider\.conf\.ya?ml$|(?:^|\/)\.(?:continue|goose|kilocode|roo)\/.*\.ya?ml$/,
    wholeFile("an agent starts it", "itself"),
  ],
  [/(?:^|\/)(?:docker-)?compose[\w.-]*\.ya?ml$/, compose],
  [/(?:^|\/)\.pre-commit-config\.ya?ml$/, wholeFile("a git hook runs it", "asked")],
  [/(?:^|\/)rust-toolchain(?:\.toml)?$/, rustToolchain],
  [/(?:^|\/)\.(?:env|flaskenv)(?:\.(?!example|sample|template|dist)[\w.-]+)?$/, variables],
  [/(?:^|\/)extconf\.rb$/, wholeFile("gem runs extconf.rb", "itself", true)],
  [/\.gemspec$/, wholeFile("bundler loads it", "itself")],
  [
    /(?:^|\/)(?:rakefile|justfile|\.justfile|taskfile\.ya?ml|fastfile|podfile|sconstruct|wscript|meson\.build|build\.zig|mix\.exs|package\.swift|noxfile\.py|tox\.ini|conftest\.py|dangerfile)$/,
    wholeFile("a build or test runs it", "asked"),
  ],
  [/(?:^|\/)(?:workspace(?:\.bazel|\.bzlmod)?|module\.bazel|\.bazelrc)$|\.bzl$/, wholeFile("bazel", "asked")],
  [/(?:^|\/)(?:gulpfile|gruntfile)\.\w+$|\.config\.[cm]?[jt]s$/, wholeFile("a build loads it", "asked")],
  [/(?:^|\/)configure$|(?:^|\/)configure\.ac$/, wholeFile("configure", "asked")],
  [/(?:^|\/)(?:docker|container)file(?:\.\w+)?$|\.dockerfile$/, wholeFile("an image is built", "apart")],
  [/(?:^|\/)\.(?:github|gitea|forgejo)\/(?:workflows|actions)\/.*\.ya?ml$|(?:^|\/)action\.ya?ml$/, workflow],
  [
    /(?:^|\/)(?:\.gitlab-ci|\.travis|appveyor|\.appveyor|azure-pipelines|bitbucket-pipelines|cloudbuild)\.ya?ml$|(?:^|\/)\.circleci\/config\.yml$|(?:^|\/)jenkinsfile$/,
    wholeFile("CI", "apart"),
  ],
];

export async function lookAtBuildFile(file: LookedAtFile, look: Parameters<VetReader>[1]): Promise<boolean> {
  const lower = file.path.toLowerCase();
  const reader = READERS.find(([pattern]) => pattern.test(lower))?.[1];
  if (reader === undefined || file.text === undefined) return false;
  await reader(file, look);
  return true;
}
