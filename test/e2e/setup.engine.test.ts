// alone: stop.sh removes all boxes of its user
import assert from "node:assert/strict";
import { createServer } from "node:net";
import test from "node:test";
import { ownerLabels } from "../../src/boxes/box-record.ts";
import { startFakeOllama } from "../fakes/ollama-server.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image, skip } from "../fixtures/engine.ts";
import { scratch } from "../fixtures/scratch.ts";

async function program(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  await using home = await scratch();
  return await runProgram(name, args, { home: home.path, env });
}

const START = ["--no-install", "--no-sidecars"];

test("a second start keeps everything and names the replacements in use", { skip }, async () => {
  const { code, stdout, stderr } = await program("start.sh", START);
  assert.deepEqual({ code, stdout }, { code: 0, stdout: "" });
  for (const line of [
    /✓ packages .* kept/,
    /✓ node .* v24/,
    /✓ build .* kept/,
    /✓ engine/,
    /~ search/,
    /~ model/,
  ])
    assert.match(stderr, line);
  assert.ok(stderr.includes(`${image} (kept)`));
  assert.match(stderr, /fallback {3}search {2}the embedded index, instead of Qdrant\n {13}model {3}the demo/);
  assert.match(stderr, /next {7}\.\/start\.sh demo/);
});

test(
  "a command after the options runs in the caller's folder, with its own exit code and output",
  { skip },
  async () => {
    assert.deepEqual(
      (await program("start.sh", [...START, "config", "get", "mode"])).stdout,
      "workspace-write\n",
    );
    assert.equal((await program("start.sh", [...START, "config", "get", "nonsense"])).code, 2);
  },
);

test("a missing model is pulled if that was agreed to", { skip }, async () => {
  const lines = [
    { status: "pulling manifest" },
    { status: "pulling abc", digest: "sha256:abc", total: 10, completed: 10 },
    { status: "success" },
  ];
  await using ollama = await startFakeOllama({ models: [], pull: { lines } });
  const { code, stderr } = await program("start.sh", [...START, "--yes"], { OLLAMA_HOST: ollama.url });
  assert.equal(code, 0);
  assert.ok(ollama.requests.some(({ path }) => path === "/api/pull"));
  assert.match(stderr, /✓ model/);
});

test("a missing model is not pulled without consent, and the command is named", { skip }, async () => {
  await using ollama = await startFakeOllama({ models: [] });
  const { code, stderr } = await program("start.sh", START, { OLLAMA_HOST: ollama.url });
  assert.equal(code, 0);
  assert.ok(!ollama.requests.some(({ path }) => path === "/api/pull"));
  assert.match(
    stderr,
    /~ model .*; nothing was downloaded\n +next: \.\/start\.sh --yes {3}loads \S+ \([\d.]+ GiB\)/,
  );
});

test("a dead DOCKER_HOST ends with 6, and no other engine is used", { skip }, async () => {
  const { code, stderr } = await program("start.sh", START, { DOCKER_HOST: "unix:///nowhere/docker.sock" });
  assert.equal(code, 6);
  assert.match(
    stderr,
    /✗ engine .*no container engine answers at unix:\/\/\/nowhere\/docker\.sock \(from DOCKER_HOST\)/,
  );
  assert.match(stderr, /next: .*unset DOCKER_HOST/);
});

test("an engine that answers nonsense ends with 6", { skip }, async () => {
  await using home = await scratch();
  const socket = home.at("engine.sock");
  const server = createServer((caller) => caller.end("this is no engine\r\n\r\n")).listen(socket);
  try {
    const env = { DOCKER_HOST: `unix://${socket}` };
    const { code, stderr } = await runProgram("bin/harness", ["setup", "--no-install"], {
      home: home.path,
      env,
    });
    assert.equal(code, 6);
    assert.match(stderr, /the container engine does not answer at unix:/);
  } finally {
    server.close();
  }
});

test("a configured image that is missing ends with 6 and the command to get it", { skip }, async () => {
  const { code, stderr } = await program("bin/harness", [
    "setup",
    "--no-sidecars",
    "--image",
    "harness-test-none:1",
  ]);
  assert.equal(code, 6);
  assert.match(
    stderr,
    /✗ image .*no image harness-test-none:1 on this engine\n.*next: docker pull harness-test-none:1/,
  );
});

const make = async (owner: number): Promise<string> =>
  (await engine.api.createContainer({ Image: image, Cmd: ["true"], Labels: { ...ownerLabels(owner) } })).id;

test("stop.sh removes only this user's boxes", { skip }, async () => {
  const uid = process.getuid?.() ?? 0;
  const [own, other] = [await make(uid), await make(uid + 1)];
  try {
    const { code, stdout } = await program("stop.sh", []);
    assert.equal(code, 0);
    assert.match(stdout, /removed [1-9]\d* sandbox/);
    const left = new Set((await engine.api.listContainers({ all: true })).map(({ Id }) => Id));
    assert.deepEqual([left.has(own), left.has(other)], [false, true]);
  } finally {
    await engine.api.getContainer(other).remove({ force: true });
  }
});

test("stop.sh --purge with nobody to ask removes nothing and names the flag to use", { skip }, async () => {
  const { code, stderr } = await program("stop.sh", ["--purge"]);
  assert.equal(code, 2);
  assert.match(stderr, /stop\.sh --purge --yes/);
  assert.equal((await engine.api.getImage(image).inspect()).RepoTags?.includes(image), true);
});

test("an interrupted set-up ends with 130 and the next one recovers", { skip }, async () => {
  await using ollama = await startFakeOllama({ faults: { "*": "silent" } });
  await using home = await scratch();
  const env = { OLLAMA_HOST: ollama.url };
  let interrupted = false;
  const interrupt = (text: string, pid: number): void => {
    if (interrupted || !text.includes("✓ image")) return;
    interrupted = true;
    process.kill(pid, "SIGINT");
  };
  const args = ["setup", "--no-sidecars"];
  const { code, stderr } = await runProgram("bin/harness", args, {
    home: home.path,
    env,
    onStderr: interrupt,
  });
  assert.equal(code, 130, stderr);
  assert.equal((await runProgram("bin/harness", args, { home: home.path })).code, 0);
});
