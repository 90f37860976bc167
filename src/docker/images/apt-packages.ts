import { copyFile, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { runHost, type System } from "../../platform/host-programs.ts";
import type { BuildRequest } from "./image-inputs.ts";
import { makeFolder } from "../../platform/folders.ts";

/** The packages of a minimal system, and the sources.list line(s) they came from. */
export interface Archive {
  readonly debs: readonly string[];
  readonly sourcesList: string;
}

/** The smallest working system: what dpkg marks essential or required, and apt to add the rest. */
const BASE_PACKAGES = ["?essential", "?priority(required)", "apt", "ca-certificates"];
/** In a release that has it, this package spares the larger one that merges /usr on old systems. */
const MERGED_USR = "usr-is-merged";

/**
 * Downloads the packages with this machine's own apt, mirrors and keys, into a folder of ours: nothing is installed,
 * apt's own state is only read, and no root is needed. Only archives that apt itself trusts are used.
 */
export async function downloadSystem(work: string, system: System, request: BuildRequest): Promise<Archive> {
  const config = await privateApt(work, request);
  const env = { ...request.env, APT_CONFIG: config, LC_ALL: "C.UTF-8" };
  // Somebody else's archive that does not answer is no reason to stop: ours may have answered.
  const update = await runHost(["apt-get", "-q", "update"], { ...request, env });
  const sourcesList = sourcesFor(system, await indexTargets({ ...request, env }));
  if (sourcesList === "") {
    const why = update.tail.slice(-2).join("; ");
    throw new Error(`apt has no verified archive of ${system.distribution} ${system.codename}: ${why}`);
  }
  await writeFile(path.join(work, "base.list"), sourcesList);
  await writeFile(config, await configText(work, request, "base.list"));
  const { code } = await runHost(["apt-cache", "show", MERGED_USR], { ...request, env });
  const wanted = [...BASE_PACKAGES, ...(code === 0 ? [MERGED_USR] : [])];
  await apt(["-qq", "-y", "--download-only", "install", ...wanted], { ...request, env });
  const folder = path.join(work, "cache", "archives");
  const debs = (await readdir(folder)).filter((name) => name.endsWith(".deb"));
  if (debs.length === 0) throw new Error("apt downloaded nothing");
  return { debs: debs.map((name) => path.join(folder, name)), sourcesList };
}

/**
 * The archives of this release among apt's indexes, each in the form
 * `REPO_URI|RELEASE|CODENAME|COMPONENT|ORIGIN|TRUSTED`. Debian's may be named by an alias (`stable`), which its code
 * name resolves; a file: archive is of no use in a container.
 */
export function sourcesFor(
  { codename, distribution }: Pick<System, "codename" | "distribution">,
  targets: readonly string[],
): string {
  const suites = new Set([codename, `${codename}-updates`, `${codename}-security`, `${codename}/updates`]);
  const lines = targets.map(readTarget).flatMap(({ uri, release, code, component, origin, trusted }) => {
    const suite = distribution === "debian" && !suites.has(release) ? code : release;
    const own = origin.toLowerCase() === distribution && trusted === "yes" && suites.has(suite);
    return own && /^https?:/.test(uri) ? [`deb ${uri} ${suite} ${component}\n`] : [];
  });
  return [...new Set(lines)].toSorted().join("");
}

function readTarget(
  line: string,
): Readonly<Record<"uri" | "release" | "code" | "component" | "origin" | "trusted", string>> {
  const [uri = "", release = "", code = "", component = "", origin = "", trusted = ""] = line.split("|");
  return { uri, release, code, component, origin, trusted };
}

interface AptRequest {
  readonly env: BuildRequest["env"];
  readonly signal: AbortSignal;
}

async function apt(words: readonly string[], request: AptRequest): Promise<void> {
  const { code, tail } = await runHost(["apt-get", ...words], request);
  if (code !== 0) throw new Error(`apt-get ${words[0] ?? ""}: ${tail.slice(-3).join("; ")}`);
}

async function indexTargets(request: AptRequest): Promise<readonly string[]> {
  const format = "$(REPO_URI)|$(RELEASE)|$(CODENAME)|$(COMPONENT)|$(ORIGIN)|$(TRUSTED)";
  return listing(["apt-get", "indextargets", "--format", format, "Created-By: Packages"], request);
}

async function listing(
  argv: readonly [string, ...string[]],
  request: AptRequest,
): Promise<readonly string[]> {
  const lines: string[] = [];
  await runHost(argv, { ...request, onLine: (line) => void lines.push(line) });
  return lines;
}

async function privateApt(work: string, request: BuildRequest): Promise<string> {
  for (const folder of ["lists/partial", "cache/archives/partial", "empty", "state", "sources"])
    makeFolder(path.join(work, folder), 0o777);
  await writeFile(path.join(work, "status"), "");
  const parts = await readdir("/etc/apt/sources.list.d").catch(() => []);
  const files = parts.filter((name) => /\.(?:list|sources)$/.test(name));
  const copies = files.map(
    (name) => [`/etc/apt/sources.list.d/${name}`, path.join(work, "sources", name)] as const,
  );
  for (const [from, to] of [["/etc/apt/sources.list", path.join(work, "main.list")] as const, ...copies])
    await copyFile(from, to).catch(() => undefined);
  const config = path.join(work, "apt.conf");
  await writeFile(config, await configText(work, request, "main.list"));
  return config;
}

/** This machine's settings for reaching its mirrors (proxies, certificates), and our folders for everything else. */
async function configText(
  work: string,
  request: BuildRequest,
  sources: "main.list" | "base.list",
): Promise<string> {
  const dump = await listing(["apt-config", "dump"], { env: request.env, signal: request.signal });
  const arch =
    (await listing(["dpkg", "--print-architecture"], { env: request.env, signal: request.signal }))[0] ?? "";
  const at = (name: string): string => path.join(work, name);
  const ours: Readonly<Record<string, string>> = {
    "Dir::Etc::Main": "/dev/null",
    "Dir::Etc::Parts": at("empty"),
    "Dir::Etc::Preferences": "/dev/null",
    "Dir::Etc::PreferencesParts": at("empty"),
    "Dir::Etc::SourceList": at(sources),
    "Dir::Etc::SourceParts": at(sources === "main.list" ? "sources" : "empty"),
    "Dir::State": at("state"),
    "Dir::State::Lists": at("lists"),
    "Dir::State::status": at("status"),
    "Dir::Cache": at("cache"),
    "Dir::Cache::pkgcache": "",
    "Dir::Cache::srcpkgcache": "",
    "Dir::Log": work,
    "APT::Architecture": arch,
    "APT::Sandbox::User": "",
    "APT::Get::AllowUnauthenticated": "false",
    "APT::Install-Recommends": "false",
    "APT::Install-Suggests": "false",
    "Acquire::Languages": "none",
    "Acquire::Retries": "3",
    "Debug::NoLocking": "true",
  };
  const kept = dump.filter((line) => line.startsWith("Acquire::"));
  const settings = Object.entries(ours).map(([key, value]) => `${key} ${JSON.stringify(value)};`);
  return [...kept, ...settings, `APT::Architectures { ${JSON.stringify(arch)}; };`, ""].join("\n");
}
