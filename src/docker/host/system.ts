import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** The facts about this machine that decide how an engine gets onto it. */
export interface System {
  readonly platform: string;
  readonly root: boolean;
  /** From os-release: the distribution, what it is like, and its release's name. */
  readonly distribution: string;
  readonly like: readonly string[];
  readonly codename: string;
  readonly systemd: boolean;
  readonly dockerd: boolean;
}

export async function readSystem(env: Readonly<Record<string, string | undefined>>): Promise<System> {
  const release = parseOsRelease(await readFile("/etc/os-release", "utf8").catch(() => ""));
  return {
    platform: process.platform,
    root: process.getuid?.() === 0,
    distribution: release["ID"] ?? "",
    like: (release["ID_LIKE"] ?? "").split(" ").filter((word) => word !== ""),
    codename: release["VERSION_CODENAME"] ?? "",
    systemd: existsSync("/run/systemd/system"),
    dockerd: onPath("dockerd", env),
  };
}

export const isDebianLike = ({ distribution, like }: System): boolean =>
  [distribution, ...like].some((name) => name === "debian" || name === "ubuntu");

export function parseOsRelease(text: string): Readonly<Record<string, string>> {
  const pairs = text.split("\n").flatMap((line) => {
    const match = /^([A-Z_]+)=(["']?)(.*)\2$/.exec(line.trim());
    return match === null ? [] : [[match[1] ?? "", match[3] ?? ""] as const];
  });
  return Object.fromEntries(pairs);
}

function onPath(program: string, env: Readonly<Record<string, string | undefined>>): boolean {
  const folders = [...(env["PATH"] ?? "").split(":"), "/usr/sbin", "/usr/local/sbin"];
  return folders.some((folder) => folder !== "" && existsSync(`${folder}/${program}`));
}
