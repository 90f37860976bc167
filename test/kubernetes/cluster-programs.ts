import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { skip } from "../fixtures/engine.ts";
import type { Run } from "./cluster-build.ts";
import { isKept, kept, onceBuilt } from "./cluster-cache.ts";
import { buildOfModules } from "./cluster-modules.ts";
import { buildOfSource } from "./cluster-source.ts";

/** The programs of all supported clusters: each is built once, and kept. */

/**
 * `1.20` is the distribution's, whose kubelet starts containers through a Docker engine. `1.33` is built from Go
 * modules and starts them through containerd; it supports what a batch and a restricted namespace need.
 */
export const RELEASES = ["1.20", "1.33"] as const;
export type Release = (typeof RELEASES)[number];

interface Recipe {
  /** A change of the build needs another folder. */
  readonly folder: string;
  readonly build: (place: string, run: Run) => Promise<void>;
  readonly builds: readonly string[];
  readonly uses: readonly string[];
  readonly takes: string;
}

const RECIPES: Readonly<Record<Release, Recipe>> = {
  "1.20": {
    folder: "kubernetes-1",
    build: buildOfSource,
    builds: ["apt-get", "dpkg-source", "dpkg-deb"],
    uses: ["dockerd"],
    takes: "eight minutes on two cores, two gigabytes of disk meanwhile",
  },
  "1.33": {
    folder: "kubernetes-1.33-1",
    build: buildOfModules,
    builds: ["go"],
    uses: ["containerd-shim-runc-v2", "ctr"],
    takes: "some twenty minutes on one core, three gigabytes in Go's own caches",
  },
};

const has = (program: string): boolean => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
const USED = ["containerd", "runc", "unshare", "nsenter", "ip", "iptables", "openssl"];

/** Why there can be no cluster of this release here, with what to do about that, or false. */
export function noCluster(release: Release): string | false {
  const { folder, builds, uses } = RECIPES[release];
  const missing = [...USED, ...uses, ...(isKept(folder) ? [] : builds)].filter((program) => !has(program));
  return (
    (process.platform !== "linux" && "a cluster is brought up on Linux only") ||
    (process.getuid?.() !== 0 && "only root can bring up a cluster (run it as root)") ||
    (missing.length > 0 &&
      `no ${missing.join(", ")} (apt-get install docker.io containerd iproute2 iptables openssl dpkg-dev; Go 1.24 or later for 1.33)`) ||
    (!existsSync("/sys/fs/cgroup/memory") &&
      "these clusters were only ever brought up on the first version of the cgroups") ||
    skip
  );
}

export interface Programs {
  /** The folder of `kubelet` and the other programs. */
  readonly folder: string;
  readonly version: string;
}

/** Builds the programs unless they were built before. */
export async function clusterPrograms(release: Release, say: (line: string) => void): Promise<Programs> {
  const { folder, build, takes } = RECIPES[release];
  await onceBuilt(folder, { build, say, what: `Kubernetes ${release}, once: ${takes}` });
  return {
    folder: kept(folder),
    version: (await readFile(path.join(kept(folder), "version"), "utf8")).trim(),
  };
}
