// also slow: further moments at which a pod is lost
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import test from "node:test";
import { setTimeout } from "node:timers/promises";
import { COMPILED, type Ended, runProgram } from "../fixtures/cli.ts";
import { image, ROOT, skip } from "../fixtures/engine.ts";
import { type StubPlace, stubPlace } from "../kubernetes/stub-pods.ts";
import { slowTest } from "../fixtures/slow-test.ts";

const EVICTED = { reason: "Evicted", message: "The node was low on resource: memory." };
/** Known by its number among all that runs in a pod. */
const LONG = "sleep 3671";

interface Typing {
  readonly type: (...words: readonly string[]) => Promise<Ended>;
  readonly run: (script: readonly object[], ...words: readonly string[]) => Promise<Ended>;
}

async function typing({ place }: StubPlace): Promise<Typing> {
  const kubernetes = { image, start_timeout: "30s" };
  await place.write("home/.config/harness/config.json", JSON.stringify({ kubernetes }));
  const start = {
    home: place.at("home"),
    cwd: place.at("project"),
    env: { KUBECONFIG: place.at("kubeconfig") },
  };
  const type: Typing["type"] = (...words) => runProgram("bin/harness", words, start);
  return {
    type,
    run: async (script, ...words) => {
      const model = await place.write("model.jsonl", script.map((step) => JSON.stringify(step)).join("\n"));
      const how = ["--engine", "kubernetes:", "--provider", "scripted", "--model", model, "--json"];
      return type("run", ...how, ...words, "change the files");
    },
  };
}

const eventsOf = ({ stdout }: Ended): readonly Readonly<Record<string, unknown>>[] =>
  stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

const bash = (command: string, expect?: object): object => ({
  ...(expect === undefined ? {} : { expect }),
  reply: [{ call: "bash", args: { command } }],
});

/** Each pod in which it runs, as it comes to it. */
async function loseWhile(
  stub: StubPlace,
  line: string,
  times: number,
  before?: () => Promise<unknown>,
): Promise<void> {
  for (let lost = 0; lost < times; lost += 1) {
    const pod = await podWith(stub, line);
    await before?.();
    await stub.api.evict(pod, EVICTED);
  }
}

test(
  "a run whose pod is lost continues in another one without the interrupted call, with a notice",
  { skip },
  async () => {
    await using stub = await stubPlace("none");
    const { type, run } = await typing(stub);
    const script = [
      bash("echo two >> a.txt; echo kept > b.txt"),
      bash(`echo lost >> a.txt; ${LONG}`),
      bash("cat a.txt b.txt; echo three >> a.txt", {
        tool: "bash did not finish: its box was lost (the box has ended: evicted: The node was low",
      }),
      { expect: { tool: "one\ntwo\nkept" }, reply: ["Both files are there."] },
    ];
    const running = run(script, "--no-verify");
    await loseWhile(stub, LONG, 1);
    const done = await running;
    const events = eventsOf(done);
    const last = events.at(-1);
    assert.deepEqual([done.code, last?.["status"]], [0, "done"], `${done.stderr}${done.stdout}`);
    const { added, modified, incomplete } = (last?.["changes"] ?? {}) as Record<string, unknown>;
    assert.deepEqual([added, modified, incomplete], [["b.txt"], ["a.txt"], undefined]);
    const told = events.filter(({ type: is }) => is === "notice").map(({ text }) => String(text));
    assert.match(told.join("\n"), /the box was lost \(.*evicted: .*\); a new one continues .* \(1 of 3\)/);
    assert.equal(events.filter(({ type: is }) => is === "box.ready").length, 2);
    assert.deepEqual([stub.api.named("pods"), stub.api.named("networkpolicies")], [[], []]);
    assert.match((await type("diff")).stdout, /^\+two\n\+three$/m);
    assert.equal((await type("apply")).code, 0);
    assert.equal(await stub.place.read("project/a.txt"), "one\ntwo\nthree\n");
    assert.equal((await type("undo")).code, 0);
    assert.equal(await stub.place.read("project/a.txt"), "one\n");
  },
);

