import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import type { Run } from "./cluster-build.ts";

/** The programs of clusters: built once, and kept. */
const CACHE = path.join(process.env["XDG_CACHE_HOME"] ?? path.join(homedir(), ".cache"), "harness-tests");

/** A change of the build needs another folder. */
export const kept = (folder: string): string => path.join(CACHE, folder);
export const isKept = (folder: string): boolean => existsSync(path.join(kept(folder), "version"));

interface Building {
  /** Leaves everything to keep in `bin` of this place, including a file `version`. */
  readonly build: (place: string, run: Run) => Promise<void>;
  readonly say: (line: string) => void;
  /** Describes what is built and how long it takes. */
  readonly what: string;
}

export async function onceBuilt(folder: string, { build, say, what }: Building): Promise<void> {
  if (isKept(folder)) return;
  await mkdir(CACHE, { recursive: true });
  const place = await mkdtemp(path.join(CACHE, "building-"));
  say(`building ${what} (${place}/log) …`);
  try {
    await build(place, await loggedRun(place));
    await rename(path.join(place, "bin"), kept(folder)).catch((thrown: unknown) => {
      // Somebody else built it meanwhile.
      if (!isKept(folder)) throw thrown;
    });
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

async function loggedRun(place: string): Promise<Run> {
  const file = path.join(place, "log");
  const log = createWriteStream(file, { flags: "a" });
  await once(log, "open");
  return async (words, cwd = place, env = {}) => {
    const [program = "", ...rest] = words;
    const stdio = ["ignore", log, log] as const;
    const child = spawn(program, rest, { cwd, env: { ...process.env, ...env }, stdio: [...stdio] });
    const [code] = (await once(child, "exit")) as [number | null];
    if (code === 0) return;
    const told = (await readFile(file, "utf8")).trimEnd().split("\n").slice(-15).join("\n");
    throw new Error(`${words.slice(0, 3).join(" ")} … ended with ${code}:\n${told}`);
  };
}
