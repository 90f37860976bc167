import { createReadStream } from "node:fs";
import { lstat, mkdir, readdir, rename } from "node:fs/promises";
import path from "node:path";
import { randomBytes } from "node:crypto";
import type { Finding } from "../../core/behaviour.ts";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { type Connection, coversHost, isPreset, parseGrant } from "../../core/network.ts";
import type { ExecResult, OwnedBox } from "../../core/ports.ts";
import { visibleLine } from "../../core/visible.ts";
import { archiveFindings, cloneFindings, isWhole, type Unpacked } from "../../vet/look/archives.ts";
import { foldPieces, returnedTree } from "../../boxes/workspace/session-layer.ts";
import { type ArchiveLimits, archiveOf } from "../../boxes/workspace/workspace-archive.ts";
import { giveUpLayer, layerOf, layersIn } from "../../boxes/workspace/layer-record.ts";
import { boxFolders, isAlive, makeBoxFolder, removeBoxFolder, thisProcess } from "../../boxes/box-record.ts";
import { bringCopy } from "../../docker/box/layer-volumes.ts";
import { requireEngine } from "../boxes/box-access.ts";
import type { Host } from "../host.ts";
import { clearGivenUpLayers } from "../sessions/session-changes.ts";
import { BUDGET, isBare, stagingBox, type Subject, type VetOptions } from "./vet-box.ts";
import { UNPACK } from "./vet-scripts.ts";

/**
 * A subject that must be unpacked or cloned lies below the cache while it is examined: `<cache>/vet/boxes/<id>/tree`. A
 * box makes it, in a layer of its own; it is removed at the end, or after a kill at the next start.
 */
export interface Staged extends AsyncDisposable {
  readonly tree: string;
  readonly commit: string | null;
  readonly findings: readonly Finding[];
  /** Why nothing of it is run; null if it is run. */
  readonly notRun: string | null;
}

type StagedSubject = Exclude<Subject, { readonly kind: "folder" }>;

interface Filled {
  readonly commit: string | null;
  readonly findings: readonly Finding[];
  readonly notRun: string | null;
}

export async function stage(
  options: VetOptions,
  wanted: StagedSubject,
  signal: AbortSignal,
): Promise<Staged> {
  if (wanted.kind === "archive")
    return stageRepository(
      options,
      { granted: [], fill: (box) => unpackArchive(box, wanted.path, signal) },
      signal,
    );
  const refused: Connection[] = [];
  let unreached: Connection | undefined;
  const onConnection = (one: Connection): void => {
    if (one.verdict === "denied") refused.push(one);
    if (one.rule === "unreachable") unreached = one;
  };
  const fill = async (box: OwnedBox): Promise<Filled> => {
    const filled = await cloneRepository(box, wanted, signal).catch((thrown: unknown) => {
      throw refused.length === 0 && unreached !== undefined
        ? unreachedError(wanted, unreached, thrown)
        : redirectError(wanted, refused, thrown);
    });
    return { ...filled, findings: cloneFindings(refused.map(({ host, port }) => `${host}:${port}`)) };
  };
  return stageRepository(options, { granted: grantsFor(wanted, options), fill, onConnection }, signal);
}

interface Filling {
  readonly granted: readonly string[];
  readonly fill: (box: OwnedBox) => Promise<Filled>;
  readonly onConnection?: (connection: Connection) => void;
}

export async function stageRepository(
  options: VetOptions,
  { granted, fill, onConnection = () => undefined }: Filling,
  signal: AbortSignal,
): Promise<Staged> {
  const { host, settings } = options;
  await using place = await makePlace(host);
  const keep = `${LAYER}${path.basename(place.folder)}`;
  const filled = await (async (): Promise<Filled> => {
    const workspace = path.join(place.folder, "empty");
    await using box = await stagingBox(options, { workspace, keep, granted, onConnection }, signal);
    const filled = await fill(box);
    if (settings.isolation === "copy") await leaveTree(box, signal);
    return filled;
  })();
  signal.throwIfAborted();
  const tree = path.join(place.folder, "tree");
  const from =
    settings.isolation === "copy"
      ? await copyOf(host, keep, MAX_COPIED)
      : path.join(layersIn(host.places.state), keep, "upper");
  await rename(path.join(from, "tree"), tree).catch((thrown: unknown) => {
    if (errorCode(thrown) !== "EXDEV") throw thrown;
    throw new HarnessError(
      EXIT.sandbox,
      `${host.places.cache} and ${host.places.state} are on different file systems`,
      "put XDG_CACHE_HOME and XDG_STATE_HOME on one file system",
      thrown,
    );
  });
  const only = await onlyFolder(tree);
  const kept = place.move();
  return { ...filled, tree: only, [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose]() };
}

