import { execFileSync } from "node:child_process";
import { chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Figure, inTurn, type Measured } from "./figure.ts";
import { LAUNCHER, wholeProcess } from "./startup.ts";

const RECIPE = { folders: ["deps"], setup: [{ run: "seq 1 2000 | xargs -I{} touch deps/{}" }] };

/** Builds an environment of 2,000 files for a separate workspace; everything is removed at the end. */
async function withEnvironment(
  measure: (home: string, work: string) => Promise<Measured>,
): Promise<Measured> {
  const home = await mkdtemp(path.join(tmpdir(), "harness-bench-"));
  const work = path.join(home, "work");
  const env = { PATH: process.env["PATH"], HOME: home };
  const harness = (...words: readonly string[]): unknown =>
    execFileSync(LAUNCHER, words, { env, cwd: work, stdio: "ignore" });
  try {
    const recipes = path.join(home, ".config/harness/environments");
    await mkdir(recipes, { recursive: true });
    await writeFile(path.join(recipes, "own.json"), JSON.stringify(RECIPE));
    await mkdir(work);
    if (process.getuid?.() === 0) await chown(work, 1000, 1000);
    harness("env", "build", "--env", "own");
    return await measure(home, work);
  } finally {
    harness("env", "rm", "--all");
    await rm(home, { recursive: true, force: true });
  }
}

const inBox = (name: string, home: string, work: string): Promise<number> =>
  wholeProcess(LAUNCHER, ["sandbox", "exec", "--env", name, "--cwd", work, "--", "true"], home);

export const ENVIRONMENTS: readonly Figure[] = [
  {
    // Whole command: one command in a box from an environment, compared with one in a plain box.
    name: "environment.box",
    unit: "ms",
    against: "the same in a plain box",
    hold: 1.1,
    measure: () =>
      withEnvironment((home, work) =>
        inTurn(
          15,
          () => inBox("own", home, work),
          () => inBox("none", home, work),
          // The lower quartile: other work on the machine may disturb either of the two long commands.
          0.25,
        ),
      ),
  },
  {
    // Everything is built already. The limit is half a second, where an empty program takes about 40 ms.
    name: "environment.kept",
    unit: "ms",
    against: "an empty program on the same Node",
    hold: 12.5,
    measure: () =>
      withEnvironment(async (home, work) => {
        const empty = path.join(home, "empty.mjs");
        await writeFile(empty, "");
        const build = ["env", "build", "--quiet", "--env", "own", "--cwd", work];
        return inTurn(
          15,
          () => wholeProcess(LAUNCHER, build, home),
          () => wholeProcess(process.execPath, [empty], home),
        );
      }),
  },
];
