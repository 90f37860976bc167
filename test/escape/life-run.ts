import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { COMPILED } from "../fixtures/cli.ts";
import { engine } from "../fixtures/engine-api.ts";
import { ROOT } from "../fixtures/engine.ts";
import type { Room } from "../fixtures/escape.ts";

/**
 * One start of the command line over a room's workspace; bin/harness replaces itself by the program, so signals reach
 * the program.
 */
export interface Run {
  readonly child: ChildProcess;
  readonly said: () => string;
  /** Resolves once this text was printed. */
  readonly until: (text: string) => Promise<void>;
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

export function startRun(
  room: Room,
  command: string,
  env: Readonly<Record<string, string>> = {},
  flags: readonly string[] = [],
): Run {
  const child = spawn(
    path.join(ROOT, "bin/harness"),
    ["sandbox", "exec", ...flags, "--", "bash", "-c", command],
    {
      cwd: room.W,
      env: {
        PATH: process.env["PATH"],
        HOME: path.join(room.root, "home"),
        XDG_STATE_HOME: path.join(room.root, "state"),
        ...COMPILED,
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
      // So that a test that fails early leaves no run behind.
      timeout: 180_000,
      killSignal: "SIGKILL",
    },
  );
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once("close", (code, signal) => resolve(signal ?? code));
  });
  const until = async (wanted: string): Promise<void> => {
    // The run ends by itself, at the latest at its timeout.
    while (!text.includes(wanted) && child.exitCode === null && child.signalCode === null) await sleep(25);
    assert.ok(text.includes(wanted), `never said ${wanted}: ${text}`);
  };
  return { child, said: () => text, until, ended };
}

const LOOK_MS = 50;

/** Checks until no container is left over the workspace, at most as often as fits into `ms`. */
export async function goneWithin(room: Room, ms: number): Promise<void> {
  const most = Math.ceil(ms / LOOK_MS);
  for (let looks = 0; (await room.boxes()).length > 0; looks += 1) {
    assert.ok(looks < most, `a container is left after ${looks} looks`);
    await sleep(LOOK_MS);
  }
}

/** What a dead run may have left on the host: containers, volumes, locks, folders of boxes, mounts. */
export async function leftOn(room: Room): Promise<readonly string[]> {
  const state = path.join(room.root, "state", "harness");
  const inside = async (folder: string): Promise<readonly string[]> =>
    (await readdir(path.join(state, folder)).catch(() => [])).map((name) => `${folder}/${name}`);
  const mounts = (await readFile("/proc/self/mountinfo", "utf8"))
    .split("\n")
    .filter((line) => line.includes(room.root));
  const label = [`dev.harness.workspace=${room.W}`];
  const { Volumes } = await engine.api.listVolumes({ filters: { label } });
  const volumes = (Volumes ?? []).map(({ Name }) => Name);
  return [
    ...(await room.boxes()),
    ...volumes,
    ...mounts,
    ...(await inside("locks")),
    ...(await inside("boxes")),
  ];
}
