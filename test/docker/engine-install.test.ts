import assert from "node:assert/strict";
import test from "node:test";
import type { NoEngine } from "../../src/docker/engine.ts";
import { engineRemedy } from "../../src/docker/engine-install.ts";
import type { System } from "../../src/platform/host-programs.ts";

const DEBIAN: System = {
  platform: "linux",
  root: true,
  distribution: "debian",
  like: [],
  codename: "bookworm",
  systemd: true,
  dockerd: false,
};
const ABSENT: NoEngine = {
  kind: "absent",
  host: "unix:///var/run/docker.sock",
  origin: "usual socket",
  reason: "connect ENOENT /var/run/docker.sock",
};

const START = "systemctl enable --now docker";
const JOIN = 'sudo usermod -aG docker "$USER" && newgrp docker';

const REMEDIES: Readonly<Record<string, readonly [Partial<System>, Partial<NoEngine>, remedy: string]>> = {
  "root on Debian": [{}, {}, `apt-get update && apt-get install -y docker.io && ${START}`],
  "a user on Debian": [
    { root: false },
    {},
    `sudo apt-get update && sudo apt-get install -y docker.io && sudo ${START} && ${JOIN}`,
  ],
  "root on Debian without systemd": [
    { systemd: false },
    {},
    "apt-get update && apt-get install -y docker.io && dockerd &",
  ],
  "root with an engine that is installed and stopped": [{ dockerd: true }, { kind: "dead" }, START],
  "a user with an engine that is installed and stopped": [
    { root: false, dockerd: true },
    { kind: "dead" },
    `sudo ${START} && ${JOIN}`,
  ],
  "root with a stopped engine and no systemd": [{ dockerd: true, systemd: false }, {}, "dockerd &"],
  "a derivative of Ubuntu": [
    { distribution: "linuxmint", like: ["ubuntu", "debian"] },
    {},
    `apt-get update && apt-get install -y docker.io && ${START}`,
  ],
  Fedora: [{ distribution: "fedora" }, {}, `dnf install -y moby-engine && ${START}`],
  "a relative of RHEL": [
    { distribution: "rocky", like: ["rhel", "centos", "fedora"] },
    {},
    `dnf install -y moby-engine && ${START}`,
  ],
  Arch: [{ distribution: "arch" }, {}, `pacman -S --needed docker && ${START}`],
  "Alpine, which has no systemd": [
    { distribution: "alpine", systemd: false },
    {},
    "apk add docker && dockerd &",
  ],
  openSUSE: [
    { distribution: "opensuse-leap", like: ["suse", "opensuse"] },
    {},
    `zypper install -y docker && ${START}`,
  ],
  "an unknown distribution": [
    { distribution: "void" },
    {},
    `install Docker Engine from your distribution && ${START}`,
  ],
  macOS: [
    { platform: "darwin", root: false, distribution: "", systemd: false },
    {},
    "brew install colima docker && colima start   (or start Docker Desktop)",
  ],
  "another system": [{ platform: "win32", distribution: "" }, {}, "install Docker Desktop, then try again"],
  "a user who may not open the socket": [
    { root: false, dockerd: true },
    { kind: "denied" },
    `${JOIN}   (that group can do whatever root can)`,
  ],
  "an address that DOCKER_HOST named": [
    {},
    { origin: "DOCKER_HOST", host: "tcp://h:1", kind: "dead" },
    "start the engine at tcp://h:1, or stop using it: unset DOCKER_HOST",
  ],
  "an address that a context named, even one that is denied": [
    {},
    { origin: "docker context lab", host: "unix:///lab.sock", kind: "denied" },
    "start the engine at unix:///lab.sock, or stop using it: docker context use default",
  ],
};

for (const [name, [system, failure, remedy]] of Object.entries(REMEDIES))
  test(`the remedy for ${name}`, () => {
    assert.equal(engineRemedy({ ...DEBIAN, ...system }, { ...ABSENT, ...failure }), remedy);
  });