/** A copy comes back as a whole, so everything except the tree is deleted first. */
async function leaveTree(box: OwnedBox, signal: AbortSignal): Promise<void> {
  const words = ["find", box.workspace, "-mindepth", "1", "-maxdepth", "1", "!", "-name", "tree"];
  const deleted = [...words, "-exec", "rm", "-rf", "--", "{}", "+"];
  const result = await box.exec({ words: deleted, timeoutMs: UNPACK_MS, keep: KEEP }, signal);
  signal.throwIfAborted();
  if (result.exit_code === 0) return;
  throw new HarnessError(
    EXIT.sandbox,
    `the box could not clean up: ${lastLine(result) ?? result.reason}`,
    "",
  );
}

/** The limits are the disk that a local box may fill, and the number of files that an archive may have. */
const MAX_COPIED = { bytes: BUDGET.growth, entries: 2 * 200_000 };

/** Brings the result of a staging box on a remote engine, or in a pod, to this machine; returns its folder. */
async function copyOf(host: Host, keep: string, most: ArchiveLimits): Promise<string> {
  const layer = await layerOf(host.places.state, keep);
  if (layer === undefined)
    throw new HarnessError(EXIT.sandbox, "what the box unpacked is gone", "run the same command again");
  if (layer.engine === undefined)
    return bringCopy(layer, { engine: () => requireEngine(host), uid: host.uid, most });
  await foldPieces(layer);
  return (await returnedTree(layer.folder)) ?? layer.folder;
}

/** A copy on an engine is removed at once, because its owner is not recorded there. */
async function giveUp(host: Host, keep: string): Promise<void> {
  const layer = await layerOf(host.places.state, keep).catch(() => undefined);
  await giveUpLayer(host.places.state, keep);
  if (layer?.isolation === "copy") await clearGivenUpLayers(host);
}

const LAYER = "vet-";

interface StagingPlace extends AsyncDisposable {
  readonly folder: string;
  /** Hands the removal over to the returned disposable. */
  readonly move: () => AsyncDisposable;
}

/** Makes a place, after removing those of dead processes. */
async function makePlace(host: Host): Promise<StagingPlace> {
  const root = path.join(host.places.cache, "vet");
  await sweep(host, root);
  const id = randomBytes(8).toString("hex");
  const folder = await makeBoxFolder(root, id, await thisProcess());
  const empty = path.join(folder, "empty");
  await mkdir(empty);
  const remove = async (): Promise<void> => {
    await giveUp(host, `${LAYER}${id}`);
    await removeBoxFolder({ path: folder, id });
  };
  const state = { moved: false };
  return {
    folder,
    move: () => {
      state.moved = true;
      return { [Symbol.asyncDispose]: remove };
    },
    [Symbol.asyncDispose]: async () => {
      if (!state.moved) await remove();
    },
  };
}

async function sweep({ places }: Host, root: string): Promise<void> {
  for (const folder of await boxFolders(root)) {
    if (folder.owner === undefined || (await isAlive(folder.owner))) continue;
    await giveUpLayer(places.state, `${LAYER}${folder.id}`).catch(() => undefined);
    await removeBoxFolder(folder).catch(() => undefined);
  }
}

/** Most archives hold a single folder that contains everything. */
async function onlyFolder(tree: string): Promise<string> {
  const names = (await readdir(tree)).filter((name) => name !== "pax_global_header");
  const [only] = names;
  if (names.length !== 1 || only === undefined || only === ".git") return tree;
  const below = path.join(tree, only);
  return (await lstat(below)).isDirectory() ? below : tree;
}

const MiB = 2 ** 20;
const MAX_BYTES = 1024 * MiB;
const MAX_ENTRIES = 200_000;
const MAX_PACKED = 1024 * MiB;
const UNPACK_MS = 120_000;
const KEEP = { head: 512 * 1024, tail: 16 * 1024 };

type UnpackReport = Unpacked & { readonly error?: string };

