import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Figure, inTurn } from "./figure.ts";

export const LAUNCHER = path.join(import.meta.dirname, "..", "bin", "harness");
const RUNS = 31;

/** A whole process from spawn to exit, in milliseconds; one that fails is no measurement. */
export function wholeProcess(
  program: string,
  args: readonly string[],
  home: string,
  cwd?: string,
): Promise<number> {
  const env = { PATH: process.env["PATH"], HOME: home };
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const child = spawn(program, args, { stdio: "ignore", env, cwd });
    child.once("error", reject);
    child.once("exit", (code) => {
      if (code === 0) resolve(performance.now() - start);
      else reject(new Error(`${program} ${args.join(" ")} ended with ${code}`));
    });
  });
}

/** `harness …` against an empty program on the same Node. */
export async function againstEmptyProgram(
  args: readonly string[],
): Promise<{ value: number; baseline: number }> {
  const home = await mkdtemp(path.join(tmpdir(), "harness-bench-"));
  try {
    const empty = path.join(home, "empty.mjs");
    await writeFile(empty, "");
    const harness = (): Promise<number> => wholeProcess(LAUNCHER, args, home);
    return await inTurn(RUNS, harness, () => wholeProcess(process.execPath, [empty], home));
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

export const STARTUP: readonly Figure[] = [
  { name: "startup.version", unit: "ms", hold: 1.5, measure: () => againstEmptyProgram(["--version"]) },
  { name: "startup.light", unit: "ms", hold: 3.5, measure: () => againstEmptyProgram(["config", "list"]) },
];
