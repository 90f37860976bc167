import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import type { Preset } from "../../core/network.ts";
import { asList, fieldsIn, fieldsOf } from "../../core/raw-data.ts";
import { readRegular } from "../../platform/safe-files.ts";
import { findRepository } from "../../boxes/workspace/git-repository.ts";
import { parseGitConfig } from "../../boxes/workspace/git-directory.ts";
import { cargoSettings, MAVEN_JAVA, mavenSettings } from "./network-settings.ts";
import { makeFolder } from "../../platform/folders.ts";

/*
 * Where the user's own tools fetch from, according to the tools: their settings, and what the registry itself tells
 * them about the hosts of its files. No host's name is written here.
 */

/** How a preset's tools are asked. All of it happens in an empty folder, never in the repository. */
export interface ToolQuestion {
  /** The tool's output; null if there is no such tool, or if it fails. */
  readonly run: (
    argv: readonly [string, ...string[]],
    more?: {
      readonly env?: Readonly<Record<string, string>>;
      readonly cwd?: string;
      readonly enough?: (line: string) => boolean;
    },
  ) => Promise<string | null>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** An empty folder that is removed afterwards. */
  readonly scratch: string;
  readonly workspace: string;
  readonly uid: number;
}

/** The settings of one preset's tools. */
export interface RegistrySettings {
  /** Addresses as the tools print them; null if there is no tool to ask. */
  readonly urls: readonly string[] | null;
  /** Points the same tool in a box at these addresses: it has no user settings there. Without names and passwords. */
  readonly variables?: Readonly<Record<string, string>>;
  /** The same for tools that take it from files only; by their names in the folder of the box's network. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Asks the registry through the tool for the hosts of its files; each address in the answer counts. */
  readonly files?: () => Promise<readonly string[]>;
  /** Addresses from the repository that the user's own settings know too. */
  readonly own?: readonly string[];
}

export const REGISTRY_TOOLS: Readonly<Record<Preset, (asking: ToolQuestion) => Promise<RegistrySettings>>> = {
  npm,
  pip,
  cargo,
  go,
  maven,
  apt,
  git,
};

const NONE: RegistrySettings = { urls: null };

async function npm({ run }: ToolQuestion): Promise<RegistrySettings> {
  const text = await run(["npm", "config", "ls", "-l", "--json"]);
  if (text === null) return NONE;
  const settings = fieldsIn(text);
  const urls = Object.entries(settings).flatMap(([key, value]) =>
    (key === "registry" || key.endsWith(":registry")) && typeof value === "string" ? [value] : [],
  );
  const { registry } = settings;
  const yarn = await yarnRegistry(run);
  return {
    urls: [...urls, ...yarn],
    variables: {
      ...(typeof registry === "string" ? variablesFor(NPM_VARIABLES, [registry]) : {}),
      ...variablesFor(YARN_VARIABLES, yarn),
    },
    files: async () => {
      const answer = await run(["npm", "view", "npm", "dist.tarball", "--json"]);
      return answer === null ? [] : urlsIn(answer);
    },
  };
}

/** Yarn has its own default registry, which its lock files name. The setting has one of two names. */
export async function yarnRegistry(run: ToolQuestion["run"]): Promise<readonly string[]> {
  for (const key of ["npmRegistryServer", "registry"]) {
    // Nothing is fetched to answer this, even if `yarn` is a stub for whatever yarn a project names.
    const output = await run(["yarn", "config", "get", key], { env: { COREPACK_ENABLE_NETWORK: "0" } });
    const [url] = urlsIn(output ?? "");
    if (url !== undefined) return [url];
  }
  return [];
}

/** pnpm reads npm's variable until version 10 and the second one since 11; the third one is Berry's. */
const NPM_VARIABLES = ["npm_config_registry", "pnpm_config_registry", "YARN_NPM_REGISTRY_SERVER"];
const YARN_VARIABLES = ["YARN_REGISTRY", "YARN_NPM_REGISTRY_SERVER"];
const PIP_INDEX = ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "PDM_PYPI_URL", "PIPENV_PYPI_MIRROR"];
const PIP_MORE = ["PIP_EXTRA_INDEX_URL", "UV_INDEX"];

/** All of the names with these addresses, or none of them. */
function variablesFor(names: readonly string[], urls: readonly string[]): Readonly<Record<string, string>> {
  const plain = urls.flatMap((url) => withoutUser(url) ?? []);
  return plain.length === 0 ? {} : Object.fromEntries(names.map((name) => [name, plain.join(" ")]));
}

function withoutUser(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null) return undefined;
  url.username = "";
  url.password = "";
  return url.href;
}