async function unpackArchive(box: OwnedBox, file: string, signal: AbortSignal): Promise<Filled> {
  const { size } = await lstat(file);
  if (size > MAX_PACKED) throw unreadable(file, "it is larger than 1 GiB");
  const limits = [MAX_BYTES, MAX_ENTRIES].map(String);
  const words = ["python3", "-I", "-c", UNPACK, `${box.workspace}/tree`, ...limits];
  const input = createReadStream(file);
  const result = await box.exec({ words, timeoutMs: UNPACK_MS, keep: KEEP, input }, signal);
  signal.throwIfAborted();
  const read = result.timed_out ? TOO_LONG : parsed(result);
  if (read === undefined) throw unreadable(file, lastLine(result) ?? result.reason);
  if (read.error !== undefined) throw unreadable(file, read.error);
  const notRun = isWhole(read) ? null : "only a part of the archive was unpacked";
  return { commit: null, findings: archiveFindings(read), notRun };
}

const TOO_LONG: UnpackReport = { entries: 0, bytes: 0, packed: 0, stopped: "time", left_out: [] };

function parsed(result: ExecResult): UnpackReport | undefined {
  const line = new TextDecoder().decode(result.stdout.head).trim().split("\n").at(-1) ?? "";
  try {
    return JSON.parse(line) as UnpackReport;
  } catch {
    return undefined;
  }
}

const lastLine = ({ stderr }: ExecResult): string | undefined => {
  const text = new TextDecoder()
    .decode(stderr.lost > 0 || stderr.tail.length > 0 ? stderr.tail : stderr.head)
    .trim();
  const last = text.split("\n").findLast((line) => line.trim() !== "");
  return last === undefined ? undefined : visibleLine(last);
};

/** git's final error line; advice may follow it. */
const fatalLine = ({ stderr }: ExecResult): string | undefined => {
  const line = new TextDecoder()
    .decode(stderr.head)
    .split("\n")
    .find((each) => each.startsWith("fatal: "));
  return line === undefined ? undefined : visibleLine(line);
};

const unreadable = (file: string, why: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `${file} cannot be unpacked: ${why}`,
    "give a folder or an archive: zip, tar, tar.gz, tar.bz2, tar.xz, tar.zst",
  );

type Git = Extract<Subject, { readonly kind: "git" }>;

/** A read grant for exactly the host that is cloned from; for a private address only if the user's grant says so. */
function grantsFor({ from }: Git, { settings }: VetOptions): readonly string[] {
  if ("path" in from) return [];
  const { hostname, port, protocol } = from.url;
  const host = hostname.replace(/^\[|\]$/g, "");
  const own = settings.allow_domains.filter((text) => !isPreset(text)).map((text) => parseGrant(text));
  const isPrivate = own.some((grant) => grant.private && coversHost(grant, host));
  if (protocol === "http:" && !isPrivate)
    throw new HarnessError(
      EXIT.usage,
      `${from.url.href}: without TLS, anyone on the network path could change it`,
      `harness vet https://${from.url.host}${from.url.pathname}`,
    );
  const ports = port === "" ? (protocol === "http:" ? "80" : "443") : port;
  return [`git=${hostname}:${ports}${isPrivate ? ":private" : ""}`];
}

/** The reason of a failed clone if the network refused a connection: only the named host can be reached. */
function redirectError({ from }: Git, refused: readonly Connection[], thrown: unknown): unknown {
  const first = refused[0];
  if (first === undefined || "path" in from || !(thrown instanceof HarnessError)) return thrown;
  const { url } = from;
  const host = visibleLine(first.host);
  const isSame = first.host === url.hostname.replace(/^\[|\]$/g, "");
  const port = String(first.port) === (url.port || (url.protocol === "http:" ? "80" : "443"));
  return isSame && port
    ? new HarnessError(EXIT.usage, `${url.href}: ${visibleLine(first.reason)}`, thrown.remedy, thrown)
    : new HarnessError(
        EXIT.usage,
        `${url.href} redirects to ${host}:${first.port}, which was not named, so it was not contacted`,
        "if you trust that host, give the address there",
        thrown,
      );
}

/** Git knows only that the proxy had no answer; the proxy knows why. */
function unreachedError({ from }: Git, { reason }: Connection, thrown: unknown): unknown {
  if ("path" in from || !(thrown instanceof HarnessError)) return thrown;
  return new HarnessError(
    EXIT.usage,
    `${from.url.href}: ${visibleLine(reason)}`,
    "check the address and this machine's network; behind a proxy, set HTTPS_PROXY",
    thrown,
  );
}

const CLONE_MS = 300_000;

