import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import path from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Engine, findEngine, isEngine } from "../../src/docker/engine.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image } from "../fixtures/engine.ts";
import { ENGINE_SOCKET, PAUSE_IMAGE, type Plan } from "./cluster-parts.ts";

/** Loads images into a cluster from this machine's engine: the cluster has no registry. */

async function dockerOf({ folder }: Plan): Promise<Engine> {
  const patience = AbortSignal.timeout(60_000);
  for (;;) {
    const found = await findEngine({ DOCKER_HOST: `unix://${path.join(folder, ENGINE_SOCKET)}` }, 0);
    if (isEngine(found)) return found;
    if (patience.aborted) throw new Error(`the cluster's engine does not answer: ${found.reason}`);
    await sleep(100);
  }
}

/** Loads an archive, as written by `docker save`, into the cluster's container engine. */
async function loadArchive(plan: Plan, archive: Readable): Promise<void> {
  if (plan.release === "1.20") {
    const loading = await (await dockerOf(plan)).api.loadImage(archive);
    await once(loading.resume(), "end");
    return;
  }
  const words = ["--address", path.join(plan.folder, ENGINE_SOCKET), "--namespace", "k8s.io"];
  const child = spawn("ctr", [...words, "images", "import", "-"], { stdio: ["pipe", "ignore", "pipe"] });
  const said: string[] = [];
  child.stderr.setEncoding("utf8").on("data", (text: string) => said.push(text));
  const ended = once(child, "exit") as Promise<[number | null]>;
  await pipeline(archive, child.stdin).catch(() => undefined);
  const [code] = await ended;
  if (code !== 0) throw new Error(`the image was not taken (${code}): ${said.join("").trim()}`);
}

export async function loadInto(plan: Plan, reference: string): Promise<void> {
  await loadArchive(plan, (await engine.api.getImage(reference).get()) as Readable);
}

/** Loads the program that holds a pod's namespaces, as an image. */
async function loadPause(plan: Plan): Promise<void> {
  const place = await mkdtemp(path.join(plan.folder, "pause-"));
  const at = (...parts: readonly string[]): string => path.join(place, ...parts);
  await mkdir(at("root"));
  await copyFile(path.join(plan.programs, "pause"), at("root/pause"));
  await run("tar", ["-C", at("root"), "-cf", at("layer.tar"), "pause"]);
  const layer = createHash("sha256")
    .update(await readFile(at("layer.tar")))
    .digest("hex");
  const config = {
    architecture: { x64: "amd64", arm64: "arm64" }[process.arch as string] ?? process.arch,
    os: "linux",
    config: { Entrypoint: ["/pause"] },
    rootfs: { type: "layers", diff_ids: [`sha256:${layer}`] },
  };
  await writeFile(at("config.json"), JSON.stringify(config));
  const manifest = [{ Config: "config.json", RepoTags: [PAUSE_IMAGE], Layers: ["layer.tar"] }];
  await writeFile(at("manifest.json"), JSON.stringify(manifest));
  await run("tar", ["-C", place, "-cf", at("image.tar"), "manifest.json", "config.json", "layer.tar"]);
  await loadArchive(plan, createReadStream(at("image.tar")));
  await rm(place, { recursive: true });
}

async function run(program: string, words: readonly string[]): Promise<void> {
  const child = spawn(program, words, { stdio: "ignore" });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
}

export async function loadImages(plan: Plan): Promise<void> {
  await loadPause(plan);
  await loadInto(plan, image);
}
