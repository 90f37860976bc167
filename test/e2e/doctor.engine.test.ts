// alone: it looks at everything that is parked on this machine
import assert from "node:assert/strict";
import test from "node:test";
import { startFakeOllama } from "../fakes/ollama-server.ts";
import { runProgram } from "../fixtures/cli.ts";
import { image, skip } from "../fixtures/engine.ts";
import { scratch } from "../fixtures/scratch.ts";

interface Report {
  readonly ok: boolean;
  readonly exit_code: number;
  readonly checks: readonly { id: string; state: string; detail: string; remedy: string }[];
}

async function doctor(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Report & { code: number | null }> {
  await using home = await scratch();
  const { code, stdout } = await runProgram("bin/harness", ["doctor", "--json", ...args], {
    home: home.path,
    env,
  });
  assert.equal(stdout.trimEnd().split("\n").length, 1, "one JSON document");
  return { ...(JSON.parse(stdout) as Report), code };
}

const stateOf = ({ checks }: Report, id: string): string | undefined =>
  checks.find((check) => check.id === id)?.state;

const QWEN = {
  name: "qwen3:8b",
  size: 5_000_000_000,
  trained: 40_960,
  capabilities: ["completion", "tools"],
};

test("with engine, image and model present, doctor reports that a run would work", { skip }, async () => {
  await using ollama = await startFakeOllama({ models: [QWEN] });
  const report = await doctor([], { OLLAMA_HOST: ollama.url });
  assert.deepEqual(
    { code: report.code, ok: report.ok, exit: report.exit_code },
    { code: 0, ok: true, exit: 0 },
  );
  const ids = [
    "config",
    "node",
    "engine",
    "runtime",
    "storage",
    "cgroup",
    "security",
    "image",
    "box",
    "disk",
  ];
  assert.deepEqual(
    report.checks.map(({ id }) => id),
    [...ids, "model.server", "model.name", "model.context", "store"],
  );
  assert.equal(report.checks.find(({ id }) => id === "image")?.detail, image);
  assert.deepEqual(
    report.checks.filter(({ state, remedy }) => state === "ok" && remedy !== ""),
    [],
  );
});

test("a missing model ends with 5 and the command that fetches it", { skip }, async () => {
  await using ollama = await startFakeOllama({ models: [] });
  const report = await doctor([], { OLLAMA_HOST: ollama.url });
  assert.equal(report.code, 5);
  assert.equal(
    report.checks.find(({ id }) => id === "model.name")?.remedy,
    `OLLAMA_HOST=${ollama.url} ollama pull qwen3:8b`,
  );
});

test("an installed chat model is offered before a download", { skip }, async () => {
  const there = [
    { name: "nomic-embed-text:latest", capabilities: ["embedding"] },
    { name: "own/coder:7b", capabilities: ["completion", "tools"] },
  ];
  await using ollama = await startFakeOllama({ models: there });
  const report = await doctor([], { OLLAMA_HOST: ollama.url });
  const { detail, remedy } = report.checks.find(({ id }) => id === "model.name") ?? assert.fail();
  assert.deepEqual(
    [report.code, detail, remedy],
    [
      5,
      "qwen3:8b is not installed; own/coder:7b is (1 more cannot chat)",
      `harness config set chat_model own/coder:7b   (or a download: OLLAMA_HOST=${ollama.url} ollama pull qwen3:8b)`,
    ],
  );
});

test("a flag is checked instead of the default", { skip }, async () => {
  await using ollama = await startFakeOllama({ models: [{ ...QWEN, name: "other:1b" }] });
  const report = await doctor(["--model", "other:1b", "--base-url", ollama.url], {});
  assert.equal(report.code, 0);
});

test("a dead engine ends with 6, whatever the model", { skip }, async () => {
  const report = await doctor(["--provider", "scripted"], { DOCKER_HOST: "unix:///nowhere/docker.sock" });
  assert.equal(report.code, 6);
  const engine = report.checks.find(({ id }) => id === "engine");
  assert.match(engine?.detail ?? "", /\/nowhere\/docker\.sock \(from DOCKER_HOST\)/);
  assert.match(engine?.remedy ?? "", /unset DOCKER_HOST/);
});

test("a configured image that is missing is named", { skip }, async () => {
  const report = await doctor(["--provider", "scripted", "--image", "harness-test-none:1"], {});
  assert.equal(report.code, 6);
  assert.match(
    report.checks.find(({ id }) => id === "image")?.detail ?? "",
    /harness-test-none:1 is not on this engine/,
  );
});

test("a broken config file ends with 2, and everything else is still checked", { skip }, async () => {
  await using home = await scratch({ "config/harness/config.json": '{"mode": "yolo"}' });
  const env = { XDG_CONFIG_HOME: home.at("config") };
  const { code, stdout } = await runProgram("bin/harness", ["doctor", "--json"], { home: home.path, env });
  const report = JSON.parse(stdout) as Report;
  assert.equal(code, 2);
  assert.match(
    report.checks[0]?.detail ?? "",
    /config\.json:1:\d+: mode: expected one of read-only, .*"yolo"/,
  );
  assert.equal(stateOf(report, "engine"), "ok");
});

test("the output has one line per check, and no escape sequences in a pipe", { skip }, async () => {
  await using home = await scratch();
  const { stdout } = await runProgram("bin/harness", ["doctor"], { home: home.path });
  assert.match(stdout, /^ok {4}engine {8}Docker/m);
  assert.match(stdout, /^fail {2}model\.server .*\n {20,}next: /m);
  assert.ok(!stdout.includes("\u001B"));
});
