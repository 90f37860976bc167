import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { text } from "node:stream/consumers";
import { COMPILED } from "../fixtures/cli.ts";
import { scratch } from "../fixtures/scratch.ts";
import { until } from "../fixtures/until.ts";

const PROGRAM = path.join(import.meta.dirname, "../../bin/harness");
const skip = process.platform !== "linux" && "only Linux shows which signals a process handles";

/** SIGHUP is the last one that is handled. */
const handlesSignals = (pid: number): boolean =>
  (Number.parseInt(/^SigCgt:\s*\w*(\w)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "0", 16) &
    1) ===
  1;

for (const [signal, exit] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const)
  test(`a run that has not begun ends with ${exit} on ${signal}, and says so`, { skip }, async () => {
    await using place = await scratch();
    for (const flags of [["--json"], []]) {
      // The task never comes.
      const child = spawn(PROGRAM, ["run", ...flags, "-"], {
        cwd: place.path,
        env: { PATH: process.env["PATH"], HOME: place.path, ...COMPILED },
        stdio: ["pipe", "pipe", "pipe"],
      });
      const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
      await until(() => handlesSignals(child.pid ?? 0));
      child.kill(signal);
      const [stdout, stderr, exited] = await ended;
      const [code, by] = exited as readonly unknown[];
      const message = "interrupted before anything was begun";
      const told = flags.length > 0 ? (JSON.parse(stdout) as unknown) : stderr.split("\n")[0];
      const remedy = "run the same command again";
      const wanted = flags.length > 0 ? { error: { message, remedy, exit_code: exit } } : `error: ${message}`;
      assert.deepEqual([code, by, told], [exit, null, wanted]);
    }
  });
