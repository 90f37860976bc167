// slow: it starts a second engine and gives it the image
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, describe, test } from "node:test";
import type { ExecResult } from "../../../src/core/ports.ts";
import { plantCanaries } from "../../../src/boxes/canaries.ts";
import {
  boxOn,
  commitsAnywhere,
  type EngineBoxes,
  inBoxOn,
  ownedRepository,
  writesOnlyItsWorkspace,
} from "../../fixtures/box-on-engine.ts";
import { gvisorEngine, noGvisor } from "../../fixtures/gvisor-engine.ts";
import type { SecondEngine } from "../../fixtures/second-engine.ts";
import { noGit } from "../../boxes/workspace/repository.ts";

/** What a box promises, on a kernel of its own. */

const OWNER = 64_340;
const LIMITS = { memory: 2 ** 31, cpus: null, pids: 1024 };

describe("a box on gVisor", { skip: noGvisor || noGit }, () => {
  const held: { second?: SecondEngine } = {};
  before(async () => void (held.second = await gvisorEngine()));
  after(async () => held.second?.[Symbol.asyncDispose]());

  const boxes = (): EngineBoxes => {
    assert.ok(held.second);
    return { engine: held.second.engine, limits: LIMITS, runtime: "runsc" };
  };

  test("its kernel is not the host's, its user has a name, and it has no network", async () => {
    await using place = await ownedRepository(OWNER);
    const [kernel, user, python, devices, dial, local] = await inBoxOn(boxes(), place, [
      "uname -r; uname -v",
      "whoami; id -un; id -gn; id -u; echo ~",
      "python3 -c 'import getpass, os, pwd; print(getpass.getuser(), pwd.getpwuid(os.getuid()).pw_dir)'",
      "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '",
      "timeout 5 bash -c 'echo >/dev/tcp/198.51.100.1/80'",
      'node -e \'require("net").createServer((c) => c.end("here")).listen(0, "127.0.0.1", function () { require("net").connect(this.address().port).on("data", (d) => { console.log(String(d)); process.exit() }) })\'',
    ]);
    assert.doesNotMatch(
      kernel?.[1] ?? "",
      new RegExp(execFileSync("uname", ["-r"], { encoding: "utf8" }).trim()),
    );
    assert.deepEqual(user, [0, `box\nbox\nbox\n${OWNER}\n/home/box\n`]);
    assert.deepEqual(python, [0, "box /home/box\n"]);
    assert.deepEqual(devices, [0, "lo\n"]);
    assert.notEqual(dial?.[0], 0);
    assert.deepEqual(local, [0, "here\n"]);
  });

  test("it can write the workspace except protected paths, and nothing in read-only mode", () =>
    writesOnlyItsWorkspace(boxes(), OWNER));

  test("it can commit, also in a sub-folder of the repository", () => commitsAnywhere(boxes(), OWNER));

  test("if its kernel does not report calls, processes are sampled and canaries guarded, and the result says so", async () => {
    await using place = await ownedRepository(OWNER);
    await using box = await boxOn(boxes(), place);
    const canaries = await plantCanaries(box);
    const observed = async (script: string): Promise<ExecResult> => {
      const asked = { words: ["bash", "-c", script], timeoutMs: 60_000, keep: { head: 4096, tail: 0 } };
      return box.exec({ ...asked, observe: { canaries } }, AbortSignal.timeout(60_000));
    };
    const plain = await observed("ls -la ~/.ssh; sh -c 'sleep 1; :'; :");
    const { by, processes = [], unseen = [], touched } = plain.observed ?? {};
    assert.deepEqual([plain.exit_code, by, touched], [0, "samples", null]);
    // A sample may see a process before its exec: it is reported again afterwards.
    const sleep = processes.findLast(({ words }) => words[0] === "sleep");
    const shell = processes.findLast(({ pid }) => pid === sleep?.parent);
    assert.deepEqual([sleep?.words, shell?.words[0]], [["sleep", "1"], "sh"]);
    assert.match(unseen.join(), /files, sockets and calls/);
    const taken = await observed("cat ~/.ssh/id_ed25519 >/dev/null; sleep 20");
    assert.deepEqual([taken.cause, taken.observed?.touched?.canary], ["canary", "an SSH key"]);
  });
});
