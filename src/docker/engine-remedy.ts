import type { NoEngine } from "./engine.ts";
import { isDebianLike, type System } from "../platform/host-programs.ts";

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
