import { spawn } from "node:child_process";
import { chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { EMPTY, type Figure, inTurn, type Measured } from "./figure.ts";

export const LAUNCHER = path.join(import.meta.dirname, "..", "bin", "harness");
const RUNS = 31;

/** Milliseconds of a whole process from spawn to exit; a failing process is no measurement. */
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

/** Provides a folder with an empty program; the folder is removed at the end. */
async function withEmptyProgram<T>(work: (home: string, empty: string) => Promise<T>): Promise<T> {
  const home = await mkdtemp(path.join(tmpdir(), "harness-bench-"));
  try {
    const empty = path.join(home, "empty.mjs");
    await writeFile(empty, "");
    return await work(home, empty);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** Compares `harness …` with an empty program on the same Node. */
const againstEmptyProgram = (args: readonly string[]): Promise<Measured> =>
  withEmptyProgram((home, empty) =>
    inTurn(
      RUNS,
      () => wholeProcess(LAUNCHER, args, home),
      () => wholeProcess(process.execPath, [empty], home),
    ),
  );

/** The whole process of a search in a small repository with a fresh index, which only has to be checked. */
const search = (): Promise<Measured> =>
  withEmptyProgram(async (home, empty) => {
    const work = path.join(home, "work");
    await mkdir(work);
    for (const name of ["login", "retry", "sum"])
      await writeFile(
        path.join(work, `${name}.ts`),
        `export function ${name}(word: string) { return word; }\n`,
      );
    if (process.getuid?.() === 0) await chown(work, 1000, 1000);
    await wholeProcess(LAUNCHER, ["index"], home, work);
    return inTurn(
      RUNS,
      () => wholeProcess(LAUNCHER, ["search", "login"], home, work),
      () => wholeProcess(process.execPath, [empty], home, work),
    );
  });

/** From the start of a chat on a terminal to its first frame, in which one can type. */
function firstFrame(home: string): Promise<number> {
  const env = { PATH: process.env["PATH"], HOME: home, TERM: "xterm-256color" };
  const command = `stty cols 80 rows 24; exec ${LAUNCHER}`;
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const child = spawn("script", ["-qec", command, "/dev/null"], { env, cwd: home });
    let shown = "";
    child.once("error", reject);
    child.stdin.on("error", () => undefined);
    child.stdout.on("data", (bytes: Buffer) => {
      const before = shown.includes(FRAME);
      shown += bytes.toString();
      if (before || !shown.includes(FRAME)) return;
      resolve(performance.now() - start);
      child.stdin.write("\u0004");
    });
    child.once("exit", () => reject(new Error(`no frame came: ${JSON.stringify(shown)}`)));
  });
}

/** Text at the foot of the first frame. */
const FRAME = "no box yet";

/** Compared with an empty program on the same terminal; both run until a person could go on. */
const chat = (): Promise<Measured> =>
  withEmptyProgram((home, empty) => {
    const command = `stty cols 80 rows 24; exec ${process.execPath} ${empty}`;
    return inTurn(
      RUNS,
      () => firstFrame(home),
      () => wholeProcess("script", ["-qec", command, "/dev/null"], home),
    );
  });

export const STARTUP: readonly Figure[] = [
  {
    name: "startup.version",
    unit: "ms",
    against: EMPTY,
    hold: 1.3,
    measure: () => againstEmptyProgram(["--version"]),
  },
  {
    name: "startup.light",
    unit: "ms",
    against: EMPTY,
    hold: 3,
    measure: () => againstEmptyProgram(["config", "list"]),
  },
  // A process that loads the grammar and the tables, and judges one command.
  {
    name: "startup.policy",
    unit: "ms",
    against: EMPTY,
    hold: 4.5,
    measure: () => againstEmptyProgram(["policy", "check", "--", "ls"]),
  },
  { name: "startup.search", unit: "ms", against: EMPTY, hold: 2, measure: search },
  // 400 ms where an empty program takes 50: short enough that nobody waits for it.
  { name: "startup.chat", unit: "ms", against: EMPTY, hold: 8, measure: chat },
];
