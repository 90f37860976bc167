import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { OwnedBox } from "../../../src/core/ports.ts";
import type { BoxRequest } from "../../../src/docker/box/prepare-box.ts";
import { startBox } from "../../../src/docker/box/start-box.ts";
import { engineHealth } from "../../../src/docker/engine-health.ts";
import { ROOT } from "../../fixtures/engine.ts";
import { noPodman, type PodmanEngine, podmanEngine } from "../../fixtures/podman-engine.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { git, noGit, repository } from "../../boxes/protect/repository.ts";

/** What a box promises, on Podman. */

const OWNER = 64_341;

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

const LIMITS = { memory: 2 ** 28, cpus: 1, pids: 100 };

describe("a box on Podman", { skip: noPodman || noGit }, () => {
  const held: { podman?: PodmanEngine } = {};
  before(async () => void (held.podman = await podmanEngine()));
  after(async () => held.podman?.[Symbol.asyncDispose]());

  async function boxOver(
    place: Scratch,
    wanted: Partial<BoxRequest> = {},
    onWarning: (text: string) => void = () => undefined,
  ): Promise<OwnedBox> {
    assert.ok(held.podman);
    const { engine } = held.podman;
    const folders = { home: place.at("home"), stateDir: place.at("state") };
    const maker = { engine, root: ROOT, uid: 0, ...folders, onWarning };
    const request: BoxRequest = {
      workspace: place.at("r"),
      mode: "workspace-write",
      image: null,
      limits: LIMITS,
      runtime: null,
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

  test("its user has a name and no rights, and neither a network nor the host's names are there", async () => {
    await using place = await project();
    const [user, rights, devices, dial, local, hosts, proxies] = await inBox(place, [
      "whoami; id -un; id -gn; id -u; echo ~",
      "grep -hE '^(CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'",
      "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '",
      "timeout 5 bash -c 'echo >/dev/tcp/198.51.100.1/80'",
      'node -e \'require("net").createServer((c) => c.end("here")).listen(0, "localhost", function () { require("net").connect(this.address().port).on("data", (d) => { console.log(String(d)); process.exit() }) })\'',
      "cut -f1 -d' ' /etc/hosts",
      "env | grep -i _proxy",
    ]);
    assert.deepEqual(user, [0, `box\nbox\nbox\n${OWNER}\n/home/box\n`]);
    const none = "0".repeat(16);
    assert.deepEqual(rights, [0, `CapPrm:${none}\nCapBnd:${none}\nNoNewPrivs:1\nSeccomp:2\n`]);
    assert.deepEqual(devices, [0, "lo\n"]);
    assert.notEqual(dial?.[0], 0);
    assert.deepEqual(local, [0, "here\n"]);
    assert.deepEqual(hosts, [0, "127.0.0.1\n::1\n127.0.0.1\n"]);
    assert.equal(proxies?.[1], "");
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

  for (const isolation of ["copy", "overlay"] as const)
    test(`over its own workspace (${isolation}) it changes nothing of the user's`, async () => {
      await using place = await project();
      const said = await inBox(place, ["cat sub/a.txt", "echo x >sub/a.txt && cat sub/a.txt"], { isolation });
      assert.deepEqual(said, [
        [0, "a\n"],
        [0, "x\n"],
      ]);
      assert.equal(await readFile(place.at("r/sub/a.txt"), "utf8"), "a\n");
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

  test("the limits of memory, processes and files are the plan's, and a command that meets one ends by it", async () => {
    await using place = await project();
    const [small, large, forks, files, calls] = await inBox(place, [
      "python3 -c 'x = bytearray(2**26); print(len(x))'",
      "python3 -c 'x = bytearray(2**29); print(len(x))'",
      "for i in $(seq 200); do sleep 2 & done; wait; echo all",
      'python3 -c \'open("/tmp/x", "wb").truncate(2**33)\'',
      "python3 -c 'import socket; socket.socket(socket.AF_VSOCK)'",
    ]);
    assert.deepEqual(small, [0, `${2 ** 26}\n`]);
    assert.notEqual(large?.[0], 0);
    assert.match(forks?.[1] ?? "", /Resource temporarily unavailable/);
    assert.notEqual(files?.[0], 0);
    assert.notEqual(calls?.[0], 0);
  });

  test("a box that was to wait for an answer cannot, which is said once, and works all the same", async () => {
    await using place = await project();
    const warned: string[] = [];
    const onWarning = (text: string): void => void warned.push(text);
    await using box = await boxOver(place, { keep: "session", parks: 60_000 }, onWarning);
    assert.deepEqual(warned, [
      "on Podman no box waits for an answer: the run goes on in a new one, over the same workspace",
    ]);
    assert.equal(await box.park?.(), undefined);
    const asked = { words: ["cat", "sub/a.txt"], timeoutMs: 30_000, keep: { head: 64, tail: 0 } };
    const { stdout } = await box.exec(asked, AbortSignal.timeout(60_000));
    assert.equal(Buffer.from(stdout.head).toString(), "a\n");
  });

  test("full access is refused with its reason", async () => {
    await using place = await project();
    const opening = boxOver(place, { mode: "danger-full-access" });
    await assert.rejects(opening, /no box with full access on Podman: its network/);
  });

  test("doctor's lines name the engine and its version", async () => {
    assert.ok(held.podman);
    const [first] = await engineHealth(held.podman.engine);
    assert.equal(first?.state, "ok");
    assert.match(first?.detail ?? "", /^Podman \d+\.\d+/);
  });
});

const COMMIT = "git -c user.name=me -c user.email=me@here commit -q";
const add = (name: string): string => `echo 1 >${name} && git add ${name} && ${COMMIT} -m ${name}`;
