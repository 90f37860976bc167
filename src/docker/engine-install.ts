import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { EXIT, HarnessError } from "../core/errors.ts";
import { type Engine, findEngine, isEngine } from "./engine.ts";
import { runHost, type System } from "../platform/host-programs.ts";
import { makeFolder } from "../platform/folders.ts";

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
  makeFolder(path.dirname(request.logFile));
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

interface InstallRequest {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly onLine: (line: string) => void;
}

/** Installs packages of the distribution, as root on Debian or Ubuntu. */
async function aptInstall(packages: readonly string[], request: InstallRequest): Promise<void> {
  const env = { ...request.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" };
  const wait = ["-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=2"];
  const update = await runHost(["apt-get", ...wait, "update"], { ...request, env });
  const install = await runHost(
    ["apt-get", ...wait, "install", "-y", "--no-install-recommends", ...packages],
    {
      ...request,
      env,
    },
  );
  if (install.code === 0) return;
  const why = [...(update.code === 0 ? [] : update.tail.slice(-3)), ...install.tail.slice(-3)].join("\n    ");
  const remedy = `apt-get update && apt-get install -y ${packages.join(" ")}, then ./start.sh again`;
  throw new HarnessError(EXIT.sandbox, `${packages.join(" ")} could not be installed:\n    ${why}`, remedy);
}

/** Installs the distribution's engine, and the control groups that it needs if nothing has mounted them. */
export async function installEngine(request: InstallRequest): Promise<void> {
  const mounts = await readFile("/proc/mounts", "utf8").catch(() => "");
  const grouped = /^\S+ \S+ cgroup2? /m.test(mounts);
  await aptInstall(["docker.io", ...(grouped ? [] : ["cgroupfs-mount"])], request);
  if (!grouped) await runHost(["cgroupfs-mount"], request);
}
