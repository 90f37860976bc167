import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import test from "node:test";
import { runProgram } from "../fixtures/cli.ts";
import { skip } from "../fixtures/engine.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { standingBoxes } from "../fixtures/standing-boxes.ts";
import { eventsOf, finishedOf, startModel } from "./run-command.ts";
import { bash, call, read } from "./task.ts";

/** A home of its own, and in it the folder for what is temporary. */
const home = (): Promise<Scratch> => scratch({ "tmp/.keep": "" });

const demo = (
  place: Scratch,
  flags: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): ReturnType<typeof runProgram> =>
  runProgram("bin/harness", ["demo", ...flags], {
    home: place.path,
    env: { TMPDIR: place.at("tmp"), ...env },
  });

/** Folders of copies, and boxes over them. */
async function leftBy(place: Scratch): Promise<readonly string[]> {
  const label = "dev.harness.workspace";
  const boxes = await standingBoxes(label, ({ Labels }) => Labels[label]?.startsWith(place.path) === true);
  const folders = await readdir(place.at("tmp"));
  return [
    ...folders.filter((name) => name.startsWith("harness-")),
    ...boxes.map(({ Labels }) => Labels[label] ?? ""),
  ];
}

const ANSWER = /^The test passes now\. .*\n$/;

test("the demo fixes the bug, is refused, has no network, and leaves nothing behind", { skip }, async () => {
  await using place = await home();
  const { code, stdout, stderr } = await demo(place);
  assert.equal(code, 0, stderr);
  assert.match(stdout, ANSWER);
  const lines = [
    /^scripted-demo\.jsonl \(scripted\) · workspace-write · /m,
    /^✗ bash npm test .*exit 1/m,
    /^⊘ bash curl .* denied: .* \(code\.fetched\)/m,
    /^✗ bash node report\.js .*network: /m,
    /^✓ edit_file sum\.js/m,
    /^✓ bash npm test/m,
    /^changed +1 modified\n +~ sum\.js/m,
    /^refused +bash +curl /m,
    /^status +done/m,
    /^next +harness run "…"\n +harness sessions show /m,
  ];
  const places = lines.map((line) => stderr.search(line));
  assert.deepEqual(
    places,
    places.toSorted((one, other) => one - other),
    stderr,
  );
  assert.ok(!places.includes(-1), stderr);
  assert.deepEqual(await leftBy(place), []);
});

test(
  "its events match: a refusal, a network failure, and a test that fails and then passes",
  { skip },
  async () => {
    await using place = await home();
    const ran = await demo(place, ["--json"]);
    const { status, exit_code, denials, changes } = finishedOf(ran);
    assert.deepEqual([ran.code, status, exit_code, ran.stderr], [0, "done", 0, ""]);
    assert.deepEqual(
      denials.map(({ rule }) => rule),
      ["code.fetched"],
    );
    assert.deepEqual(changes, { added: [], modified: ["sum.js"], deleted: [], ignored: 0 });
    const ended = eventsOf(ran).filter((event) => event.type === "call.ended");
    assert.deepEqual(
      ended.map(({ kind, cause }) => [kind, cause]),
      [
        ["ok", null],
        ["ok", null],
        ["failed", "program"],
        ["denied", "policy"],
        ["failed", "network"],
        ["ok", null],
        ["ok", null],
        ["ok", null],
      ],
    );
    assert.match(ended.at(-1)?.text ?? "", /fail 0/);
    assert.deepEqual(await leftBy(place), []);
  },
);

test("with --quiet only the refusal and the answer are shown", { skip }, async () => {
  await using place = await home();
  const { code, stdout, stderr } = await demo(place, ["--quiet"]);
  assert.equal(code, 0);
  assert.match(stdout, ANSWER);
  assert.match(stderr, /^\nrefused +bash +curl .*\n +denied: .*\n$/);
});

test("with a chosen model the demo uses it, and fails if it fails", { skip }, async () => {
  await using place = await home();
  await using model = await startModel([
    read("sum.js"),
    call("edit_file", { path: "sum.js", old: "let i = 1", new: "let i = 0" }),
    bash("npm test"),
    { text: "I did it." },
  ]);
  const url = model.flags[model.flags.indexOf("--base-url") + 1] ?? "";
  const env = { HARNESS_PROVIDER: "ollama", HARNESS_BASE_URL: url, HARNESS_CHAT_MODEL: "coder:7b" };
  const ran = await demo(place, [], env);
  assert.deepEqual([ran.code, ran.stdout], [0, "I did it.\n"], ran.stderr);
  assert.match(ran.stderr, /^coder:7b \(ollama\)/);
  assert.match(ran.stderr, /~ sum\.js/);
  assert.equal(model.asked().length, 4);
  const away = await demo(place, [], { ...env, HARNESS_BASE_URL: "http://127.0.0.1:1" });
  assert.equal(away.code, 5, away.stderr);
  assert.deepEqual(await leftBy(place), []);
});

test("the demo without room for its copy names the folder and ends with 1", { skip }, async () => {
  await using place = await home();
  const { code, stderr } = await demo(place, [], { TMPDIR: "/nowhere" });
  assert.equal(code, 1);
  assert.match(stderr, /^error: the demo's copy could not be made in \/nowhere: ENOENT.*\n {2}next: TMPDIR=/);
});

test("the demo without its image says how to get it, and leaves no copy", { skip }, async () => {
  await using place = await home();
  const { code, stdout, stderr } = await demo(place, ["--image", "harness-test-none:1"]);
  assert.deepEqual([code, stdout], [6, ""]);
  assert.match(stderr, /harness-test-none:1/);
  assert.deepEqual(await leftBy(place), []);
});
