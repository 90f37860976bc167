// slow: it starts a second engine; npm run test:podman has the rest
/** What a box promises, on Podman. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { engineHealth } from "../../../src/docker/engine-health.ts";
import { makeSystemLayer, systemTag } from "../../../src/docker/environments/system-layer.ts";
import type { SystemStep } from "../../../src/docker/environments/system-steps.ts";
import {
  boxOn,
  commitsAnywhere,
  type EngineBoxes,
  inBoxOn,
  ownedRepository,
  writesOnlyItsWorkspace,
} from "../../fixtures/box-on-engine.ts";
import { ROOT } from "../../fixtures/engine.ts";
import { noPodman, podmanEngine } from "../../fixtures/podman-engine.ts";
import type { SecondEngine } from "../../fixtures/second-engine.ts";
import { noGit } from "../../boxes/workspace/repository.ts";

const OWNER = 64_341;

const LIMITS = { memory: 2 ** 28, cpus: 1, pids: 100 };

describe("a box on Podman", { skip: noPodman || noGit }, () => {
  const held: { podman?: SecondEngine } = {};
  before(async () => void (held.podman = await podmanEngine()));
  after(async () => held.podman?.[Symbol.asyncDispose]());

  const boxes = (onWarning: (text: string) => void = () => undefined): EngineBoxes => {
    assert.ok(held.podman);
    return { engine: held.podman.engine, limits: LIMITS, runtime: null, onWarning };
  };

  test("its user has a name and no rights, and it has no network and none of the host's names", async () => {
    await using place = await ownedRepository(OWNER);
    const [user, rights, devices, dial, local, hosts, proxies] = await inBoxOn(boxes(), place, [
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

  test("it can write the workspace except protected paths, and nothing in read-only mode", () =>
    writesOnlyItsWorkspace(boxes(), OWNER));

  for (const isolation of ["copy", "overlay"] as const)
    test(`with its own copy of the workspace (${isolation}) it changes nothing of the user's`, async () => {
      await using place = await ownedRepository(OWNER);
      const said = await inBoxOn(boxes(), place, ["cat sub/a.txt", "echo x >sub/a.txt && cat sub/a.txt"], {
        isolation,
      });
      assert.deepEqual(said, [
        [0, "a\n"],
        [0, "x\n"],
      ]);
      assert.equal(await readFile(place.at("r/sub/a.txt"), "utf8"), "a\n");
    });

  test("it starts from a custom image with a layer and files taken from another image", async () => {
    await using place = await ownedRepository(OWNER);
    const { engine } = boxes();
    const layer = async (key: string, step: SystemStep, stages: readonly string[]): Promise<string> => {
      await makeSystemLayer({
        engine,
        root: ROOT,
        uid: 0,
        stateDir: place.at("state"),
        image: null,
        key,
        tag: systemTag(key),
        stages,
        steps: [step],
        bytesOf: () => Promise.reject(new Error("no file is asked for")),
        limits: LIMITS,
        network: undefined,
        silentMs: 60_000,
        onStep: () => undefined,
        onOutput: () => undefined,
        signal: AbortSignal.timeout(120_000),
      });
      return (await engine.api.getImage(systemTag(key)).inspect()).Id;
    };
    const script =
      "mkdir -p /opt/made/.in && echo made >/opt/made/f && ln -s ../f /opt/made/.in/l; echo >/opt/no";
    const first = await layer("podman-first", { title: "makes", script }, []);
    const from = { stage: 0, paths: ["/opt/made"], to: "/opt/taken" };
    await layer("podman-second", { title: "takes", script: "true", from }, [first]);
    const lines = ["cat /opt/taken/.in/l; ls -A /opt / | grep -e taken -e no$"];
    const own = { image: systemTag("podman-second") };
    for (let again = 0; again < 2; again += 1)
      assert.deepEqual(await inBoxOn(boxes(), place, lines, own), [[0, "made\ntaken\n"]]);
  });

  test("it can commit, also in a sub-folder of the repository", () => commitsAnywhere(boxes(), OWNER));

  test("limits of memory, processes and files apply, and a command that reaches one fails", async () => {
    await using place = await ownedRepository(OWNER);
    const [small, large, forks, files, calls] = await inBoxOn(boxes(), place, [
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

  test("a box that should wait for an answer cannot, which is reported once, and works otherwise", async () => {
    await using place = await ownedRepository(OWNER);
    const warned: string[] = [];
    const onWarning = (text: string): void => void warned.push(text);
    await using box = await boxOn(boxes(onWarning), place, { keep: "session", parks: 60_000 });
    assert.deepEqual(warned, [
      "on Podman a box cannot wait for an answer: the run continues in a new one, over the same workspace",
    ]);
    assert.equal(await box.park?.(), undefined);
    const asked = { words: ["cat", "sub/a.txt"], timeoutMs: 30_000, keep: { head: 64, tail: 0 } };
    const { stdout } = await box.exec(asked, AbortSignal.timeout(60_000));
    assert.equal(Buffer.from(stdout.head).toString(), "a\n");
  });

  test("full access is refused with the reason", async () => {
    await using place = await ownedRepository(OWNER);
    const opening = boxOn(boxes(), place, { mode: "danger-full-access" });
    await assert.rejects(opening, /no box with full access on Podman: its network/);
  });

  test("doctor names the engine and its version", async () => {
    assert.ok(held.podman);
    const [first] = await engineHealth(held.podman.engine);
    assert.equal(first?.state, "ok");
    assert.match(first?.detail ?? "", /^Podman \d+\.\d+/);
  });
});
