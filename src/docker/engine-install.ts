import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Engine, findEngine, isEngine, type NoEngine } from "./engine.ts";
import { isDebianLike, runHost, type System } from "../platform/host-programs.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { makeFolder } from "../platform/folders.ts";

/** How an engine comes to this machine: what a person types, and what set-up does itself. */

/** The exact commands that bring an engine to this machine, for a person to type. */
export function engineRemedy(system: System, failure: NoEngine): string {
  if (failure.remedy !== undefined) return failure.remedy;
  const sudo = system.root ? "" : "sudo ";
  if (failure.origin !== "usual socket" && failure.origin !== "")
    return `start the engine at ${failure.host}, or stop using it: ${forget(failure)}`;
  if (failure.kind === "denied")
    return 'sudo usermod -aG docker "$USER" && newgrp docker   (that group can do whatever root can)';
  if (system.platform === "darwin")
    return "brew install colima docker && colima start   (or start Docker Desktop)";
  if (system.platform !== "linux") return "install Docker Desktop, then try again";
  const start = system.systemd ? `${sudo}systemctl enable --now docker` : `${sudo}dockerd &`;
  const join = system.root ? "" : ' && sudo usermod -aG docker "$USER" && newgrp docker';
  if (system.dockerd) return `${start}${join}`;
  return `${installCommand(system, sudo)} && ${start}${join}`;
}

function forget({ origin }: NoEngine): string {
  if (origin.startsWith("docker context")) return "docker context use default";
  if (origin.startsWith("--")) return `leave out ${origin}`;
  return /^[A-Z_]+$/.test(origin) ? `unset ${origin}` : "harness config set engine null";
}

function installCommand(system: System, sudo: string): string {
  if (isDebianLike(system)) return `${sudo}apt-get update && ${sudo}apt-get install -y docker.io`;
  const names = [system.distribution, ...system.like];
  if (names.some((name) => ["fedora", "rhel", "centos"].includes(name)))
    return `${sudo}dnf install -y moby-engine`;
  if (names.includes("arch")) return `${sudo}pacman -S --needed docker`;
  if (names.includes("alpine")) return `${sudo}apk add docker`;
  if (names.some((name) => name.includes("suse"))) return `${sudo}zypper install -y docker`;
  return "install Docker Engine from your distribution";
}

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
