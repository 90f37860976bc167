import { type ChildProcess, type ChildProcessByStdio, spawn, type StdioOptions } from "node:child_process";
import { constants, existsSync } from "node:fs";
import { access, readFile, realpath } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

interface ProgramResult {
  readonly code: number | null;
  /** The last lines it printed, on either stream. */
  readonly tail: readonly string[];
}

/** Runs a host program of our own choosing (apt, debootstrap) to its end. Never one named by a repository or model. */
export async function runHost(
  argv: readonly [string, ...string[]],
  options: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
    readonly onLine?: (line: string) => void;
    readonly cwd?: string;
  },
): Promise<ProgramResult> {
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

/** Limits of a question to a tool: most bytes that are read of its answer, and the longest time it may take. */
const MAX_ANSWER_BYTES = 4 * 2 ** 20;
const ANSWER_MS = 120_000;

export interface HostQuestion {
  /** The user's own environment, except that only absolute PATH entries outside of `apart` count. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** No program in this folder is run. */
  readonly apart: string;
  readonly signal: AbortSignal;
  /** Called for each line; returns whether that is enough, and the tool is ended. */
  readonly enough?: (line: string) => boolean;
}

/** The output of a host tool; null if there is no such tool. One that cannot be started looks like one that failed. */
export async function askHost(
  argv: readonly [string, ...string[]],
  { env, cwd, apart, signal, enough }: HostQuestion,
): Promise<{ readonly code: number | null; readonly stdout: string } | null> {
  const [program, ...args] = argv;
  const file = await hostProgram(program, env, apart);
  if (file === null) return null;
  const ended = new AbortController();
  const stop = AbortSignal.any([signal, ended.signal, AbortSignal.timeout(ANSWER_MS)]);
  const child = spawn(file, args, {
    env: safeEnvironment(env, apart),
    cwd,
    signal: stop,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const closed = new Promise<number | null>((resolve) => {
    child.once("error", () => resolve(null));
    child.once("close", resolve);
  });
  let stdout = "";
  for await (const line of createInterface({ input: child.stdout })) {
    stdout += `${line}\n`;
    if (stdout.length > MAX_ANSWER_BYTES || enough?.(line) === true) ended.abort();
  }
  const code = await closed;
  signal.throwIfAborted();
  return { code, stdout };
}

/** A program whose input and output serve as a connection, until its owner ends it; null if there is none. */
export async function openHostPipe(
  argv: readonly [string, ...string[]],
  { env, apart }: Pick<HostQuestion, "env" | "apart">,
): Promise<ChildProcessByStdio<Writable, Readable, Readable> | null> {
  const [program, ...args] = argv;
  const file = await hostProgram(program, env, apart);
  if (file === null) return null;
  return spawn(file, args, { env: safeEnvironment(env, apart), cwd: "/", stdio: ["pipe", "pipe", "pipe"] });
}

export const safePath = ({ PATH = "" }: HostQuestion["env"], apart: string): readonly string[] =>
  PATH.split(":").filter((folder) => path.isAbsolute(folder) && !isWithin(apart, folder));

/**
 * The variables of a program on the host, which finds no other program in `apart` by its name. Where nothing of PATH
 * remains it is left out, because an empty one means the current folder.
 */
export function safeEnvironment<T extends string | undefined>(
  env: Readonly<Record<string, T>>,
  apart: string,
): Record<string, T | string> {
  const { PATH: _, ...others } = env;
  const folders = safePath(env, apart);
  return folders.length === 0 ? others : { ...others, PATH: folders.join(":") };
}

/** Both are absolute, and may contain `.` and `..`. */
export const isWithin = (folder: string, file: string): boolean => {
  const way = path.relative(folder, file);
  return way === "" || !(way === ".." || way.startsWith("../") || path.isAbsolute(way));
};

/** Like `hostProgram`, for a program that the user named, possibly by its full path. */
export async function programOfHost(
  name: string,
  env: HostQuestion["env"],
  apart: string,
): Promise<string | null> {
  if (!name.includes("/")) return hostProgram(name, env, apart);
  if (!path.isAbsolute(name)) return null;
  return hostProgram(path.basename(name), { PATH: path.dirname(name) }, apart);
}

/** Runs a program that the user named on their own terminal, to its end; null if none. Ctrl-C is for it alone. */
export async function runOnTerminal(
  argv: readonly [string, ...string[]],
  { env, cwd, apart, stdio }: Pick<HostQuestion, "env" | "cwd" | "apart"> & { readonly stdio: StdioOptions },
): Promise<{ readonly code: number | null } | null> {
  const [program, ...args] = argv;
  const file = await programOfHost(program, env, apart);
  if (file === null) return null;
  process.on("SIGINT", ignoreSignal);
  try {
    const child = spawn(file, args, { env: safeEnvironment(env, apart), cwd, stdio });
    const code = await new Promise<number | null>((resolve) => {
      child.once("error", () => resolve(null));
      child.once("close", resolve);
    });
    return { code };
  } finally {
    process.off("SIGINT", ignoreSignal);
  }
}

const ignoreSignal = (): void => undefined;

/** The path of the program's file; its real path must not lie inside `apart`. */
export async function hostProgram(
  name: string,
  env: HostQuestion["env"],
  apart: string,
): Promise<string | null> {
  const fenced = await realpath(apart).catch(() => apart);
  for (const folder of safePath(env, apart)) {
    const file = path.join(folder, name);
    const real = await realpath(file).catch(() => undefined);
    if (real === undefined || isWithin(fenced, real)) continue;
    const runs = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs) return file;
  }
  return null;
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

const PIPES_MS = 1000;

/**
 * Lets a program's end be noticed although a process that left its group still holds its pipes, perhaps for ever. What
 * the program itself printed is read before.
 */
export function withoutHeldPipes(child: ChildProcess): void {
  const leave = (): void => {
    child.stdout?.destroy();
    child.stderr?.destroy();
  };
  child.once("exit", () => {
    // By the second turn, the pipes have been read, even if this process was busy until now.
    const timer = setTimeout(() => setImmediate(() => setImmediate(leave)), PIPES_MS);
    child.once("close", () => clearTimeout(timer));
  });
}
