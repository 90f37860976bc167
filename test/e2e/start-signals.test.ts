import assert from "node:assert/strict";
import { cp, mkdir, readdir } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { run } from "../house/plant.ts";
import { scratch } from "../fixtures/scratch.ts";
import { ROOT } from "./package.ts";

for (const [signal, code] of [
  ["HUP", 129],
  ["INT", 130],
  ["TERM", 143],
] as const)
  test(`a start ended by SIG${signal} exits with ${code} and leaves no log behind`, async () => {
    await using place = await scratch({ "package-lock.json": "{}" });
    await cp(path.join(ROOT, "start.sh"), place.at("start.sh"));
    await place.write("bin/npm", `#!/bin/sh\nkill -${signal} $PPID\n`, 0o755);
    await mkdir(place.at("tmp"));
    const env = [`PATH=${place.at("bin")}:/usr/bin:/bin`, `TMPDIR=${place.at("tmp")}`];
    const ended = await run("env", [...env, "sh", "start.sh"], place.path);
    assert.deepEqual([ended.code, await readdir(place.at("tmp"))], [code, []]);
  });
