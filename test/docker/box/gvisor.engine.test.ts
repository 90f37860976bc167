import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { ExecResult, OwnedBox } from "../../../src/core/ports.ts";
import { plantCanaries } from "../../../src/boxes/canaries.ts";
import type { BoxRequest } from "../../../src/docker/box/prepare-box.ts";
import { startBox } from "../../../src/docker/box/start-box.ts";
import { ROOT } from "../../fixtures/engine.ts";
import { type GvisorEngine, gvisorEngine, noGvisor } from "../../fixtures/gvisor-engine.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { git, noGit, repository } from "../../boxes/protect/repository.ts";

/** What a box promises, on a kernel of its own. */

const OWNER = 64_340;

async function project(): Promise<Scratch> {
  const place = await scratch({}, "/var/tmp");
  repository(place.at("r"));
  await place.write("r/sub/a.txt", "a\n");
  git(place.at("r"), "add", "-A");
  git(place.at("r"), "commit", "-q", "-m", "all");
  await chmod(place.path, 0o755);
  execFileSync("chown", ["-hR", `${OWNER}:${OWNER}`, place.at("r")]);
  return place;
}

const COMMIT = "git -c user.name=me -c user.email=me@here commit -q";

describe("a box on gVisor", { skip: noGvisor || noGit }, () => {
  const held: { second?: GvisorEngine } = {};
  before(async () => void (held.second = await gvisorEngine()));
  after(async () => held.second?.[Symbol.asyncDispose]());

  async function boxOver(place: Scratch, wanted: Partial<BoxRequest> = {}): Promise<OwnedBox> {
    const { second } = held;
    assert.ok(second);
    const maker = {
      engine: second.engine,
      root: ROOT,
      uid: 0,
      home: place.at("home"),
      stateDir: place.at("state"),
      onWarning: () => undefined,
    };
    const request: BoxRequest = {
      workspace: place.at("r"),
      mode: "workspace-write",
      image: null,
      limits: { memory: 2 ** 31, cpus: null, pids: 1024 },
      runtime: "runsc",
      isolation: "bind",
      keep: null,
      watchChanges: false,
      ...wanted,
    };
    return startBox(maker, request, AbortSignal.timeout(60_000));
  }

  async function inBox(
    place: Scratch,
    lines: readonly string[],
    wanted: Partial<BoxRequest> = {},
  ): Promise<readonly (readonly [number, string])[]> {
    await using box = await boxOver(place, wanted);
    const said: (readonly [number, string])[] = [];
    for (const line of lines) {
      const asked = { words: ["bash", "-c", `exec 2>&1; ${line}`], timeoutMs: 30_000 };
      const keep = { head: 16_384, tail: 0 };
      const { exit_code, stdout } = await box.exec({ ...asked, keep }, AbortSignal.timeout(60_000));
      said.push([exit_code, Buffer.from(stdout.head).toString()]);
    }
    return said;
  }

  test("its kernel is not the host's, its user has a name, and it has no network", async () => {
    await using place = await project();
    const [kernel, user, python, devices, dial, local] = await inBox(place, [
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

  test("it writes the workspace, not its protected paths, and nothing when it only reads", async () => {
    await using place = await project();
    const tries = ["echo x >.git/hooks/x", "echo x >>.git/config", "mv .git .tig", "touch /etc/x /usr/x"];
    const said = await inBox(place, ["echo new >sub/new && cat sub/new", ...tries]);
    assert.deepEqual(said[0], [0, "new\n"]);
    for (const [at, [code]] of said.slice(1).entries()) assert.notEqual(code, 0, tries[at]);
    assert.equal(await readFile(place.at("r/sub/new"), "utf8"), "new\n");
    const [read, write] = await inBox(place, ["cat sub/a.txt", "touch sub/x"], { mode: "read-only" });
    assert.deepEqual(read, [0, "a\n"]);
    assert.notEqual(write?.[0], 0);
  });

  test("it commits, in a folder of the repository as well", async () => {
    await using place = await project();
    assert.deepEqual(await inBox(place, [add("one")]), [[0, ""]]);
    const workspace = place.at("r/sub");
    const said = await inBox(place, [add("two"), "touch ../x", "git log --format=%s -2"], { workspace });
    assert.deepEqual(
      [said[0], said[2]],
      [
        [0, ""],
        [0, "two\none\n"],
      ],
    );
    assert.notEqual(said[1]?.[0], 0);
  });

  test("where its kernel tells of no calls, processes are sampled and canaries guarded; the result says so", async () => {
    await using place = await project();
    await using box = await boxOver(place);
    const canaries = await plantCanaries(box);
    const observed = async (script: string): Promise<ExecResult> => {
      const asked = { words: ["bash", "-c", script], timeoutMs: 60_000, keep: { head: 4096, tail: 0 } };
      return box.exec({ ...asked, observe: { canaries } }, AbortSignal.timeout(60_000));
    };
    const looked = async () => {
      const plain = await observed("ls -la ~/.ssh; sh -c 'sleep 1; :'; :");
      const { by, processes = [], unseen = [], touched } = plain.observed ?? {};
      assert.deepEqual([plain.exit_code, by, touched], [0, "samples", null]);
      const sleep = processes.find(({ words }) => words[0] === "sleep");
      const shell = processes.find(({ pid }) => pid === sleep?.parent);
      return { words: [sleep?.words, shell?.words[0]], unseen };
    };
    let { words, unseen } = await looked();
    // A sample may meet the shell before it is one: what made it still stands there then.
    for (let again = 0; again < 3 && words[1] === "bash"; again += 1) ({ words, unseen } = await looked());
    assert.deepEqual(words, [["sleep", "1"], "sh"]);
    assert.match(unseen.join(), /files, sockets and calls/);
    const taken = await observed("cat ~/.ssh/id_ed25519 >/dev/null; sleep 20");
    assert.deepEqual([taken.cause, taken.observed?.touched?.canary], ["canary", "an SSH key"]);
  });
});

const add = (name: string): string => `echo 1 >${name} && git add ${name} && ${COMMIT} -m ${name}`;
