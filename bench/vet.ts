import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { type Figure, inTurn, type Measured } from "./figure.ts";
import { LAUNCHER, wholeProcess } from "./startup.ts";

const RUNS = 11;

/**
 * One command in a small repository, as whole processes: compared with the same command in a box of the same kind, so
 * that the cost of boxes cancels out. An archive needs two boxes: one unpacks it, one runs the command.
 */
async function ownTime(given: "folder" | "archive"): Promise<Measured> {
  const home = await mkdtemp(path.join(tmpdir(), "harness-bench-"));
  try {
    const cwd = path.join(home, "work");
    await mkdir(cwd);
    await writeFile(path.join(cwd, "package.json"), '{"name":"a","version":"1.0.0"}\n');
    await writeFile(path.join(cwd, "index.js"), "module.exports = (a, b) => a + b;\n");
    const archive = path.join(home, "work.tar.gz");
    if (given === "archive") await promisify(execFile)("tar", ["-czf", archive, "-C", home, "work"]);
    const target = given === "archive" ? archive : ".";
    const took = (words: readonly string[]): Promise<number> =>
      wholeProcess(LAUNCHER, [...words, "--", "/bin/true"], home, cwd);
    return await inTurn(
      RUNS,
      () => took(["vet", "--json", target]),
      () => took(["sandbox", "exec", "--isolation", "overlay"]),
    );
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

export const VET: readonly Figure[] = [
  {
    name: "vet.own",
    unit: "ms",
    against: "the command in a box of the same kind",
    hold: 1.5,
    measure: () => ownTime("folder"),
  },
  {
    name: "vet.archive",
    unit: "ms",
    against: "the command in a box of the same kind",
    hold: 2.5,
    measure: () => ownTime("archive"),
  },
];
