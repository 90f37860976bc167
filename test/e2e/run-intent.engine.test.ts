import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { boxesOver } from "../fixtures/real-box.ts";
import { household } from "./box-command.ts";
import {
  type AskedChat,
  eventsOf,
  harness,
  type Ran,
  type Replies,
  type Said,
  startModel,
} from "./run-command.ts";
import { toolsIn } from "./run-requests.ts";

interface Played {
  readonly ran: Ran;
  readonly asked: readonly AskedChat[];
  readonly made: boolean;
}

async function played(prompt: string, replies: Replies, flags: readonly string[] = []): Promise<Played> {
  await using place = await household({ "src/login.py": "def login(): pass\n" });
  await using model = await startModel(replies);
  const ran = await harness(place, ["run", "--json", ...flags, ...model.flags, prompt]);
  assert.deepEqual(await boxesOver(place.at("work")), []);
  return { ran, asked: model.asked(), made: existsSync(place.at("work/made")) };
}

const typesOf = ({ ran }: Played): ReadonlySet<string> => new Set(eventsOf(ran).map(({ type }) => type));
const intentsOf = ({ ran }: Played): readonly string[] =>
  eventsOf(ran).flatMap((event) => (event.type === "intent" ? [`${event.intent} by ${event.by}`] : []));

const HELLO: readonly Said[] = [{ text: "Hello!" }];
const MAKE: Said = { calls: [["bash", { command: "touch made" }]] };

for (const prompt of ["hi", "Hello there!", "thanks, that was great", "what is a mutex?"])
  test(`${JSON.stringify(prompt)} is one request without tools, and no box`, { skip }, async () => {
    const done = await played(prompt, HELLO);
    assert.deepEqual([done.ran.code, done.asked.length, toolsIn(done.asked[0])], [0, 1, []], done.ran.stderr);
    assert.deepEqual(intentsOf(done), ["direct by words"]);
    assert.ok(!typesOf(done).has("box.ready"));
  });

test("a greeting needs no engine at all", { skip }, async () => {
  await using place = await household();
  await using model = await startModel(HELLO);
  const env = { DOCKER_HOST: "unix:///nowhere/docker.sock" };
  const ran = await harness(place, ["run", ...model.flags, "hello"], { env });
  assert.deepEqual([ran.code, ran.stdout], [0, "Hello!\n"], ran.stderr);
});

test("a question about the project gets tools that read, and none that change", { skip }, async () => {
  const done = await played("How does the login in src/login.py work?", [
    { calls: [["read_file", { path: "src/login.py" }]] },
    { text: "It does nothing." },
  ]);
  assert.deepEqual([done.ran.code, intentsOf(done)], [0, ["repo by words"]], done.ran.stderr);
  const tools = toolsIn(done.asked[0]);
  assert.ok(tools.includes("read_file") && tools.includes("grep"));
  for (const name of ["bash", "write_file", "edit_file", "apply_patch", "task"])
    assert.ok(!tools.includes(name), name);
});

test("a task gets all tools", { skip }, async () => {
  const done = await played("Fix the login in src/login.py", [MAKE, { text: "done" }]);
  assert.deepEqual(
    [done.ran.code, done.made, intentsOf(done)],
    [0, true, ["change by words"]],
    done.ran.stderr,
  );
});

test("a guess that was too small is widened once, and the call is run", { skip }, async () => {
  const done = await played("How does the login in src/login.py work?", [MAKE, { text: "made it" }]);
  assert.deepEqual([done.ran.code, done.made], [0, true], done.ran.stderr);
  assert.deepEqual(intentsOf(done), ["repo by words", "change by escalated"]);
  assert.ok(!toolsIn(done.asked[0]).includes("bash") && toolsIn(done.asked[1]).includes("bash"));
});

test("an intent that the user gave is not widened", { skip }, async () => {
  const done = await played("Look at the login", [MAKE, MAKE, { text: "could not" }], ["--intent", "repo"]);
  assert.equal(done.made, false);
  assert.deepEqual(intentsOf(done), ["repo by flag"]);
  assert.ok(done.asked.every((chat) => !toolsIn(chat).includes("bash")));
  const direct = await played("touch a file", [{ text: "no" }], ["--intent", "direct"]);
  assert.deepEqual([direct.asked.length, toolsIn(direct.asked[0])], [1, []]);
  const change = await played("hi", [MAKE, { text: "ok" }], ["--intent", "change"]);
  assert.deepEqual([change.made, intentsOf(change)], [true, ["change by flag"]]);
});

test(
  "where the words do not say, the model is asked once, but not in the middle of a session",
  { skip },
  async () => {
    await using place = await household();
    const unsure = "and now?";
    await using first = await startModel((chat) =>
      chat.messages[0]?.content.startsWith("Sort the user") === true
        ? { text: '{"intent":"repo"}' }
        : { text: "yes" },
    );
    const ran = await harness(place, ["run", "--json", ...first.flags, unsure]);
    assert.deepEqual(
      eventsOf(ran).flatMap((event) => (event.type === "intent" ? [event.by] : [])),
      ["model"],
    );
    assert.deepEqual(
      first.asked().map((chat) => toolsIn(chat).length > 0),
      [false, true],
    );
    await using next = await startModel(HELLO);
    const more = await harness(place, ["run", "--continue", "--json", ...next.flags, unsure]);
    assert.deepEqual([more.code, next.asked().length], [0, 1], more.stderr);
    assert.equal(next.asked()[0]?.messages[0]?.content, first.asked()[1]?.messages[0]?.content);
  },
);