async function pip(asking: ToolQuestion): Promise<RegistrySettings> {
  for (const tool of [["pip"], ["pip3"], ["python3", "-m", "pip"]] as const) {
    const { run } = asking;
    const settings = await run([...tool, "config", "list"]);
    if (settings === null) continue;
    const set = (key: string): readonly string[] =>
      settings.split("\n").flatMap((line) => {
        const value = new RegExp(`^[\\w:.]*\\.${key}='(.*)'$`).exec(line)?.[1];
        return value === undefined ? [] : value.split(/\\n|\s+/).filter((word) => word !== "");
      });
    const index = set("index-url").slice(-1);
    const standard = index.length > 0 ? [] : await defaultIndex(tool, asking);
    const more = set("extra-index-url");
    return {
      urls: [...index, ...standard, ...more],
      variables: { ...variablesFor(PIP_INDEX, index), ...variablesFor(PIP_MORE, more) },
      files: async () => {
        const answer = await run([...tool, ...PIP_REPORT], { env: { PIP_FIND_LINKS: "" } });
        const [first] = answer === null ? [] : asList(fieldsIn(answer)["install"]);
        const { url } = fieldsOf(fieldsOf(first)["download_info"]);
        return typeof url === "string" ? [url] : [];
      },
    };
  }
  return NONE;
}

/** Reports where pip would take its own newest release from. */
const PIP_REPORT = [
  "install",
  "--dry-run",
  "--ignore-installed",
  "--no-deps",
  "--quiet",
  "--report",
  "-",
  "pip",
] as const;

async function defaultIndex(
  tool: readonly [string, ...string[]],
  { run }: ToolQuestion,
): Promise<readonly string[]> {
  const help = await run([...tool, "help", "install"], { env: { COLUMNS: "400" } });
  const address = /--index-url[^]*?\(default:?\s+(https?:\/\/[^\s)]+)\)/.exec(help ?? "")?.[1];
  return address === undefined ? [] : [address];
}

/** Uses a separate home with the user's settings, because cargo notes in its home what it learns of an index. */
async function cargo({ run, env, scratch }: ToolQuestion): Promise<RegistrySettings> {
  if ((await run(["cargo", "--version"])) === null) return NONE;
  const own = env["CARGO_HOME"] ?? path.join(env["HOME"] ?? homedir(), ".cargo");
  const settings = await Promise.all(["config.toml", "config"].map((name) => textOf(path.join(own, name))));
  const urls = [
    ...settings.flatMap((text) => [...text.matchAll(CARGO_INDEX)].flatMap(([line]) => urlsIn(line))),
    ...Object.entries(env).flatMap(([name, value]) =>
      /^CARGO_(?:REGISTRIES_\w+|REGISTRY)_INDEX$/.test(name) ? urlsIn(value ?? "") : [],
    ),
  ];
  const { files: box, variables } = cargoSettings(settings);
  return {
    urls,
    variables,
    settings: box,
    files: async () => {
      const home = path.join(scratch, "cargo-home");
      const project = path.join(scratch, "cargo-project");
      makeFolder(path.join(project, "src"), 0o777);
      await mkdir(home);
      const names = (await readdir(own).catch(() => [])).filter((name) => CARGO_FILES.has(name));
      await Promise.all(names.map((name) => symlink(path.join(own, name), path.join(home, name))));
      await writeFile(path.join(project, "Cargo.toml"), CARGO_PROJECT);
      await writeFile(path.join(project, "src/lib.rs"), "");
      await run(["cargo", "generate-lockfile"], { env: { CARGO_HOME: home }, cwd: project });
      return indexesBelow(path.join(home, "registry/index"));
    },
  };
}

const CARGO_FILES = new Set(["config.toml", "config", "credentials.toml", "credentials"]);
const CARGO_INDEX = /\b(?:index|registry)\s*=\s*"[^"]+"/g;

/** Depends on a package that every registry has. */
const CARGO_PROJECT =
  '[package]\nname = "asks"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\ncfg-if = "*"\n';

/** Folders of indexes are called HOST-HASH; `config.json` in them names the place of the files. */
async function indexesBelow(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => []);
  const found = await Promise.all(
    names.map(async (name) => {
      const host = /^(.+)-[0-9a-f]{16}$/.exec(name)?.[1];
      const config = fieldsIn((await textOf(path.join(folder, name, "config.json"))) || "{}");
      const { dl } = config;
      return [
        ...(host === undefined ? [] : [`https://${host}/`]),
        ...(typeof dl === "string" ? urlsIn(dl) : []),
      ];
    }),
  );
  return found.flat();
}