/** Obeys nothing that a repository brings: no hooks, templates, submodules or filters, and no other protocol. */
export const SAFE_GIT: Readonly<Record<string, string>> = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_TERMINAL_PROMPT: "0",
  GIT_LFS_SKIP_SMUDGE: "1",
  GIT_ASKPASS: "/bin/false",
  // Nothing listens in the box, so even a loopback address means the host's, by its grant.
  NO_PROXY: "",
  no_proxy: "",
};

export const GIT = [
  "/usr/bin/git",
  ..."core.hooksPath=/dev/null core.fsmonitor=false submodule.recurse=false credential.helper= core.attributesFile=/dev/null"
    .split(" ")
    .flatMap((setting) => ["-c", setting]),
] as const;

async function cloneRepository(box: OwnedBox, { from, ref }: Git, signal: AbortSignal): Promise<Filled> {
  const source = "path" in from ? await copyRepository(box, from.path, signal) : from.url.href;
  const tree = `${box.workspace}/tree`;
  const isCommit = ref !== null && /^[0-9a-f]{40}$/.test(ref);
  const branch = ref === null || isCommit ? [] : ["--branch", ref];
  const words = [
    ..."clone --quiet --template= --no-hardlinks --no-recurse-submodules --single-branch".split(" "),
    ...branch,
    ...(isCommit ? ["--no-checkout"] : []),
  ];
  const all = (): Promise<string> => git(box, [...words, "--", source, tree], signal);
  if (isCommit || "path" in from) await all();
  else
    await git(box, [...words, "--depth", "1", "--", source, tree], signal).catch((thrown: unknown) => {
      // A server that only serves files cannot clone a part.
      if (thrown instanceof HarnessError && thrown.message.includes("shallow capabilities")) return all();
      throw thrown;
    });
  if (isCommit) {
    await git(box, ["-C", tree, "fetch", "--quiet", "--no-recurse-submodules", "origin", ref], signal);
    await git(box, ["-C", tree, "checkout", "--quiet", "--detach", ref], signal);
  }
  const commit = (await git(box, ["-C", tree, "rev-parse", "HEAD"], signal).catch(noCommit)).trim();
  return { commit: /^[0-9a-f]{40,64}$/.test(commit) ? commit : null, findings: [], notRun: null };
}

/** The repository has no commit, or its current branch does not exist. */
function noCommit(thrown: unknown): never {
  if (!(thrown instanceof HarnessError)) throw thrown;
  const why = "the repository has no commit on its current branch, so there is nothing to vet";
  throw new HarnessError(EXIT.usage, why, "harness vet REPO#BRANCH", thrown);
}

/** Copies the repository's git directory into the box as a stream. */
export async function copyRepository(box: OwnedBox, folder: string, signal: AbortSignal): Promise<string> {
  const inner = path.join(folder, ".git");
  const found = await lstat(inner).catch(() => undefined);
  const root = found?.isDirectory() === true ? inner : folder;
  if (!(await isBare(root)))
    throw new HarnessError(EXIT.usage, `${folder} is not a git repository`, "harness vet FOLDER");
  const input = archiveOf(root, "source.git", () => undefined);
  const words = ["tar", "-x", "--no-same-owner", "-C", box.workspace];
  const result = await box.exec({ words, timeoutMs: UNPACK_MS, keep: KEEP, input }, signal);
  signal.throwIfAborted();
  if (result.exit_code !== 0)
    throw new HarnessError(
      EXIT.usage,
      `${folder} cannot be copied into the box: ${lastLine(result) ?? result.reason}`,
      "",
    );
  return `file://${box.workspace}/source.git`;
}

/** Runs git in the box; returns its standard output, and reports its failure to the user. */
export async function git(box: OwnedBox, words: readonly string[], signal: AbortSignal): Promise<string> {
  const env = { ...SAFE_GIT, GIT_ALLOW_PROTOCOL: "https:http:file" };
  const result = await box.exec(
    { words: [...GIT, ...words], env, timeoutMs: CLONE_MS, keep: { head: 8 * MiB, tail: 16 * 1024 } },
    signal,
  );
  signal.throwIfAborted();
  if (result.exit_code === 0) return new TextDecoder().decode(result.stdout.head);
  const why = fatalLine(result) ?? lastLine(result) ?? result.reason;
  throw new HarnessError(
    EXIT.usage,
    `git ${words.find((word, at) => !word.startsWith("-") && words[at - 1] !== "-C") ?? ""}: ${why}`,
    "check that the address is right and public; clone a private repository yourself, then vet its .git folder",
  );
}
