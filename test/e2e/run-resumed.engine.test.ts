import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { bash, eventsOf, finishedOf, harness, isAside, type Said, startModel } from "./run-command.ts";
import { assertValid } from "./run-requests.ts";

const TASK = "Read all the files and answer with KUMQUAT.";
const DONE: Said = { text: "KUMQUAT" };
const files = Object.fromEntries(
  Array.from({ length: 14 }, (_, at) => [`f${at}.txt`, `${`line of f${at} `.repeat(10)}\n`.repeat(36)]),
);
test(
  "a turn cancelled after a compaction leaves nothing behind, and the first task stays",
  {
    skip,
  },
  async () => {
    await using place = await household(files);
    let turn = 0;
    await using model = await startModel((chat) => {
      if (isAside(chat)) return { text: '{"goal":"read all","decisions":["in order"]}' };
      turn += 1;
      if (turn <= 13) return { calls: [["read_file", { path: `f${turn}.txt` }]] };
      return { text: "CANCELLED WORDS", calls: [["bash", { command: "touch began; sleep 60" }]] };
    }, 8192);
    const ran = await harness(place, ["run", "--json", ...model.flags, TASK], {
      whenMade: [place.at("work/began"), (child) => child.kill("SIGINT")],
    });
    assert.equal(ran.code, 130, ran.stderr);
    const events = eventsOf(ran);
    assert.ok(events.some((event) => event.type === "compaction" && event.status === "succeeded"));
    const back = events.findLast((event) => event.type === "rolled_back");
    const begun = events.findLast((event) => event.type === "turn.started");
    assert.equal(back?.record_count, begun?.record_count);
    await using again = await startModel([DONE], 8192);
    const more = await harness(place, [
      "run",
      "--continue",
      "--intent",
      "direct",
      ...again.flags,
      "and now?",
    ]);
    assert.deepEqual([more.code, more.stdout], [0, "KUMQUAT\n"], more.stderr);
    assertValid([...model.asked(), ...again.asked()]);
    const [seen] = again.asked();
    assert.ok(seen?.messages[1]?.content.includes(TASK));
    assert.ok(!JSON.stringify(seen).includes("CANCELLED WORDS"));
    const last = model.asked().findLast((chat) => !isAside(chat));
    assert.deepEqual(seen?.messages.slice(0, -1), last?.messages);
  },
);

test(
  "--continue resumes the folder's last session, --resume a named one from anywhere",
  { skip },
  async () => {
    await using place = await household();
    await place.write("elsewhere/.keep", "");
    const sessions: string[] = [];
    for (const word of ["first", "second"]) {
      await using model = await startModel([bash(`touch ${word}`), DONE]);
      sessions.push(
        finishedOf(await harness(place, ["run", "--json", ...model.flags, `make ${word}`])).session,
      );
    }
    await using last = await startModel([DONE]);
    await harness(place, ["run", "--continue", ...last.flags, "go on"]);
    assert.match(last.asked()[0]?.messages[1]?.content ?? "", /make second/);
    await using named = await startModel([bash("touch third"), DONE]);
    const ran = await harness(
      place,
      ["run", "--json", "--resume", sessions[0] ?? "", ...named.flags, "go on"],
      {
        cwd: place.at("elsewhere"),
      },
    );
    assert.match(named.asked()[0]?.messages[1]?.content ?? "", /make first/);
    assert.deepEqual([finishedOf(ran).session, existsSync(place.at("work/third"))], [sessions[0], true]);
  },
);

