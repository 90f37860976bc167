// also slow: clusters that differ in one thing each
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import test from "node:test";
import type { VetReport } from "../../src/core/behaviour.ts";
import { COMPILED, type Ended, runProgram } from "../fixtures/cli.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image, ROOT, skip } from "../fixtures/engine.ts";
import { type StubPlace, stubPlace } from "../kubernetes/stub-pods.ts";
import { slowTest } from "../fixtures/slow-test.ts";

const SCRIPT = [
  { reply: [{ call: "read_file", args: { path: "a.txt" } }] },
  { reply: [{ call: "write_file", args: { path: "a.txt", content: "one\ntwo\n" } }] },
  { reply: ["a.txt has a second line."] },
];

/** What a user types, with a cluster of their own and the image of the nodes in the settings. */
async function typing(stub: StubPlace) {
  const { place } = stub;
  const kubernetes = { image, start_timeout: "30s" };
  await place.write("home/.config/harness/config.json", JSON.stringify({ kubernetes }));
  const model = await place.write("model.jsonl", SCRIPT.map((step) => JSON.stringify(step)).join("\n"));
  const home = place.at("home");
  const env = { KUBECONFIG: place.at("kubeconfig") };
  const start = { home, cwd: place.at("project"), env };
  const type = (...words: readonly string[]): Promise<Ended> => runProgram("bin/harness", words, start);
  const run = ["run", "--engine", "kubernetes:", "--provider", "scripted", "--model", model, "--no-verify"];
  return { type, run, home, env: { PATH: process.env["PATH"], HOME: home, ...COMPILED, ...env } };
}

test(
  "a run in a pod changes nothing locally until it is applied, and undo takes it back",
  { skip },
  async () => {
    await using stub = await stubPlace("enforced");
    const { type, run } = await typing(stub);
    const done = await type(...run, "--json", "change a.txt");
    const last = JSON.parse(done.stdout.trim().split("\n").at(-1) ?? "{}") as Record<string, unknown>;
    assert.deepEqual([done.code, last["type"], last["status"]], [0, "run.finished", "done"], done.stderr);
    assert.equal(await stub.place.read("project/a.txt"), "one\n");
    assert.deepEqual([stub.api.named("pods"), stub.api.named("networkpolicies")], [[], []]);
    for (const how of [[], ["--conversation"]]) {
      const replayed = await type("replay", "--engine", "kubernetes:", ...how);
      assert.equal(replayed.code, 0, `${replayed.stdout}${replayed.stderr}`);
    }
    const shown = await type("diff");
    assert.match(shown.stdout, /^\+two$/m);
    const applied = await type("apply");
    assert.deepEqual(
      [applied.code, await stub.place.read("project/a.txt")],
      [0, "one\ntwo\n"],
      applied.stderr,
    );
    const undone = await type("undo");
    assert.deepEqual([undone.code, await stub.place.read("project/a.txt")], [0, "one\n"], undone.stderr);
  },
);

test(
  "a session continues in the next pod with its changes, and in no other kind of box",
  { skip },
  async () => {
    await using stub = await stubPlace("none");
    const { type, run } = await typing(stub);
    assert.equal((await type(...run, "change a.txt")).code, 0);
    await stub.place.write(
      "cat.jsonl",
      [
        { reply: [{ call: "read_file", args: { path: "a.txt" } }] },
        { expect: { tool: "two" }, reply: ["It has two lines."] },
      ]
        .map((step) => JSON.stringify(step))
        .join("\n"),
    );
    const unsaid = run.filter((word) => word !== "--engine" && word !== "kubernetes:");
    const again = await type(...unsaid, "--continue", "what is in a.txt?");
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stderr.replaceAll(/\s+/g, " "), /continues at kubernetes:\/\/stub\/team, where/);
    const here = ["--engine", engine.endpoint.host];
    const other = await type(...unsaid, ...here, "--isolation", "copy", "--continue", "change a.txt");
    assert.notEqual(other.code, 0);
    assert.match(other.stderr, /that pods\s+work on/);
  },
);