async function go({ run }: ToolQuestion): Promise<RegistrySettings> {
  const text = await run(["go", "env", "GOPROXY", "GOSUMDB"], {
    env: { GOTOOLCHAIN: "local", GOWORK: "off" },
  });
  if (text === null) return NONE;
  const [proxies = "", checksums = ""] = text.split("\n");
  // `NAME` or `NAME+KEY`, followed by an address if it is asked elsewhere.
  const [name = "", ...rest] = checksums.split(" ");
  const url = rest.find((word) => word.startsWith("http"));
  const plain = name.replace(/\+.*$/, "");
  return {
    variables: {
      ...(proxies === "" ? {} : { GOPROXY: proxies.replaceAll(USER, "$1") }),
      ...(checksums === "" ? {} : { GOSUMDB: checksums.replaceAll(USER, "$1") }),
    },
    urls: [
      ...proxies.split(/[,|]/).filter((each) => each.startsWith("http")),
      ...(plain === "" || plain === "off" ? [] : [url ?? `https://${plain}/`]),
    ],
  };
}

/** A user name, perhaps with a password, before the host of a URL. */
const USER = /(https?:\/\/)[^\s,|/@]*@/g;

/** With an empty local repository, Maven prints which server it asks first, mirrors included; then it is stopped. */
async function maven({ run, env, scratch }: ToolQuestion): Promise<RegistrySettings> {
  const version = await run(["mvn", "--version"]);
  if (version === null) return NONE;
  const home = /^Maven home: (.+)$/m.exec(version)?.[1];
  const places = [
    path.join(env["HOME"] ?? homedir(), ".m2/settings.xml"),
    ...(home === undefined ? [] : [path.join(home, "conf/settings.xml")]),
  ];
  const texts = (await Promise.all(places.map((place) => textOf(place)))).map(plainXml);
  const { files: box, variables } = mavenSettings(texts, MAVEN_JAVA);
  const urls = texts.flatMap((text) =>
    [...text.matchAll(/<url>\s*(https?:\/\/[^<\s]+)\s*<\/url>/g)].map(([, url = ""]) => url),
  );
  return {
    urls,
    variables,
    settings: box,
    files: async () => {
      const repository = path.join(scratch, "maven");
      const argv = ["mvn", "-B", `-Dmaven.repo.local=${repository}`, "help:effective-settings"] as const;
      const output = await run([...argv], { enough: (line) => line.includes("Downloaded from ") });
      const from = /Downloading from [^:]+: (https?:\/\/\S+)/g;
      return [...(output ?? "").matchAll(from)].map(([, url = ""]) => url);
    },
  };
}

/** Without comments, and without mirrors that only block other repositories. */
const plainXml = (text: string): string =>
  text
    .replaceAll(/<!--[^]*?-->/g, "")
    .replaceAll(/<mirror>(?:(?!<\/mirror>)[^])*<blocked>\s*true\s*<\/blocked>[^]*?<\/mirror>/g, "");

async function apt({ run }: ToolQuestion): Promise<RegistrySettings> {
  const text = await run(["apt-get", "indextargets", "--format", "$(REPO_URI)"]);
  return text === null ? NONE : { urls: urlsIn(text) };
}

/** The remotes of the repository around the workspace, read without running git. */
async function git({ workspace, uid, env }: ToolQuestion): Promise<RegistrySettings> {
  const found = await findRepository({ workspace, top: workspace, uid }, workspace);
  const entries = found?.config.flatMap((text) => parseGitConfig(text) ?? []) ?? [];
  const urls = entries
    .filter(({ key }) => /^remote\..+\.url$/i.test(key))
    .flatMap(({ value }) => urlsIn(value ?? ""));
  const https = urls.filter((url) => url.startsWith("https://"));
  const known = new Set((await ownGitHosts({ env, workspace })).map((url) => URL.parse(url)?.host));
  return { urls: https, own: https.filter((url) => known.has(URL.parse(url)?.host)) };
}

/**
 * Servers that the user's own settings mention: `[credential "https://…"]`, `[http "…"]`, `[url "…"]`. Settings inside
 * the workspace count as the repository's words.
 */
async function ownGitHosts({
  env,
  workspace,
}: Pick<ToolQuestion, "env" | "workspace">): Promise<readonly string[]> {
  const { HOME: home = homedir(), XDG_CONFIG_HOME: config = path.join(home, ".config") } = env;
  const files = [path.join(home, ".gitconfig"), path.join(config, "git/config")].filter(
    (file) => path.isAbsolute(file) && !file.startsWith(`${workspace}/`),
  );
  const texts = await Promise.all(files.map(textOf));
  return texts
    .flatMap((text) => parseGitConfig(text) ?? [])
    .filter(({ key }) => /^(?:credential|http|url)\.https:/i.test(key))
    .flatMap(({ key }) => urlsIn(key.slice(0, key.lastIndexOf("."))));
}

const URLS = /(?:sparse\+|registry\+)?(https?:\/\/[^\s"'<>,|{}]+)/g;

const urlsIn = (text: string): readonly string[] => [...text.matchAll(URLS)].map(([, url = ""]) => url);

const MAX_FILE_BYTES = 2 ** 20;

const textOf = async (file: string): Promise<string> =>
  readRegular(file, { links: "follow", max: MAX_FILE_BYTES }).then(
    (bytes) => bytes.toString("utf8"),
    () => "",
  );
