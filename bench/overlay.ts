import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Engine, findEngine, isEngine } from "../src/docker/engine.ts";
import { startBox } from "../src/docker/box/start-box.ts";
import { type Figure, inTurn, type Measured } from "./figure.ts";
import type { Isolation } from "../src/boxes/workspace/layer-record.ts";

const FILES = 100_000;
const RUNS = 11;

async function fill(folder: string): Promise<void> {
  for (let at = 0; at < FILES; at += 1000) {
    const inner = path.join(folder, String(at / 1000));
    await mkdir(inner);
    for (let one = 0; one < 1000; one += 1) await writeFile(path.join(inner, String(one)), "");
  }
}

/** Milliseconds until a verified box over the folder is ready. */
function readyIn(engine: Engine, home: string): (workspace: string, isolation: Isolation) => Promise<number> {
  const root = path.join(import.meta.dirname, "..");
  const stateDir = path.join(home, "state");
  const maker = { engine, root, uid: process.getuid?.() ?? 0, home: "/nonexistent", stateDir, onWarning };
  return async (workspace, isolation) => {
    const limits = { memory: 2 ** 29, cpus: null, pids: 128 };
    const request = { workspace, isolation, limits, mode: "workspace-write" as const, ...PLAIN };
    const start = performance.now();
    await using box = await startBox(maker, request, AbortSignal.timeout(60_000));
    void box;
    return performance.now() - start;
  };
}

const PLAIN = { image: null, runtime: null, watchChanges: false, keep: null };
const onWarning = (): void => undefined;

/**
 * Compares an overlay over a large tree with a bind mount of an empty folder: the size of a repository costs nothing.
 */
async function measure(): Promise<Measured> {
  const engine = await findEngine(process.env, process.getuid?.() ?? 0);
  if (!isEngine(engine)) throw new Error(`no engine: ${engine.reason}`);
  const home = await mkdtemp(path.join(tmpdir(), "harness-bench-"));
  try {
    const [large, empty] = [path.join(home, "large"), path.join(home, "empty")];
    for (const folder of [large, empty]) await mkdir(folder);
    await fill(large);
    const ready = readyIn(engine, home);
    return await inTurn(
      RUNS,
      () => ready(large, "overlay"),
      () => ready(empty, "bind"),
    );
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

export const OVERLAY: readonly Figure[] = [
  { name: "sandbox.overlay", unit: "ms", against: "an empty workspace mounted as it is", hold: 1.5, measure },
];