slowTest(
  "the demo runs in a pod, and an archive is unpacked in one and tested in the next",
  { skip },
  async () => {
    await using stub = await stubPlace("none");
    const { type } = await typing(stub);
    const demo = await type("demo", "--engine", "kubernetes:");
    assert.equal(demo.code, 0, demo.stderr);
    assert.match(demo.stdout, /^The test passes now\./);
    const [archive, folder] = [stub.place.at("sum.tar"), path.join(ROOT, "examples/broken-sum")];
    execFileSync("tar", ["-cf", archive, "-C", folder, "."]);
    const vetted = await type("vet", "--json", "--engine", "kubernetes:", archive);
    const told = JSON.parse(vetted.stdout) as VetReport;
    assert.deepEqual(
      [vetted.code, told.verdict, told.repository.kind],
      [30, "noisy", "archive"],
      vetted.stderr,
    );
    const [installed] = told.steps;
    assert.deepEqual([installed?.what, installed?.exit_code], ["install", 0]);
    assert.deepEqual(stub.api.named("pods"), []);
    assert.deepEqual(readdirSync(stub.place.at("home/.cache/harness/vet/boxes")), []);
    const layers = readdirSync(stub.place.at("home/.local/state/harness/layers"));
    assert.deepEqual(layers, [], "neither leaves anything to apply");
  },
);

test("input and output are those of the command, and its exit code is returned", { skip }, async () => {
  await using stub = await stubPlace("none");
  const { home, env } = await typing(stub);
  const words = ["sandbox", "exec", "--engine", "kubernetes://stub/team", "--", "sh", "-c", "wc -c; exit 7"];
  const start = { home, cwd: stub.place.at("project"), env: { KUBECONFIG: env.KUBECONFIG } };
  const ended = await runProgram("bin/harness", words, { ...start, input: "x".repeat(3_000_000) });
  assert.deepEqual([ended.code, ended.stdout.trim()], [7, "3000000"], ended.stderr);
});

