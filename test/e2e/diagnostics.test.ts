import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startLoopback } from "../fakes/loopback.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { SECRET } from "../fixtures/secrets.ts";
import { harness, type Ran } from "./run-command.ts";

/** Diagnostics and the bug report of the program as it is built. None of these runs needs a box. */

const STATE = "state/harness";
const KEY = "sk-quokka-0123456789";
const TASK = "tell me of the quokka that lives in the harbour";

const home = (): Promise<Scratch> =>
  scratch({
    "work/quokka.txt": "quokka inside\n",
    "model.jsonl": JSON.stringify({ reply: ["A quokka."] }),
    ".config/harness/keys.json": JSON.stringify({ openai: "k3y-0f-the-file-42" }).replace(
      "}",
      String.raw`,"groq":"heron\u002Dwillow"}`,
    ),
  });

const run = (
  place: Scratch,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> =>
  harness(place, words, {
    env: { DOCKER_HOST: `unix://${place.at("no.sock")}`, XDG_STATE_HOME: place.at("state"), ...env },
  });

const scripted = (place: Scratch): readonly string[] => [
  "run",
  "--intent",
  "direct",
  "--provider",
  "scripted",
  "--model",
  place.at("model.jsonl"),
  TASK,
];

async function logged(place: Scratch): Promise<readonly string[]> {
  const folder = place.at(`${STATE}/diagnostics`);
  const names = (await readdir(folder).catch(() => [])).toSorted((a, b) => (a < b ? -1 : 1));
  return Promise.all(names.map((name) => readFile(path.join(folder, name), "utf8")));
}

const whatsIn = (text: string): readonly unknown[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as Record<string, unknown>)["what"]);

test("each run leaves diagnostics of its settings, events and end, without any text of the conversation", async () => {
  await using place = await home();
  const ran = await run(place, scripted(place));
  assert.equal(ran.code, 0, ran.stderr);
  assert.doesNotMatch(ran.stderr, /run started/);
  const [text = "", ...others] = await logged(place);
  assert.deepEqual(
    [whatsIn(text), others],
    [["started", "run started", "intent", "turn", "reply", "run finished"], []],
  );
  assert.doesNotMatch(text, /quokka|harbour/);
  assert.match(text, /"key":"provider","value":"scripted","origin":"--provider"/);
});

test("HARNESS_LOG writes diagnostics to stderr from a level on, and stdout stays the answer", async () => {
  await using place = await home();
  const loud = await run(place, [...scripted(place), "--quiet"], { HARNESS_LOG: "info" });
  assert.match(loud.stderr, /^\d\d:\d\d:\d\d\.\d{3} info {2}run started {2}run=/m);
  assert.doesNotMatch(loud.stderr, /debug/);
  assert.equal(loud.stdout, "A quokka.\n");
  const low = await run(place, [...scripted(place), "--quiet"], { HARNESS_LOG: "error" });
  assert.equal(low.stderr.includes("run started"), false);
  const wrong = await run(place, scripted(place), { HARNESS_LOG: "loud" });
  assert.deepEqual(
    [wrong.code, /HARNESS_LOG is ignored: expected one of debug, info, warn, error/.test(wrong.stderr)],
    [0, true],
  );
});

