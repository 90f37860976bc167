import { execFile } from "node:child_process";
import { mkdtemp, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { type Headers, pack, type Pack } from "tar-fs";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { visible } from "../core/visible.ts";
import { RUNNER_LABEL } from "../boxes/box-record.ts";
import type { BoxPlan } from "./container-spec.ts";
import { answered, askEngine, type Engine, engineFailure, isMissing, isPodman } from "./engine.ts";
import { quoted } from "./environments/dockerfile-copies.ts";
import { topOf, unstartedContainer } from "./unstarted-container.ts";
import { localBase, pullBase, PULLED_BASE } from "./base-image.ts";
import {
  type ImageBuildRequest,
  COMPILED,
  type ImageInputs,
  imageTag,
  installedNpm,
  isSource,
  nodePackage,
  packageFolder,
  packedNpm,
  readImageInputs,
  sandboxFolder,
} from "./image-inputs.ts";
import { followStream } from "./image-progress.ts";
import { makeFolder } from "../platform/folders.ts";

/** The image that a box starts from: ours, which is built here, or the user's own with our runner. */

/** What a box starts from: an image by its id, and the source of its runner. */
interface BoxImage {
  readonly id: string;
  readonly volumes: BoxPlan["volumes"];
}

export const RUNNER_FOLDER = "/usr/local/lib/harness";
export const RUNNER = `${RUNNER_FOLDER}/runner`;

/** Our own image, or the user's with our runner mounted into it. Neither image is run to find out. */
export async function boxImage(engine: Engine, root: string, own: string | null): Promise<BoxImage> {
  const { tag } = await wantedImage(engine, root);
  const ours = await inspect(engine, tag);
  if (ours === undefined) throw notBuilt(tag);
  if (own === null) return { id: ours.Id, volumes: [] };
  const theirs = await inspect(engine, own);
  if (theirs === undefined) throw new AbsentImage(engine, own);
  refuseVolumes(own, Object.keys(theirs.Config.Volumes ?? {}));
  if (theirs.Architecture !== ours.Architecture)
    throw refuse(own, `is for ${theirs.Architecture}, but this engine runs ${ours.Architecture}`);
  const volume = await runnerVolume(engine, tag);
  return { id: theirs.Id, volumes: [{ volume, target: RUNNER_FOLDER }] };
}

interface Image {
  readonly Id: string;
  readonly Architecture: string;
  readonly Config: { readonly Volumes?: Readonly<Record<string, object>> | null };
}

async function inspect(engine: Engine, name: string): Promise<Image | undefined> {
  try {
    return await engine.api.getImage(name).inspect();
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw engineFailure(`looking for the image ${name}`, thrown);
  }
}

const notBuilt = (tag: string): HarnessError =>
  new HarnessError(EXIT.sandbox, `the sandbox image ${tag} is not built`, "harness sandbox build");

/** A named image that the engine does not have. */
export class AbsentImage extends HarnessError {
  readonly image: string;

  constructor(engine: Engine, image: string) {
    const shown = visible(image);
    // The name may come from a repository's Dockerfile, and a person types this command.
    const pull = `${isPodman(engine) ? "podman" : "docker"} pull ${quoted(shown)}`;
    super(EXIT.sandbox, `the image ${shown} is not on this engine`, pull);
    this.image = shown;
  }
}

const refuse = (name: string, why: string): HarnessError =>
  new HarnessError(EXIT.sandbox, `the image ${name} ${why}`, "harness config set image null");

function refuseVolumes(name: string, volumes: readonly string[]): void {
  if (volumes.length === 0) return;
  throw refuse(name, `declares volumes (${volumes.join(", ")}): what is written there would have no limit`);
}

/**
 * The runner of our image as a volume. Docker fills the volume when it creates the first container that mounts it;
 * Podman only when such a container starts, and none of ours does.
 */
async function runnerVolume(engine: Engine, tag: string): Promise<string> {
  const name = tag.replace(":", "-runner-");
  try {
    if (await isFilled(engine, name)) return name;
    await engine.api.createVolume({ Name: name, Labels: { [RUNNER_LABEL]: tag } });
    if (isPodman(engine)) {
      await copyRunner(engine, tag, name);
      return name;
    }
    const Mounts = [{ Type: "volume", Source: name, Target: RUNNER_FOLDER }] as const;
    const filler = await engine.api.createContainer({
      Image: tag,
      Labels: { [RUNNER_LABEL]: name },
      HostConfig: { Mounts: [...Mounts], NetworkMode: "none" },
    });
    await filler.remove({ force: true });
    return name;
  } catch (thrown) {
    throw engineFailure("preparing the runner for another image", thrown);
  }
}

async function copyRunner(engine: Engine, tag: string, name: string): Promise<void> {
  const filling = { image: tag, labels: { [RUNNER_LABEL]: name } };
  await using ours = await unstartedContainer(engine, filling);
  await using filler = await unstartedContainer(engine, {
    ...filling,
    volume: { name, target: RUNNER_FOLDER },
  });
  const archive = await ours.container.getArchive({ path: `${RUNNER_FOLDER}/.` });
  await filler.container.putArchive(archive, { path: topOf(engine, RUNNER_FOLDER).path });
}

/** A volume is filled while a container is created. Without a leftover container of that step it is complete. */
async function isFilled(engine: Engine, name: string): Promise<boolean> {
  const [volumes, fillers] = await Promise.all([
    engine.api.listVolumes({ filters: { name: [name] } }),
    engine.api.listContainers({ all: true, filters: { label: [`${RUNNER_LABEL}=${name}`] } }),
  ]);
  const there = (volumes.Volumes ?? []).some(({ Name }) => Name === name);
  return there && fillers.length === 0;
}

interface BuiltImage {
  readonly tag: string;
  /** What was done: `kept` if an image of these inputs was there. */
  readonly how: "kept" | "built on a pulled base" | "built on the distribution's packages";
}

/** The tag that this package needs on this engine, and whether an image has it. */
export async function wantedImage(engine: Engine, root: string): Promise<{ tag: string; present: boolean }> {
  const tag = imageTag(await readImageInputs(root, engine.version.arch));
  return { tag, present: await imageExists(engine, tag) };
}

export async function imageExists(engine: Engine, name: string): Promise<boolean> {
  try {
    const statusCodes = { 200: true, 404: "no such image", 500: "server error" } as const;
    await answered((abortSignal) =>
      askEngine(engine.api, { path: `/images/${name}/json`, method: "GET", statusCodes, abortSignal }),
    );
    return true;
  } catch (thrown) {
    if (isMissing(thrown)) return false;
    throw engineFailure("looking for the sandbox image", thrown);
  }
}

/** Makes the sandbox image unless one of the same inputs is there. The tag appears only when everything is done. */
export async function ensureImage(
  engine: Engine,
  request: ImageBuildRequest,
  rebuild = false,
): Promise<BuiltImage> {
  const inputs = await readImageInputs(request.root, engine.version.arch);
  const tag = imageTag(inputs);
  if (!rebuild && (await imageExists(engine, tag))) return { tag, how: "kept" };
  const pulled = await pullBase(engine, request);
  const base = pulled ? PULLED_BASE : await localBase(engine, request);
  await buildOn(base, tag, { engine, inputs, request, rebuild });
  return { tag, how: pulled ? "built on a pulled base" : "built on the distribution's packages" };
}

interface Build {
  readonly engine: Engine;
  readonly inputs: ImageInputs;
  readonly request: ImageBuildRequest;
  readonly rebuild: boolean;
}

async function buildOn(
  base: string,
  tag: string,
  { engine, inputs, request, rebuild }: Build,
): Promise<void> {
  const lines: string[] = [];
  try {
    const context = await buildContext(request.root, inputs, request.cache);
    const stream = await engine.api.buildImage(context, {
      t: tag,
      dockerfile: "Dockerfile.sandbox",
      buildargs: { BASE: base, ...proxyArgs(request.env) },
      labels: { "dev.harness.image": tag, "dev.harness.base": base },
      nocache: rebuild,
      rm: true,
      forcerm: true,
    });
    await followStream(stream as Readable, {
      silenceMs: 600_000,
      signal: request.signal,
      onLine: ({ text }) => {
        if (text === "") return;
        lines.push(text);
        if (lines.length > 30) lines.shift();
        request.onLine(text);
      },
    });
  } catch (thrown) {
    throw buildFailure(thrown, lines);
  }
}

/** The builder accepts these arguments even if the Dockerfile does not name them. */
function proxyArgs(env: ImageBuildRequest["env"]): Record<string, string> {
  const names = ["http_proxy", "https_proxy", "no_proxy"].flatMap((name) => [name, name.toUpperCase()]);
  return Object.fromEntries(names.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
}

function buildFailure(thrown: unknown, lines: readonly string[]): HarnessError {
  const last = lines.slice(-8).join("\n    ");
  const reason = reasonOf(thrown);
  const message = `the sandbox image could not be built: ${reason}${last === "" ? "" : `\n    ${last}`}`;
  return new HarnessError(EXIT.sandbox, message, remedyFor(`${reason} ${last}`), thrown);
}

function remedyFor(text: string): string {
  if (/no space left/i.test(text))
    return "free some space (docker system df; docker image prune), then run ./start.sh again";
  if (/interrupted/.test(text)) return "run ./start.sh again: it continues where it stopped";
  if (/Unable to fetch|Temporary failure|Could not resolve|Unable to connect/i.test(text))
    return "the package mirror could not be reached from a build container; check the network, then run ./start.sh again";
  return "harness sandbox build shows every line of the build";
}

/** The build context as one tar stream: Dockerfile, Node for the engine's architecture, npm, sources to compile. */
async function buildContext(
  root: string,
  inputs: ImageInputs,
  cache: string,
): Promise<NodeJS.ReadableStream> {
  const npm = await npmFolder(root, inputs, cache);
  const node = await nodeFolder(inputs, npm, cache);
  const architectures = path.join(node, "include/node/openssl/archs");
  const isForeign = (name: string): boolean =>
    path.dirname(name) === architectures && !/linux-(?:x86_64|aarch64)$/.test(name);
  const unneeded = new Set([path.join(npm, "docs"), path.join(npm, "man")]);
  const isUnneeded = (name: string): boolean => unneeded.has(name);
  const withSources = (stream: Pack): void => {
    const entries = [...COMPILED];
    pack(sandboxFolder(root), { entries, pack: stream, ignore: isNoSource, map: headerBelow("") });
  };
  const withNpm = (stream: Pack): void => {
    pack(npm, {
      pack: stream,
      ignore: isUnneeded,
      map: headerBelow("npm"),
      finalize: false,
      finish: withSources,
    });
  };
  const withNode = (stream: Pack): void => {
    const entries = ["bin/node", "include/node"];
    const map = headerBelow("node");
    pack(node, { entries, ignore: isForeign, pack: stream, finalize: false, finish: withNpm, map });
  };
  const stream = pack(root, {
    entries: ["Dockerfile.sandbox"],
    finalize: false,
    finish: withNode,
    map: headerBelow(""),
  });
  return Readable.from(stream, { objectMode: false });
}

/** Folders have no extension. */
const isNoSource = (name: string): boolean => path.extname(name) !== "" && !isSource(name);

/** Drops owner and time, so that the builder's cache depends on content alone. */
const headerBelow =
  (folder: string) =>
  (header: Headers): Headers => ({
    ...header,
    name: path.posix.join(folder, header.name),
    mtime: new Date(0),
    uid: 0,
    gid: 0,
    mode: header.type === "directory" || (header.mode & 0o100) !== 0 ? 0o755 : 0o644,
  });

/** The installed Node if the engine's architecture is ours; otherwise fetched once into the cache. */
async function nodeFolder(inputs: ImageInputs, npm: string, cache: string): Promise<string> {
  const name = nodePackage(inputs.arch);
  const installed = packageFolder(name);
  if (installed !== undefined) return installed;
  const kept = path.join(cache, "node", `${name}-${inputs.node}`);
  if (await exists(path.join(kept, "bin", "node"))) return kept;
  const spec = `${name}@${inputs.node}`;
  const cli = path.join(npm, "bin", "npm-cli.js");
  try {
    await unpackInto(kept, async (work) => {
      const args = [cli, "pack", spec, "--silent", "--pack-destination", work];
      await promisify(execFile)(process.execPath, args, { timeout: 600_000 });
      return path.join(work, `${spec.replace("@", "-")}.tgz`);
    });
  } catch (thrown) {
    const message = `${spec} could not be fetched for the engine's architecture: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.sandbox, message, `npm pack ${spec}`, thrown);
  }
  return kept;
}

/** The installed npm in a checkout; in a package that was installed, unpacked once into the cache. */
async function npmFolder(root: string, { npm: version }: ImageInputs, cache: string): Promise<string> {
  const installed = await installedNpm(version);
  if (installed !== undefined) return installed;
  const kept = path.join(cache, "npm", version);
  if (await exists(path.join(kept, "bin", "npm-cli.js"))) return kept;
  try {
    await unpackInto(kept, () => Promise.resolve(packedNpm(root)));
  } catch (thrown) {
    const message = `npm ${version}, which the image gets, is not in this package: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.sandbox, message, "reinstall harness; in a checkout: npm ci", thrown);
  }
  return kept;
}

const exists = (file: string): Promise<boolean> =>
  stat(file).then(
    () => true,
    () => false,
  );

/** Unpacks the folder `package` of a packed package as `target`: all of it or nothing. */
async function unpackInto(target: string, packed: (work: string) => Promise<string>): Promise<void> {
  makeFolder(path.dirname(target), 0o777);
  const work = await mkdtemp(`${target}-`);
  try {
    await promisify(execFile)("tar", ["-xzf", await packed(work), "-C", work]);
    await rename(path.join(work, "package"), target).catch(async (thrown: unknown) => {
      // Another harness was faster.
      if (!(await exists(target))) throw thrown;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