test("a granted host is reached from a pod, and other requests are reported", { skip }, async () => {
  const server = createServer((_, response) => void response.end("HOST\n")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    await using stub = await stubPlace("enforced");
    const { type } = await typing(stub);
    const line = `curl -sS --noproxy '' http://127.0.0.1:${port}/; curl -sS http://elsewhere.test/ >/dev/null`;
    const words = ["--json", "--allow-domain", `127.0.0.1:${port}`, "--", "sh", "-c", line];
    const ended = await type("sandbox", "exec", "--engine", "kubernetes:", ...words);
    const answer = JSON.parse(ended.stdout) as {
      readonly stdout: string;
      readonly blocked_connections: readonly { readonly host: string; readonly rule: string }[];
    };
    assert.equal(answer.stdout, "HOST\n", ended.stderr);
    assert.deepEqual(
      answer.blocked_connections.map(({ host, rule }) => [host, rule]),
      [["elsewhere.test", "not-granted"]],
    );
    assert.deepEqual([stub.api.named("pods"), stub.api.named("networkpolicies")], [[], []]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

const REFUSED: readonly (readonly [readonly string[], number, RegExp])[] = [
  [["--secret", "TOKEN"], 2, /TOKEN/],
  [["--isolation", "bind"], 2, /cannot see this machine's files/],
  [["--env", "backend"], 2, /no environment backend|backend is not built for this workspace/],
  [["--runtime", "runsc"], 2, /runtime_class/],
  [["--mode", "danger-full-access"], 125, /a pod never has full access/],
  [["--image", "harness-test-no-such:1"], 125, /image cannot be pulled/],
];

test("an impossible pod is refused with the cause, and nothing is left", { skip }, async () => {
  await using stub = await stubPlace("none");
  const { type } = await typing(stub);
  for (const [more, code, words] of REFUSED) {
    const ended = await type("sandbox", "exec", "--engine", "kubernetes:", ...more, "--", "true");
    assert.equal(ended.code, code, `${more.join(" ")}: ${ended.stderr}`);
    assert.match(ended.stderr, words);
  }
  const gone = await type("sandbox", "exec", "--engine", "kubernetes://nobody", "--", "true");
  assert.deepEqual([gone.code, /no context nobody; it has stub/.test(gone.stderr)], [2, true], gone.stderr);
  assert.deepEqual([stub.api.named("pods"), stub.api.named("networkpolicies")], [[], []]);
});

/** A command in a pod of a harness that is killed. */
async function killed(stub: StubPlace, env: Readonly<Record<string, string | undefined>>): Promise<void> {
  const words = ["sandbox", "exec", "--engine", "kubernetes:", "--", "sh", "-c", "echo begun; sleep 600"];
  const child = spawn(path.join(ROOT, "bin/harness"), words, {
    cwd: stub.place.at("project"),
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout.once("data", () => resolve());
    child.once("exit", (code) => reject(new Error(`it ended with ${code}`)));
  });
  child.removeAllListeners("exit");
  child.kill("SIGKILL");
}

test("the pod of a killed harness ends by itself, is listed, and can be removed", { skip }, async () => {
  await using stub = await stubPlace("enforced");
  const { type, env } = await typing(stub);
  await killed(stub, env);
  const [name = ""] = stub.api.named("pods");
  await stub.api.until(name, ({ status }) => status.phase !== "Running");
  const listed = await type("sandbox", "ls", "--engine", "kubernetes:", "--json");
  const box = JSON.parse(listed.stdout) as {
    readonly owner: { readonly alive: boolean };
    readonly state: string;
  };
  assert.deepEqual([box.owner.alive, box.state], [false, "succeeded"]);
  const removed = await type("sandbox", "rm", "--dead", "--engine", "kubernetes:");
  assert.equal(removed.code, 0, removed.stderr);
  assert.deepEqual([stub.api.named("pods"), stub.api.named("networkpolicies")], [[], []]);
  // Whoever else removes the pod has its policy go with it.
  await killed(stub, env);
  const [second = ""] = stub.api.named("pods");
  assert.deepEqual(stub.api.named("networkpolicies"), [second]);
  await stub.api.remove(second);
  assert.deepEqual(stub.api.named("networkpolicies"), []);
});

test("the next box removes what a killed one left, and nothing of others", { skip }, async () => {
  await using stub = await stubPlace("enforced");
  const { type, env } = await typing(stub);
  const foreign = {
    "dev.harness.box": "1",
    "dev.harness.uid": String(process.getuid?.() ?? 0),
    "dev.harness.owner_pid": "1",
    "dev.harness.owner_start": "1",
    "dev.harness.boot_id": "another",
    "dev.harness.home": "0123456789abcdef",
  };
  const policy = {
    metadata: { name: "theirs", labels: foreign },
    spec: { podSelector: { matchLabels: foreign } },
  };
  await stub.api.addPolicy(policy);
  await killed(stub, env);
  const next = await type("sandbox", "exec", "--engine", "kubernetes:", "--", "true");
  assert.equal(next.code, 0, next.stderr);
  assert.deepEqual([stub.api.named("pods"), stub.api.named("networkpolicies")], [[], ["theirs"]]);
});

slowTest(
  "the Sandbox of a killed harness is listed with its pod, and both are removed by hand or by the next box",
  { skip },
  async () => {
    await using stub = await stubPlace("enforced");
    const sandboxes = stub.api.installSandboxes();
    const { type, env } = await typing(stub);
    const left = () => [sandboxes.all(), stub.api.named("pods"), stub.api.named("networkpolicies")];
    await killed(stub, env);
    const [name = ""] = stub.api.named("pods");
    await stub.api.until(name, ({ status }) => status.phase !== "Running");
    assert.deepEqual(
      sandboxes.all().map(({ metadata }) => metadata.name),
      [name],
    );
    const listed = await type("sandbox", "ls", "--engine", "kubernetes:", "--json");
    const box = JSON.parse(listed.stdout) as { readonly owner: { readonly alive: boolean } };
    assert.equal(box.owner.alive, false);
    const removed = await type("sandbox", "rm", "--dead", "--engine", "kubernetes:");
    assert.equal(removed.code, 0, removed.stderr);
    assert.deepEqual(left(), [[], [], []]);
    await killed(stub, env);
    // As its controller does it in time.
    await sandboxes.remove(sandboxes.all()[0]?.metadata.name ?? "");
    assert.deepEqual(left(), [[], [], []]);
    await killed(stub, env);
    assert.equal(sandboxes.all().length, 1);
    const next = await type("sandbox", "exec", "--engine", "kubernetes:", "--", "true");
    assert.equal(next.code, 0, next.stderr);
    assert.deepEqual(left(), [[], [], []]);
  },
);

interface Check {
  readonly id: string;
  readonly state: string;
  readonly detail: string;
}

test(
  "doctor checks the named cluster: its API, rights, image and a box without network",
  { skip },
  async () => {
    await using stub = await stubPlace("enforced");
    const { type } = await typing(stub);
    const look = async (): Promise<ReadonlyMap<string, Check>> => {
      const { stdout } = await type("doctor", "--engine", "kubernetes:", "--json");
      const { checks } = JSON.parse(stdout) as { readonly checks: readonly Check[] };
      return new Map(checks.map((check) => [check.id, check]));
    };
    const well = await look();
    for (const id of ["engine", "rights", "image", "box"])
      assert.equal(well.get(id)?.state, "ok", well.get(id)?.detail);
    assert.match(well.get("engine")?.detail ?? "", /Kubernetes v1\.20\.2 at .*, namespace team/);
    assert.deepEqual([stub.api.named("pods"), stub.api.named("networkpolicies")], [[], []]);
    stub.api.denied.add("create pods/attach").add("delete networkpolicies");
    const barred = await look();
    assert.equal(barred.get("rights")?.state, "fail");
    assert.match(
      barred.get("rights")?.detail ?? "",
      /rights missing in [^:]+: create pods\/attach, delete networkpolicies/,
    );
    assert.equal(barred.has("box"), false);
  },
);

slowTest("doctor reports whether boxes are Sandboxes, and why not", { skip }, async () => {
  await using stub = await stubPlace("none");
  const { type } = await typing(stub);
  const told = async (): Promise<string> => {
    const { stdout } = await type("doctor", "--engine", "kubernetes:", "--json");
    const { checks } = JSON.parse(stdout) as { readonly checks: readonly Check[] };
    const found = checks.find(({ id }) => id === "sandbox_resource");
    return `${found?.state}: ${found?.detail}`;
  };
  assert.match(await told(), /^ok: boxes are bare pods: the cluster does not serve Sandbox/);
  stub.api.installSandboxes();
  assert.equal(await told(), "ok: each box is a Sandbox");
  stub.api.denied.add("delete sandboxes");
  assert.match(await told(), /^ok: boxes are bare pods: rights missing in team: delete sandboxes/);
  const kubernetes = { image, sandbox_resource: "always" };
  await stub.place.write("home/.config/harness/config.json", JSON.stringify({ kubernetes }));
  assert.match(await told(), /^fail: rights missing in team: delete sandboxes/);
  const none = await type("sandbox", "exec", "--engine", "kubernetes:", "--", "true");
  assert.equal(none.code, 125);
  assert.match(none.stderr, /boxes cannot be Sandboxes: rights missing in team: delete sandboxes/);
});

slowTest(
  "doctor reports a cluster that does not enforce policies, and one that is unreachable",
  { skip },
  async () => {
    await using stub = await stubPlace("open");
    const { type } = await typing(stub);
    const { code, stdout } = await type("doctor", "--engine", "kubernetes:");
    assert.equal(code, 6);
    assert.match(stdout, /nothing in the cluster enforces network policies/);
    stub.api.away(true);
    const gone = await type("doctor", "--engine", "kubernetes:");
    assert.equal(gone.code, 6);
    assert.match(gone.stdout, /no cluster answers at/);
  },
);
