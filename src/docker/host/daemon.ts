import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type Engine, findEngine, isEngine } from "../engine.ts";
import { runHost } from "./run.ts";
import type { System } from "./system.ts";

interface StartRequest {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly logFile: string;
}

const PATIENCE_MS = 60_000;

/** Starts the installed engine, with systemd or without, and waits until it answers. */
export async function startDaemon(system: System, request: StartRequest): Promise<Engine> {
  if (system.systemd) {
    await runHost(["systemctl", "start", "docker"], request);
    return awaitEngine(request, () => false, "systemctl status docker");
  }
  await dropStalePid("/var/run/docker.pid", "dockerd");
  await dropStalePid("/var/run/docker/containerd/containerd.pid", "containerd");
  mkdirSync(path.dirname(request.logFile), { recursive: true, mode: 0o700 });
  const log = openSync(request.logFile, "w", 0o600);
  const env = { ...request.env, PATH: `${request.env["PATH"] ?? ""}:/usr/sbin:/sbin:/usr/local/sbin` };
  const daemon = spawn("dockerd", [], { detached: true, stdio: ["ignore", log, log], env });
  closeSync(log);
  let ended = false;
  daemon.once("error", () => (ended = true));
  daemon.once("exit", () => (ended = true));
  daemon.unref();
  return awaitEngine(request, () => ended, `tail ${request.logFile}`);
}

async function awaitEngine(request: StartRequest, ended: () => boolean, look: string): Promise<Engine> {
  const deadline = Date.now() + PATIENCE_MS;
  while (Date.now() < deadline) {
    request.signal.throwIfAborted();
    const found = await findEngine({ PATH: request.env["PATH"] }, 0);
    if (isEngine(found)) return found;
    if (ended()) break;
    await pause(100);
  }
  const log = await readFile(request.logFile, "utf8").catch(() => "");
  const why = log.trim().split("\n").slice(-4).join("\n    ");
  throw new HarnessError(EXIT.sandbox, `the engine was started but does not answer:\n    ${why}`, look);
}

/** A killed daemon leaves its pid behind, and the next one refuses to start if that number is in use again. */
async function dropStalePid(file: string, program: string): Promise<void> {
  const pid = (await readFile(file, "utf8").catch(() => "")).trim();
  if (pid === "") return;
  const name = (await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "")).trim();
  if (name !== program) await rm(file, { force: true });
}
