import { chown, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type Docker from "dockerode";
import type { OwnedBox } from "../src/core/ports.ts";
import type { BoxMaker, BoxRequest } from "../src/docker/box/prepare-box.ts";
import { startBox } from "../src/docker/box/start-box.ts";
import { type Engine, findEngine, isEngine } from "../src/docker/engine.ts";
import { wantedImage } from "../src/docker/box-image.ts";

const ROOT = path.join(import.meta.dirname, "..");

/** An engine and a folder for boxes; the folder is removed at the end. */
export interface Ground extends AsyncDisposable {
  readonly engine: Engine;
  readonly image: string;
  /** The workspace of the boxes. */
  readonly workspace: string;
  readonly startBox: (wanted?: Pick<BoxRequest, "network">) => Promise<OwnedBox>;
  /** Starts a plain container of the same image, without anything of harness. */
  readonly startBare: (limits?: Pick<Docker.HostConfig, "NanoCpus">) => Promise<Docker.Container>;
}

export async function ground(): Promise<Ground> {
  const uid = process.getuid?.() ?? 0;
  const engine = await findEngine(process.env, uid);
  if (!isEngine(engine)) throw new Error(`no engine: ${engine.reason}`);
  const { tag: image, present } = await wantedImage(engine, ROOT);
  if (!present) throw new Error(`the sandbox image ${image} is not built: ./start.sh`);
  const place = await mkdtemp(path.join(tmpdir(), "harness-bench-"));
  const workspace = path.join(place, "work");
  await mkdir(workspace);
  if (uid === 0) await chown(workspace, 1000, 1000);
  const [home, stateDir] = [path.join(place, "home"), path.join(place, "state")];
  const maker: BoxMaker = { engine, root: ROOT, uid, home, stateDir, onWarning: () => undefined };
  const request: BoxRequest = {
    workspace,
    mode: "workspace-write",
    image: null,
    limits: { memory: 2 ** 30, cpus: null, pids: 256 },
    runtime: null,
    isolation: "bind",
    keep: null,
    watchChanges: false,
  };
  return {
    engine,
    image,
    workspace,
    startBox: (wanted = {}) => startBox(maker, { ...request, ...wanted }, new AbortController().signal),
    startBare: async (limits = {}) => {
      const HostConfig = { ...limits, NetworkMode: "none", Binds: [`${workspace}:${workspace}`] };
      const container = await engine.api.createContainer({ Image: image, Cmd: ["sleep", "600"], HostConfig });
      await container.start();
      return container;
    },
    [Symbol.asyncDispose]: () => rm(place, { recursive: true, force: true }),
  };
}

/** Like `docker exec`: runs to the end of the output and checks the exit code. */
export async function dockerExec(container: Docker.Container, words: readonly string[]): Promise<void> {
  const exec = await container.exec({ Cmd: [...words], AttachStdout: true, AttachStderr: true });
  const stream = await exec.start({});
  stream.resume();
  await new Promise((resolve, reject) => stream.once("end", resolve).once("error", reject));
  const { ExitCode } = await exec.inspect();
  if (ExitCode !== 0) throw new Error(`${words.join(" ")} by docker exec ended with ${ExitCode}`);
}
