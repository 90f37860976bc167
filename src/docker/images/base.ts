import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import type { Readable } from "node:stream";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Engine } from "../engine.ts";
import { engineFailure, hasStatus, isMissing } from "../failure.ts";
import { isDebianLike, readSystem } from "../host/system.ts";
import { bootstrapBase, sweepStages } from "./bootstrap.ts";
import { configureScript, shortHash } from "./inputs.ts";
import type { BuildRequest } from "./request.ts";
import { followStream } from "./stream.ts";

export const PULLED_BASE = "debian:12-slim";

export const BASE_REPOSITORY = "harness-base";

const SILENCE_MS = 20_000;

/** True when the base image is there, pulled now or before; false when no registry answers. */
export async function pullBase(engine: Engine, request: BuildRequest): Promise<boolean> {
  if (await isThere(engine, PULLED_BASE)) return true;
  try {
    await followStream((await engine.api.pull(PULLED_BASE)) as Readable, {
      silenceMs: SILENCE_MS,
      signal: request.signal,
      onLine: ({ text }) => request.onLine(`${PULLED_BASE}: ${text}`),
    });
    return true;
  } catch (thrown) {
    request.signal.throwIfAborted();
    request.onLine(`${PULLED_BASE} cannot be pulled: ${reasonOf(thrown)}`);
    return false;
  }
}

/** A base made from the packages of this machine's own distribution, kept for the next build. */
export async function localBase(engine: Engine, request: BuildRequest): Promise<string> {
  const system = await readSystem(request.env);
  if (!isDebianLike(system)) throw noBase("this machine has no apt to make one with");
  if (engine.version.arch !== HOST_ARCH)
    throw noBase(`the engine is ${engine.version.arch}, this machine ${HOST_ARCH}`);
  const script = shortHash(await readFile(configureScript(request.root), "utf8"));
  const tag = `${BASE_REPOSITORY}:${system.distribution}-${system.codename}-${script}`;
  if (await isThere(engine, tag)) return tag;
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

/** A folder named by our pid; those of processes that were killed are removed on the way. */
async function freshFolder(cache: string): Promise<string> {
  await mkdir(cache, { recursive: true, mode: 0o700 });
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

async function isThere(engine: Engine, name: string): Promise<boolean> {
  try {
    await engine.api.getImage(name).inspect();
    return true;
  } catch (thrown) {
    if (isMissing(thrown)) return false;
    throw thrown;
  }
}

function noBase(why: string): HarnessError {
  const message = `no base for the sandbox image: ${PULLED_BASE} cannot be pulled, and none can be made here: ${why}`;
  const remedy = `docker pull ${PULLED_BASE} where a registry answers, or bring an image: --image NAME`;
  return new HarnessError(EXIT.sandbox, message, remedy);
}