test("a failing command is logged with its stack, and a usage error is not", async () => {
  await using place = await home();
  assert.equal((await run(place, ["sandbox", "exec", "--", "true"])).code, 125);
  assert.equal((await run(place, ["run", "--no-such-flag"])).code, 2);
  const texts = await logged(place);
  assert.equal(texts.length, 1);
  const [failed] = texts.join("").trimEnd().split("\n");
  const { what, name, exit, stack } = JSON.parse(failed ?? "") as Record<string, unknown>;
  assert.deepEqual([what, name], ["failed", "HarnessError"]);
  assert.ok(exit === 6 || exit === 125, String(exit));
  assert.match(String(stack), /at .*dist\//);
});

test("a run without a box logs the reason once, with its cause", async () => {
  await using place = await home();
  await place.write(
    "model.jsonl",
    JSON.stringify({ reply: [{ call: "bash", args: { command: "quokka" } }] }),
  );
  const ran = await run(place, scripted(place));
  assert.equal(ran.code, 6, ran.stderr);
  const [text = ""] = await logged(place);
  assert.deepEqual(
    whatsIn(text).filter((what) => what === "failed" || what === "run finished"),
    ["failed", "run finished"],
  );
  const failed = text.split("\n").find((line) => line.includes('"what":"failed"')) ?? "{}";
  const { name, exit, stack } = JSON.parse(failed) as Record<string, unknown>;
  assert.deepEqual([name, exit], ["HarnessError", 6]);
  assert.match(String(stack), /at .*dist\//);
  assert.doesNotMatch(text, /quokka/);
});

/** A server that refuses each request and says it again, with all that it should not. */
const echoing = (place: Scratch) =>
  startLoopback([
    {
      status: 400,
      body: JSON.stringify({
        error: {
          message: `cannot do: ${TASK}; key ${KEY}; heron-willow; ${place.path}/private; ${SECRET.map(([, a, b]) => a + b).join(" ")}`,
        },
      }),
    },
  ]);

test("the bug report contains what happened and no private data", async () => {
  await using place = await home();
  await using server = await echoing(place);
  const url = `${server.url}/v1`;
  const private_ = {
    OPENAI_API_KEY: KEY,
    DEPLOY_PASSWORD: "tulip-9-and-more",
    OTEL_EXPORTER_OTLP_HEADERS: "x-team=Bearer%20narcissus77",
    USER: "alice",
    HOSTNAME: "box-of-alice",
  };
  await place.write(
    ".config/harness/config.json",
    JSON.stringify({
      check: `curl -u alice:pw https://me:s3cr3tpw@alice.example/?token=zzz ${place.path}/x`,
    }),
  );
  const model = ["--provider", "openai", "--base-url", url, "--model", "m", "--no-verify"];
  assert.equal((await run(place, ["run", "--intent", "direct", ...model, TASK], private_)).code, 5);
  assert.equal((await run(place, [...scripted(place), "--no-verify"], private_)).code, 0);
  const made = await run(place, ["doctor", "--bundle", place.at("report.txt")], private_);
  assert.equal(made.code, 0, made.stderr);
  assert.ok(made.stdout.startsWith(place.at("report.txt")), made.stdout);
  assert.match(made.stdout, /contains diagnostics of the last 2 processes/);
  assert.equal((await stat(place.at("report.txt"))).mode & 0o777, 0o600);
  const text = await place.read("report.txt");
  for (const [kind, , secret] of SECRET) assert.ok(!text.includes(secret), kind);
  for (const word of [
    place.path,
    KEY,
    "tulip-9",
    "narcissus77",
    "k3y-0f-the-file",
    "heron-willow",
    "s3cr3tpw",
    "zzz",
  ])
    assert.ok(
      !text.includes(word),
      `${word}: ${text.slice(text.indexOf(word) - 200, text.indexOf(word) + 50)}`,
    );
  assert.doesNotMatch(text, /alice|quokka|harbour/i);
  assert.match(text, /model failed .*kind=/);
  assert.match(text, /^check = .*\(.*config\.json\)$/m);
  assert.match(text, /^fail engine: /m);
  assert.match(text, /== environment variables that are set\n.*OPENAI_API_KEY/);
});

test("an existing file is not overwritten, and by default the report is written next to our state", async () => {
  await using place = await home();
  await place.write("work/mine.txt", "mine");
  const refused = await run(place, ["doctor", "--bundle", "mine.txt"]);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /mine\.txt already exists/);
  assert.equal(await place.read("work/mine.txt"), "mine");
  const made = await run(place, ["doctor", "--bundle", "--json"]);
  const { file, bytes } = JSON.parse(made.stdout) as { readonly file: string; readonly bytes: number };
  assert.equal(path.dirname(file), place.at(`${STATE}/bug-reports`));
  assert.equal((await stat(file)).size, bytes);
  assert.deepEqual((await readdir(place.at("work"))).toSorted(), ["mine.txt", "quokka.txt"]);
  const spare = await run(place, ["doctor", "mine.txt"]);
  assert.deepEqual([spare.code, /unexpected word: mine\.txt/.test(spare.stderr)], [2, true]);
});

/** As soon as its run has started. */
async function killedOnce(place: Scratch, child: { kill: (signal: "SIGKILL") => boolean }): Promise<void> {
  while (!(await logged(place)).some((text) => text.includes("run started"))) await sleep(10);
  child.kill("SIGKILL");
}

test("a killed run's log has all lines written so far", async () => {
  await using place = await home();
  await place.write("model.jsonl", JSON.stringify({ reply: [{ delay: "60s" }, "x"] }));
  const asked = harness(place, scripted(place), {
    env: { XDG_STATE_HOME: place.at("state") },
    whenMade: [place.at(`${STATE}/diagnostics`), (child) => void killedOnce(place, child)],
  });
  assert.equal((await asked).code, null);
  const [text = ""] = await logged(place);
  assert.deepEqual(whatsIn(text).slice(0, 2), ["started", "run started"]);
  assert.doesNotMatch(text, /run finished/);
  assert.equal((await run(place, ["doctor", "--bundle", place.at("r.txt")])).code, 0);
  assert.match(await place.read("r.txt"), /run started/);
});
