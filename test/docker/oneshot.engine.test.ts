import assert from "node:assert/strict";
import test from "node:test";
import { HarnessError } from "../../src/core/errors.ts";
import { ownerLabels } from "../../src/boxes/box-record.ts";
import { type OnceResult, runOnce } from "../../src/docker/engine-health.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image, ROOT, skip } from "../fixtures/engine.ts";

const UID = 64_321;

const run = (command: string, ms = 20_000): Promise<OnceResult> =>
  runOnce(
    engine,
    {
      root: ROOT,
      image,
      argv: ["bash", "-c", command],
      memory: 256 * 2 ** 20,
      pids: 64,
      labels: ownerLabels(UID),
    },
    ms,
  );

const left = async (): Promise<number> => {
  const label = [`dev.harness.uid=${UID}`];
  return (await engine.api.listContainers({ all: true, filters: { label } })).length;
};

test("output, error output and exit code are returned separately", { skip }, async () => {
  assert.deepEqual(await run("echo out; echo err >&2; exit 3"), {
    exit_code: 3,
    stdout: "out\n",
    stderr: "err\n",
  });
});

test("a command that does not end is stopped at its timeout and leaves no container", { skip }, async () => {
  const outcome = await run("echo begun; sleep 60", 1500);
  assert.deepEqual(outcome, { exit_code: null, stdout: "begun\n", stderr: "" });
  assert.equal(await left(), 0);
});

test("an output flood is cut off and counted", { skip }, async () => {
  const { stdout } = await run("head -c 1000000 /dev/zero | tr '\\0' x");
  assert.match(stdout, /^x{65536}\n\[934464 bytes more\]$/);
});

test("a program missing from the image is a sandbox error, and leaves nothing", { skip }, async () => {
  const argv = ["no-such-program"];
  const plan = { root: ROOT, image, argv, memory: 2 ** 28, pids: 16, labels: ownerLabels(UID) };
  await assert.rejects(
    runOnce(engine, plan, 5000),
    (thrown) => thrown instanceof HarnessError && thrown.exit === 6,
  );
  assert.equal(await left(), 0);
});

/** What the box must prevent, next to what it must allow: `tool` shows that the means exist. */
const WALLS = [
  { what: "the network", command: "curl -sS --max-time 2 http://198.51.100.1/", tool: "curl --version" },
  {
    what: "any interface except lo",
    command: "ls /sys/class/net | grep -v '^lo$'",
    tool: "ls /sys/class/net | grep lo",
  },
  {
    what: "write access to the image",
    command: "echo x >/usr/bin/x",
    tool: "echo x >/tmp/x && test -s /tmp/x",
  },
  {
    what: "a capability",
    command: "grep -E '^Cap(Eff|Prm|Bnd):.*[1-9a-f]' /proc/self/status",
    tool: "grep CapEff /proc/self/status",
  },
  {
    what: "a way to gain privileges",
    command: "grep -x 'NoNewPrivs:\\s*0' /proc/self/status",
    tool: "grep -x 'NoNewPrivs:\\s*1' /proc/self/status",
  },
  {
    what: "a process beyond the limit",
    command: "for i in $(seq 200); do sleep 5 & done; wait",
    tool: "sleep 0.1 & wait",
  },
  { what: "the host's environment", command: "env | grep -i harness_test_secret", tool: "env | grep ^PATH=" },
  {
    what: "a setuid program",
    command: "find / -xdev -perm /6000 -type f 2>/dev/null | grep .",
    tool: "find /bin/ -name bash | grep .",
  },
];

for (const { what, command, tool } of WALLS)
  test(`the box does not have ${what}`, { skip }, async () => {
    process.env["HARNESS_TEST_SECRET"] = "1";
    assert.equal((await run(tool)).exit_code, 0, "the means are there");
    assert.notEqual((await run(command)).exit_code, 0);
  });

test("a container without the protections reaches what the box does not", { skip }, async () => {
  const container = await engine.api.createContainer({
    Image: image,
    Cmd: ["sh", "-c", "echo x >/usr/bin/x && ls /sys/class/net | grep -v '^lo$'"],
  });
  try {
    await container.start();
    assert.equal(((await container.wait()) as { StatusCode: number }).StatusCode, 0);
  } finally {
    await container.remove({ force: true });
  }
});