test(
  "a run whose pods keep getting lost ends with the cause, and returned changes are kept",
  { skip },
  async () => {
    await using stub = await stubPlace("none");
    const { type, run } = await typing(stub);
    const again = Array.from({ length: 4 }, (_, round) => bash(`echo ${round} >> lost.txt; ${LONG}`));
    const running = run([bash("echo two >> a.txt"), ...again], "--no-verify");
    await loseWhile(stub, LONG, 4);
    const done = await running;
    const last = eventsOf(done).at(-1);
    assert.equal(done.code, 6, `${done.stderr}${done.stdout}`);
    assert.match(String(last?.["reason"]), /the box was lost: .*evicted/);
    assert.deepEqual(last?.["changes"], {
      added: [],
      modified: ["a.txt"],
      deleted: [],
      ignored: 0,
      incomplete: true,
    });
    assert.match((await type("diff")).stdout, /^\+two$/m);
    const shown = await type("report");
    assert.match(shown.stdout, /a\.txt/, shown.stderr);
    assert.equal((await type("apply")).code, 0);
    assert.equal(await stub.place.read("project/a.txt"), "one\ntwo\n");
    assert.deepEqual([stub.api.named("pods"), stub.api.named("networkpolicies")], [[], []]);
  },
);

slowTest("a check lost with its pod is run in the next one", { skip }, async () => {
  await using stub = await stubPlace("none");
  const { run } = await typing(stub);
  const check = `grep -q two a.txt && { test -e go || ${LONG}; }`;
  const script = [bash("echo two >> a.txt"), { reply: ["It is done."] }];
  const running = run(script, "--check", check);
  // What is copied into the next pod is read then.
  await loseWhile(stub, LONG, 1, () => stub.place.write("project/go", ""));
  const done = await running;
  const last = eventsOf(done).at(-1);
  assert.equal(done.code, 0, `${done.stderr}${done.stdout}`);
  assert.deepEqual(last?.["verified"], { command: check, exit_code: 0, rounds: 0 });
});

slowTest(
  "a killed harness leaves the changes of its calls, and the session continues with them",
  { skip },
  async () => {
    await using stub = await stubPlace("none");
    const { type, run } = await typing(stub);
    const words = await stub.place.write(
      "killed.jsonl",
      [bash("echo two >> a.txt"), bash(`echo lost >> a.txt; ${LONG}`)]
        .map((step) => JSON.stringify(step))
        .join("\n"),
    );
    const child = spawn(
      path.join(ROOT, "bin/harness"),
      [
        "run",
        "--engine",
        "kubernetes:",
        "--provider",
        "scripted",
        "--model",
        words,
        "--no-verify",
        "change the files",
      ],
      {
        cwd: stub.place.at("project"),
        env: {
          PATH: process.env["PATH"],
          HOME: stub.place.at("home"),
          KUBECONFIG: stub.place.at("kubeconfig"),
          ...COMPILED,
        },
        stdio: "ignore",
      },
    );
    const ended = once(child, "exit");
    const pod = await podWith(stub, LONG);
    child.kill("SIGKILL");
    await ended;
    await stub.api.until(pod, ({ status }) => status.phase !== "Running");
    assert.match((await type("diff")).stdout, /^\+two$/m);
    const again = [bash("cat a.txt"), { expect: { tool: "one\ntwo" }, reply: ["Two lines."] }];
    const next = await run(again, "--continue");
    assert.equal(next.code, 0, `${next.stderr}${next.stdout}`);
    assert.deepEqual([stub.api.named("pods"), stub.api.named("networkpolicies")], [[], []]);
  },
);

/** The pod in which it runs, once there is one. */
async function podWith({ api }: StubPlace, line: string): Promise<string> {
  for (;;) {
    for (const pod of api.named("pods")) {
      const lines = await api.processes(pod).catch(() => []);
      if (lines.some((each) => each.startsWith(line))) return pod;
    }
    await setTimeout(50);
  }
}
