import { createReadStream, existsSync } from "node:fs";
import { copyFile, link, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { Container } from "dockerode";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { type Engine, engineFailure, hasStatus } from "./engine.ts";
import { isDebianLike, readSystem, runHost, type System } from "../platform/host-programs.ts";
import { type ImageBuildRequest, configureScript, shortHash } from "./image-inputs.ts";
import { isImageThere, lackOfImage } from "./image-progress.ts";
import { makeFolder } from "../platform/folders.ts";

/** The base of the sandbox image: pulled, or made of this machine's own packages where no registry answers. */

export const PULLED_BASE = "debian:12-slim";

export const BASE_REPOSITORY = "harness-base";

const SILENCE_MS = 20_000;

/** True if the base image is there, pulled now or before; false if no registry answers. */
export async function pullBase(engine: Engine, request: ImageBuildRequest): Promise<boolean> {
  const lack = await lackOfImage(engine.api, PULLED_BASE, {
    silenceMs: SILENCE_MS,
    signal: request.signal,
    onLine: ({ text }) => request.onLine(`${PULLED_BASE}: ${text}`),
  });
  if (lack !== undefined) request.onLine(`${PULLED_BASE} cannot be pulled: ${lack}`);
  return lack === undefined;
}

/** A base made from the packages of this machine's own distribution, kept for the next build. */
export async function localBase(engine: Engine, request: ImageBuildRequest): Promise<string> {
  const system = await readSystem(request.env);
  if (!isDebianLike(system)) throw noBase("this machine has no apt to make one with");
  if (engine.version.arch !== HOST_ARCH)
    throw noBase(`the engine runs ${engine.version.arch}, this machine ${HOST_ARCH}`);
  const script = shortHash(await readFile(configureScript(request.root), "utf8"));
  const tag = `${BASE_REPOSITORY}:${system.distribution}-${system.codename}-${script}`;
  if (await isImageThere(engine.api, tag)) return tag;
  request.onLine(`making a base of ${system.distribution} ${system.codename} from its own packages`);
  const work = await freshFolder(request.cache);
  await sweepStages(engine);
  try {
    await bootstrapBase({ engine, tag, system, work, request });
  } catch (thrown) {
    request.signal.throwIfAborted();
    if (hasStatus(thrown)) throw engineFailure("configuring the base of the sandbox image", thrown);
    throw noBase(reasonOf(thrown));
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return tag;
}

const HOST_ARCH = process.arch === "x64" ? "amd64" : process.arch;

/** A folder named by our pid; folders of processes that were killed are removed as well. */
async function freshFolder(cache: string): Promise<string> {
  makeFolder(cache);
  for (const name of await readdir(cache)) {
    const pid = /^base-(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`))
      await rm(path.join(cache, name), { recursive: true, force: true });
  }
  const work = path.join(cache, `base-${process.pid}`);
  await rm(work, { recursive: true, force: true });
  await mkdir(work);
  return work;
}

function noBase(why: string): HarnessError {
  const message = `no base for the sandbox image: ${PULLED_BASE} cannot be pulled, and none can be made here: ${why}`;
  const remedy = `docker pull ${PULLED_BASE} where a registry can be reached, or use an image of your own: --image NAME`;
  return new HarnessError(EXIT.sandbox, message, remedy);
}

/** On intermediate images and containers: the pid of the process that makes them. */
const STAGE_LABEL = "dev.harness.stage";

interface Bootstrap {
  readonly engine: Engine;
  readonly tag: string;
  readonly system: System;
  /** A folder of ours, removed by the caller. */
  readonly work: string;
  readonly request: ImageBuildRequest;
}

const MAX_FILES = 4096;

/**
 * Makes a base image from packages, without root on this machine and without installing anything on it: the packages
 * are unpacked here, and configured in a container without network. The tag appears only when everything has worked.
 */
async function bootstrapBase({ engine, tag, system, work, request }: Bootstrap): Promise<void> {
  const root = await unpackSystem(work, system, request);
  request.onLine("configuring the packages");
  const raw = await importTar(engine, createReadStream(root), `LABEL ${STAGE_LABEL}=${process.pid}`);
  const container = await engine.api.createContainer({
    Image: raw,
    Cmd: ["/bin/sh", "/.stage/configure"],
    Labels: { [STAGE_LABEL]: String(process.pid) },
    // Podman's own defaults are higher limits than a service without privileges may set.
    HostConfig: {
      NetworkMode: "none",
      Ulimits: [
        { Name: "nofile", Soft: MAX_FILES, Hard: MAX_FILES },
        { Name: "nproc", Soft: MAX_FILES, Hard: MAX_FILES },
      ],
    },
  });
  try {
    await configure(container, request.signal);
    const flat = await importTar(engine, (await container.export()) as Readable);
    request.signal.throwIfAborted();
    const [repo = "", version = ""] = tag.split(":");
    await engine.api.getImage(flat).tag({ repo, tag: version });
  } finally {
    await container.remove({ force: true, v: true }).catch(() => undefined);
    await engine.api
      .getImage(raw)
      .remove({ force: true })
      .catch(() => undefined);
  }
}

/** Removes what killed processes left behind on the engine that they share with us. */
async function sweepStages({ api }: Engine): Promise<void> {
  const filters = { label: [STAGE_LABEL] };
  const gone = (labels: Readonly<Record<string, string>> | undefined): boolean =>
    !existsSync(`/proc/${labels?.[STAGE_LABEL] ?? "self"}`);
  for (const { Id, Labels } of await api.listContainers({ all: true, filters }))
    if (gone(Labels))
      await api
        .getContainer(Id)
        .remove({ force: true, v: true })
        .catch(() => undefined);
  for (const { Id, Labels } of await api.listImages({ filters }))
    if (gone(Labels))
      await api
        .getImage(Id)
        .remove({ force: true })
        .catch(() => undefined);
}

/** Unpacks every package into one tree and returns the tree's tar file, with everything owned by root. */
async function unpackSystem(work: string, system: System, request: ImageBuildRequest): Promise<string> {
  request.onLine("downloading the packages of a minimal system");
  const { debs, sourcesList } = await downloadSystem(work, system, request);
  const root = path.join(work, "root");
  makeFolder(path.join(root, ".stage", "base"), 0o777);
  for (const folder of ["bin", "sbin", "lib", ...LOADER_FOLDERS]) {
    makeFolder(path.join(root, "usr", folder), 0o777);
    await symlink(`usr/${folder}`, path.join(root, folder));
  }
  for (const deb of debs) await link(deb, path.join(root, ".stage", "base", path.basename(deb)));
  request.onLine(`unpacking ${debs.length} packages`);
  await sh(UNPACK, [root], request);
  for (const folder of ["info", "updates", "alternatives", "parts"])
    makeFolder(path.join(root, "var/lib/dpkg", folder), 0o777);
  makeFolder(path.join(root, "etc/apt"), 0o777);
  await writeFile(path.join(root, "var/lib/dpkg/status"), "");
  await writeFile(path.join(root, "etc/apt/sources.list"), sourcesList);
  await copyFile(configureScript(request.root), path.join(root, ".stage", "configure"));
  const tar = path.join(work, "root.tar");
  await sh('tar -C "$1" -c --numeric-owner --owner=0 --group=0 . >"$2"', [root, tar], request);
  return tar;
}

/** The dynamic loader of amd64 is in /lib64. */
const LOADER_FOLDERS = process.arch === "x64" ? ["lib64"] : [];

const UNPACK = `for deb in "$1"/.stage/base/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -C "$1" -x -p --no-same-owner --keep-directory-symlink --no-overwrite-dir \
    --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/info --exclude=./usr/share/locale \\
    --exclude=./usr/share/zoneinfo --exclude=./usr/share/lintian
done`;

async function sh(
  script: string,
  args: readonly string[],
  { env, signal }: ImageBuildRequest,
): Promise<void> {
  const argv: [string, ...string[]] = ["sh", "-euc", `umask 022; ${script}`, "sh", ...args];
  const { code, tail } = await runHost(argv, { env: { ...env, LC_ALL: "C.UTF-8" }, signal });
  if (code !== 0) throw new Error(tail.slice(-3).join("; "));
}

async function configure(container: Container, signal: AbortSignal): Promise<void> {
  const stop = (): void => void container.kill().catch(() => undefined);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await container.start();
    const { StatusCode } = (await container.wait()) as { StatusCode: number };
    signal.throwIfAborted();
    if (StatusCode === 0) return;
    const log = await container.logs({ stdout: true, stderr: true, tail: 5 });
    throw new Error(`the packages could not be configured: ${printable(log.toString("latin1"))}`);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

const printable = (raw: string): string =>
  raw
    .replaceAll(/[^\x20-\x7E\n]+/g, "")
    .trim()
    .replaceAll("\n", "; ");

/** Imports a tar as an image and returns the image's id. */
async function importTar(engine: Engine, tar: Readable, changes = 'CMD ["bash"]'): Promise<string> {
  const answer = await text(await engine.api.importImage(tar, { changes }));
  const id = /sha256:[0-9a-f]{64}/.exec(answer)?.[0];
  if (id === undefined) throw new Error(`the engine did not accept the base: ${answer.trim().slice(-300)}`);
  return id;
}

/** The packages of a minimal system, and the sources.list line(s) they came from. */
interface Archive {
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
export async function downloadSystem(
  work: string,
  system: System,
  request: ImageBuildRequest,
): Promise<Archive> {
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
  readonly env: ImageBuildRequest["env"];
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

async function privateApt(work: string, request: ImageBuildRequest): Promise<string> {
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
  request: ImageBuildRequest,
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
