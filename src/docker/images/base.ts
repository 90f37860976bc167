import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import type { Readable } from "node:stream";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Engine } from "../engine.ts";
import { isMissing } from "../failure.ts";
import { readSystem } from "../host/system.ts";
import { bootstrapBase } from "./bootstrap.ts";
import type { BuildRequest } from "./request.ts";
import { type AptSource, parseAptSources, sourceFor } from "./sources.ts";
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
  const source = sourceFor(system.codename, await readSources());
  if (source === undefined) throw noBase("no package mirror of this distribution is configured");
  const tag = `${BASE_REPOSITORY}:${system.distribution}-${source.suite}`;
  if (await isThere(engine, tag)) return tag;
  request.onLine(`making a base of ${system.distribution} ${source.suite} from its own packages`);
  const work = await mkdtemp(path.join(request.tmp, "harness-base-"));
  try {
    await bootstrapBase({ engine, tag, source, work, request });
  } catch (thrown) {
    request.signal.throwIfAborted();
    throw noBase(reasonOf(thrown));
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return tag;
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

async function readSources(): Promise<readonly AptSource[]> {
  const folder = "/etc/apt/sources.list.d";
  const parts = (await readdir(folder).catch(() => []))
    .filter((name) => /\.(?:list|sources)$/.test(name))
    .toSorted();
  const files = ["/etc/apt/sources.list", ...parts.map((name) => path.join(folder, name))];
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  return texts.flatMap(parseAptSources);
}

function noBase(why: string): HarnessError {
  const message = `no base for the sandbox image: ${PULLED_BASE} cannot be pulled, and none can be made here: ${why}`;
  const remedy = `docker pull ${PULLED_BASE} where a registry answers, or bring an image: --image NAME`;
  return new HarnessError(EXIT.sandbox, message, remedy);
}
