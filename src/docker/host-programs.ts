import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";

interface Ran {
  readonly code: number | null;
  /** The last lines it printed, on either stream. */
  readonly tail: readonly string[];
}

/** Runs a host program of our own choosing (apt, debootstrap) to its end. Never anything a repository or a model named. */
export async function runHost(
  argv: readonly [string, ...string[]],
  options: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
    readonly onLine?: (line: string) => void;
    readonly cwd?: string;
  },
): Promise<Ran> {
  const tail: string[] = [];
  const [program, ...args] = argv;
  const { env, signal, cwd } = options;
  const child = spawn(program, args, { env, signal, cwd, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number | null>((resolve) => {
    child.once("error", (error) => {
      tail.push(error.message);
      resolve(null);
    });
    child.once("close", resolve);
  });
  const read = async (stream: NodeJS.ReadableStream): Promise<void> => {
    for await (const line of createInterface({ input: stream })) {
      if (line.trim() === "") continue;
      tail.push(line);
      if (tail.length > 20) tail.shift();
      options.onLine?.(line);
    }
  };
  const [code] = await Promise.all([ended, read(child.stdout), read(child.stderr)]);
  return { code, tail };
}

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
