import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { type Headers, pack, type Pack } from "tar-fs";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import {
  COMPILED,
  type ImageInputs,
  isSource,
  nodePackage,
  npmManifestFile,
  packageFolder,
  sandboxFolder,
} from "./inputs.ts";

/** The build context as one tar stream: Dockerfile, Node for the engine's architecture, npm, what is compiled. */
export async function buildContext(
  root: string,
  inputs: ImageInputs,
  cache: string,
): Promise<NodeJS.ReadableStream> {
  const node = path.join(await nodeFolder(inputs, cache), "bin");
  const npm = path.dirname(npmManifestFile());
  const unneeded = new Set([path.join(npm, "docs"), path.join(npm, "man")]);
  const isUnneeded = (name: string): boolean => unneeded.has(name);
  const withSources = (stream: Pack): void => {
    const entries = [...COMPILED];
    pack(sandboxFolder(root), { entries, pack: stream, ignore: isNoSource, map: under("") });
  };
  const withNpm = (stream: Pack): void => {
    pack(npm, { pack: stream, ignore: isUnneeded, map: under("npm"), finalize: false, finish: withSources });
  };
  const withNode = (stream: Pack): void => {
    pack(node, { entries: ["node"], pack: stream, finalize: false, finish: withNpm, map: under("") });
  };
  const stream = pack(root, {
    entries: ["Dockerfile.sandbox"],
    finalize: false,
    finish: withNode,
    map: under(""),
  });
  return Readable.from(stream, { objectMode: false });
}

/** Folders have no ending. */
const isNoSource = (name: string): boolean => path.extname(name) !== "" && !isSource(name);

/** Owner and time are left out, so that the builder's cache goes by content alone. */
const under =
  (folder: string) =>
  (header: Headers): Headers => ({
    ...header,
    name: path.posix.join(folder, header.name),
    mtime: new Date(0),
    uid: 0,
    gid: 0,
    mode: header.type === "directory" || (header.mode & 0o100) !== 0 ? 0o755 : 0o644,
  });

/** Installed here when the engine's architecture is ours; else fetched once into the cache. */
async function nodeFolder(inputs: ImageInputs, cache: string): Promise<string> {
  const name = nodePackage(inputs.arch);
  const installed = packageFolder(name);
  if (installed !== undefined) return installed;
  const kept = path.join(cache, "node", `${name}-${inputs.node}`);
  if (await exists(path.join(kept, "bin", "node"))) return kept;
  await fetchPackage(`${name}@${inputs.node}`, kept);
  return kept;
}

const exists = (file: string): Promise<boolean> =>
  stat(file).then(
    () => true,
    () => false,
  );

async function fetchPackage(spec: string, target: string): Promise<void> {
  await mkdir(path.dirname(target), { recursive: true });
  const work = await mkdtemp(`${target}-`);
  const npm = path.join(path.dirname(npmManifestFile()), "bin", "npm-cli.js");
  const run = promisify(execFile);
  try {
    await run(process.execPath, [npm, "pack", spec, "--silent", "--pack-destination", work], {
      timeout: 600_000,
    });
    await run("tar", ["-xzf", path.join(work, `${spec.replace("@", "-")}.tgz`), "-C", work]);
    await rename(path.join(work, "package"), target);
  } catch (thrown) {
    const message = `${spec} could not be fetched for the engine's architecture: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.sandbox, message, `npm pack ${spec}`, thrown);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
