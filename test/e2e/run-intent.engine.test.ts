import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import { household } from "./box-command.ts";
import {
  type AskedChat,
  eventsOf,
  finishedOf,
  harness,
  type Ran,
  type Replies,
  type Said,
  startModel,
} from "./run-command.ts";
import { resultsIn, toolsIn } from "./run-requests.ts";

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

for (const prompt of ["hi", "Hello there!", "thanks, that was great", "what is a mutex?", "what is 2+2"])
  test(`${JSON.stringify(prompt)} is answered with one request and no box`, { skip }, async () => {
    const done = await played(prompt, HELLO);
    assert.deepEqual([done.ran.code, done.asked.length], [0, 1], done.ran.stderr);
    assert.deepEqual(intentsOf(done), ["direct by words"]);
    assert.ok(!typesOf(done).has("box.ready"));
  });

test("a greeting needs no engine", { skip }, async () => {
  await using place = await household();
  await using model = await startModel(HELLO);
  const env = { DOCKER_HOST: "unix:///nowhere/docker.sock" };
  const ran = await harness(place, ["run", ...model.flags, "hello"], { env });
  assert.deepEqual([ran.code, ran.stdout], [0, "Hello!\n"], ran.stderr);
});

const QUESTION = "How does the login in src/login.py work?";
const AGAIN: Said = { calls: [["bash", { command: "touch made; echo again" }]] };
/** What every request of a session begins with. */
const prefixOf = ({ tools, messages: [system] }: AskedChat): string => JSON.stringify([tools, system]);

for (const intent of ["direct", "repo", "change", "web"])
  test(`the tools and the system prompt stay byte for byte the same: ${intent}`, { skip }, async () => {
    const done = await played(
      "Look at the login",
      [{ calls: [["read_file", { path: "src/login.py" }]] }, MAKE, AGAIN, { text: "made it" }],
      ["--intent", intent],
    );
    assert.deepEqual([done.ran.code, done.made, done.asked.length], [0, true, 4], done.ran.stderr);
    assert.equal(new Set(done.asked.map(prefixOf)).size, 1);
    assert.ok(toolsIn(done.asked[0]).includes("bash") && toolsIn(done.asked[0]).includes("read_file"));
    const escalated = intent === "repo" ? ["change by escalated"] : [];
    assert.deepEqual(intentsOf(done), [`${intent} by flag`, ...escalated]);
  });

test("all requests of a session keep them too, whatever they are about", { skip }, async () => {
  await using place = await household({ "src/login.py": "def login(): pass\n" });
  const prefixes: string[] = [];
  for (const [prompt, flags] of [
    ["hi", []],
    [QUESTION, ["--continue"]],
    ["Fix the login in src/login.py", ["--continue"]],
    ["and now?", ["--continue"]],
  ] as const) {
    await using model = await startModel([{ text: "Well." }]);
    const ran = await harness(place, ["run", ...flags, ...model.flags, prompt]);
    assert.ok(model.asked().length > 0, ran.stderr);
    prefixes.push(...model.asked().map(prefixOf));
  }
  assert.equal(new Set(prefixes).size, 1);
});

test("a task may write at once", { skip }, async () => {
  const done = await played("Fix the login in src/login.py", [MAKE, { text: "done" }]);
  assert.deepEqual(
    [done.ran.code, done.made, intentsOf(done)],
    [0, true, ["change by words"]],
    done.ran.stderr,
  );
});

test(
  "a write in reply to a question is challenged once, and does not count as refused",
  { skip },
  async () => {
    const answered = await played(QUESTION, [MAKE, { text: "It does nothing." }]);
    assert.deepEqual([answered.ran.code, answered.made], [0, false], answered.ran.stderr);
    assert.deepEqual(finishedOf(answered.ran).denials, []);
    assert.match(
      resultsIn(answered.asked[1]).at(-1) ?? "",
      /^Not run: this was a question about the repository/,
    );
    const insisted = await played(QUESTION, [MAKE, MAKE, { text: "made it" }]);
    assert.deepEqual([insisted.ran.code, insisted.made], [0, true], insisted.ran.stderr);
    assert.deepEqual(intentsOf(insisted), ["repo by words", "change by escalated"]);
  },
);

test("no model is asked what a request is about", { skip }, async () => {
  const done = await played("and now?", HELLO);
  // The second request tells the model that nothing was done.
  assert.deepEqual([done.asked.length, intentsOf(done)], [2, ["change by words"]], done.ran.stderr);
  const reading = await played("and now?", HELLO, ["--mode", "read-only"]);
  assert.deepEqual(intentsOf(reading), ["repo by words"], reading.ran.stderr);
});