test(
  "a session continues with its model, unless flags name another; a model that failed does not count",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([bash("touch one"), DONE, DONE, DONE, DONE, DONE]);
    const { session } = finishedOf(await harness(place, ["run", "--json", ...model.flags, "make one"]));
    const modelIn = async (...words: readonly string[]): Promise<unknown> => {
      const ran = await harness(place, ["run", "--json", "--intent", "direct", ...words, "and now?"]);
      const started = eventsOf(ran).find((event) => event.type === "run.started");
      return [started?.provider, started?.model, ran.code];
    };
    assert.deepEqual(await modelIn("--continue"), ["ollama", "coder:7b", 0]);
    assert.deepEqual(await modelIn("--continue", "--fork"), ["ollama", "coder:7b", 0]);
    const gone = ["--provider", "openai", "--base-url", "http://127.0.0.1:1/v1", "--model", "gone"];
    assert.deepEqual(await modelIn("--resume", session, ...gone), ["openai", "gone", 5]);
    assert.deepEqual(await modelIn("--resume", session), ["ollama", "coder:7b", 0]);
  },
);

test("the shell resumes in its folder with its variables", { skip }, async () => {
  await using place = await household({ "sub/a.txt": "a\n" });
  await using first = await startModel([
    bash("cd sub; export COLOUR=green"),
    bash("pwd > ../where; touch made"),
    DONE,
  ]);
  await harness(place, ["run", ...first.flags, "work in sub"]);
  assert.equal((await place.read("work/where")).trim(), place.at("work/sub"));
  await using second = await startModel([bash('printf %s "$COLOUR" > colour'), DONE]);
  await harness(place, ["run", "--continue", ...second.flags, "write the colour"]);
  assert.equal(await place.read("work/sub/colour"), "green");
});

test("a session can resume in another mode, which is enforced", { skip }, async () => {
  await using place = await household();
  await using first = await startModel([bash("touch one"), DONE]);
  await harness(place, ["run", ...first.flags, "make one"]);
  await using second = await startModel([bash("touch two"), DONE]);
  const flags = ["--continue", "--mode", "read-only", "--json", ...second.flags];
  const ran = await harness(place, ["run", ...flags, "make two"]);
  assert.deepEqual([ran.code, existsSync(place.at("work/two"))], [4, false], ran.stderr);
});

test("two simultaneous runs in one folder keep their histories separate", { skip }, async () => {
  await using place = await household();
  const one = await startModel([bash("touch one; sleep 1"), DONE]);
  const two = await startModel([bash("touch two; sleep 1"), DONE]);
  await using _one = one;
  await using _two = two;
  const runs = await Promise.all(
    [one, two].map((model, at) => harness(place, ["run", "--json", ...model.flags, `make number ${at}`])),
  );
  assertValid([...one.asked(), ...two.asked()]);
  for (const ran of runs) {
    const { exit_code, reason } = finishedOf(ran);
    assert.ok(exit_code === 0 || (exit_code === 6 && reason !== ""), `${exit_code} ${reason}`);
  }
  assert.ok(runs.some(({ code }) => code === 0));
});

test("resuming a session in which nothing was done does not count as work", { skip }, async () => {
  await using place = await household();
  const missing: Said = { calls: [["read_file", { path: "nosuch.txt" }]] };
  await using first = await startModel([missing, DONE, DONE]);
  const one = await harness(place, ["run", "--json", ...first.flags, "fix the bug in a.js"]);
  assert.deepEqual([one.code, finishedOf(one).reason], [1, "nothing was done"], one.stderr);
  await using second = await startModel([DONE]);
  const on = await harness(place, ["run", "--continue", "--json", ...second.flags, "go on"]);
  assert.deepEqual([on.code, finishedOf(on).reason], [1, "nothing was done"], on.stderr);
  const asked = await harness(place, [
    "run",
    "--continue",
    "--strict",
    "--json",
    ...second.flags,
    "--intent",
    "repo",
    "what did you find?",
  ]);
  assert.deepEqual([asked.code, finishedOf(asked).grounded], [1, false], asked.stderr);
  await using third = await startModel([{ calls: [["list_dir", { path: "." }]] }, DONE]);
  await harness(place, ["run", "--continue", ...third.flags, "look around"]);
  const after = await harness(place, ["run", "--continue", "--json", ...second.flags, "go on"]);
  assert.equal(after.code, 0, after.stderr);
});
