import { readFile } from "node:fs/promises";
import path from "node:path";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import type { Engine } from "./engine.ts";
import type { HostFacts } from "./spec.ts";

interface Info {
  readonly NCPU?: number;
  readonly SecurityOptions?: readonly string[] | null;
  readonly CgroupVersion?: string;
  readonly DockerRootDir?: string;
  readonly Runtimes?: Readonly<Record<string, unknown>>;
}

export interface EngineFacts extends HostFacts {
  /** Where the engine keeps its data. */
  readonly root: string;
  readonly runtimes: readonly string[];
}

/** What the container spec must know of the engine's machine. */
export async function hostFacts(engine: Engine): Promise<EngineFacts> {
  const info = (await engine.api.info()) as Info;
  return {
    cpus: info.NCPU ?? 1,
    apparmor: (info.SecurityOptions ?? []).some((option) => option.includes("name=apparmor")),
    runtime: null,
    runtimes: Object.keys(info.Runtimes ?? {}),
    root: info.DockerRootDir ?? "/var/lib/docker",
    swappiness: info.CgroupVersion !== "2",
  };
}

/** The profile that is sent with every container, from the installed package at `root`. */
export async function readSeccomp(root: string): Promise<string> {
  const file = path.join(root, "sandbox", "seccomp.json");
  try {
    return JSON.stringify(JSON.parse(await readFile(file, "utf8")));
  } catch (thrown) {
    throw new HarnessError(EXIT.sandbox, `${file}: ${reasonOf(thrown)}`, "reinstall: npm ci", thrown);
  }
}
