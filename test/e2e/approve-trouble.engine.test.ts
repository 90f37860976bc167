// also slow: the rarer troubles of an answer, each with a box that waits
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { rename } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { approve, DONE, endOf, FAR, FINE, park, PARKED, sessionOf } from "./parked.ts";
import { bash, eventsOf, harness, startModel } from "./run-command.ts";
import { assertValid, resultsIn } from "./run-requests.ts";
import { noTerminal, onTerminal } from "./terminal.ts";
import { slowTest } from "../fixtures/slow-test.ts";

async function silentServer(socket: string) {
  const asked = Promise.withResolvers<void>();
  const server = createServer(() => asked.resolve());
  await new Promise<void>((resolve) => void server.listen(socket, resolve));
  return { asked: asked.promise, [Symbol.asyncDispose]: async () => void server.close() };
}

function inStore(place: Scratch, sql: string): void {
  const db = new DatabaseSync(place.at(".local/state/harness/sessions.db"));
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}

test(
  "without a flag and a terminal, or for an id that does not wait, approve ends with 2",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([bash("true"), FINE, bash(FAR), FINE]);
    const none = await approve(place, "nosuch", ["--once"]);
    assert.deepEqual([none.code, none.stdout], [2, ""]);
    assert.match(none.stderr, /no session has this id[^]*next: harness sessions list/);
    const over = await approve(place, sessionOf(await park(place, model)), ["--once"]);
    assert.equal(over.code, 2);
    assert.match(over.stderr, /error: nothing in \S+ waits for approval[^]*next: harness sessions show/);
    const session = sessionOf(await park(place, model));
    const mute = await approve(place, session, []);
    assert.equal(mute.code, 2);
    assert.match(mute.stderr, /no terminal[^]*next: harness approve \w+ --once/);
    assert.equal((await approve(place, session, ["--once", "--deny"])).code, 2);
    assert.equal((await approve(place, session, ["--once"])).code, 0);
  },
);

slowTest(
  "a question parked by another version is left alone, and the session can continue with another prompt",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([bash(FAR), FINE]);
    const session = sessionOf(await park(place, model));
    inStore(place, "UPDATE records SET body = json_set(body, '$.parked.form', 99) WHERE kind = 'parked'");
    const other = await approve(place, session, ["--once"]);
    assert.equal(other.code, 2);
    assert.match(other.stderr, /another version of harness[^]*harness run --resume/);
    const more = await harness(place, [
      "run",
      "--resume",
      session,
      "--intent",
      "direct",
      ...model.flags,
      "leave that",
    ]);
    assert.equal(more.code, 0, more.stderr);
    assertValid(model.asked());
  },
);

slowTest("a kill between the question and the end of the run loses nothing", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash("echo one > one", FAR), FINE]);
  const session = sessionOf(await park(place, model));
  // The state after a kill right after the question.
  inStore(
    place,
    `DELETE FROM records WHERE kind = 'turn'; DELETE FROM events WHERE type = 'run.finished';
     UPDATE sessions SET status = NULL`,
  );
  const more = await approve(place, session, ["--once"]);
  assert.equal(more.code, 0, more.stderr);
  assertValid(model.asked());
  assert.equal(await place.read("work/ran"), "ran\n");
});

slowTest(
  "a kill while the run continues leaves a resumable session with nothing waiting",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([bash(FAR, "echo began > began; sleep 60"), FINE]);
    const session = sessionOf(await park(place, model));
    const killed = await approve(place, session, ["--once"], {
      whenMade: [place.at("work/began"), (child) => child.kill("SIGKILL")],
    });
    assert.equal(killed.code, null);
    assert.equal((await approve(place, session, ["--once"])).code, 2);
    const more = await harness(place, ["run", "--continue", ...model.flags, "and now?"]);
    assert.equal(more.code, 0, more.stderr);
    assertValid(model.asked());
    const [far, slept] = resultsIn(model.asked()[1]);
    assert.match(far ?? "", /curl/);
    assert.match(slept ?? "", /interrupted/);
  },
);

test("of two approvals at once one continues, and the call runs once", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash(FAR), FINE]);
  const session = sessionOf(await park(place, model));
  const both = await Promise.all([approve(place, session, ["--once"]), approve(place, session, ["--once"])]);
  const codes = both.map(({ code }) => code);
  assert.equal(codes.filter((code) => code === 0).length, 1, JSON.stringify(both));
  assert.ok(codes.some((code) => code === 2 || code === 6));
  assert.deepEqual([await place.read("work/ran"), model.asked().length], ["ran\n", 2]);
});

slowTest("an answer is not used up when no box can be started", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash(FAR), FINE]);
  const session = sessionOf(await park(place, model));
  const none = await approve(place, session, ["--once"], { env: { DOCKER_HOST: "unix:///nowhere.sock" } });
  assert.deepEqual([none.code, none.stdout], [6, ""], none.stderr);
  assert.equal((await approve(place, session, ["--once"])).code, 0);
});

slowTest(
  "files changed meanwhile are seen as they are, and a missing folder ends with 2",
  { skip },
  async () => {
    await using place = await household({ "a.txt": "old\n" });
    const edit = ["edit_file", { path: "a.txt", old: "old", new: "new" }] as const;
    const calls = [
      ["read_file", { path: "a.txt" }],
      ["bash", { command: FAR }],
      edit,
      ["bash", { command: "cat a.txt" }],
    ] as const;
    await using model = await startModel([{ calls }, FINE]);
    const session = sessionOf(await park(place, model));
    await place.write("work/a.txt", "mine\n");
    await rename(place.at("work"), place.at("moved"));
    const gone = await approve(place, session, ["--once"], { cwd: place.path });
    assert.equal(gone.code, 2, gone.stderr);
    await rename(place.at("moved"), place.at("work"));
    assert.equal((await approve(place, session, ["--once"])).code, 0);
    const [, , edited, seen] = resultsIn(model.asked()[1]);
    assert.match(seen ?? "", /^mine/);
    assert.doesNotMatch(edited ?? "", /^edited/i);
    assert.equal(await place.read("work/a.txt"), "mine\n");
  },
);

test("a rule added meanwhile applies: a call that is denied now does not run", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash(FAR), FINE]);
  const session = sessionOf(await park(place, model));
  const rule = '[[rule]]\nprefix = ["curl"]\ndecision = "deny"\nreason = "not here"\nmatch = ["curl x"]\n';
  await place.write(".config/harness/policy.toml", "[[rule]]\nodd = 1\n");
  assert.equal((await approve(place, session, ["--once"])).code, 2);
  await place.write(".config/harness/policy.toml", rule);
  const more = await approve(place, session, ["--once", "--json"]);
  assert.deepEqual([...endOf(more), existsSync(place.at("work/ran"))], [4, 4, "refused", false], more.stderr);
});

test("on a terminal the question is shown and answered there", { skip: skip || noTerminal }, async () => {
  await using place = await household();
  await using model = await startModel([bash(FAR), bash(FAR), FINE]);
  const session = sessionOf(await park(place, model));
  await using left = onTerminal(place, ["approve", session]);
  await left.until(/run it\? \[y\/N\]/);
  left.type("\u0003");
  assert.equal(await left.ended, 130);
  await using yes = onTerminal(place, ["approve", session]);
  assert.match(await yes.until(/run it\? \[y\/N\]/), /curl -sS/);
  yes.type("y\r");
  assert.equal(await yes.ended, 7);
  await using no = onTerminal(place, ["approve", session]);
  await no.until(/run it\? \[y\/N\]/);
  no.type("n\r");
  assert.equal(await no.ended, 4, no.screen());
  assert.equal(await place.read("work/ran"), "ran\n");
});

test(
  "an edited command that requires confirmation is asked about at once",
  { skip: skip || noTerminal },
  async () => {
    await using place = await household();
    await using model = await startModel([bash(FAR), FINE]);
    const session = sessionOf(await park(place, model));
    await using terminal = onTerminal(place, ["approve", session]);
    await terminal.until(/run it\? \[y\/N\]/);
    terminal.type("e\r");
    await terminal.until(/edit> curl -sS/);
    terminal.type(" ; echo more > more\r");
    assert.match(await terminal.until(/run it\? \[y\/N\]/), /echo more > more/);
    terminal.type("y\r");
    assert.equal(await terminal.ended, 0, terminal.screen());
    assert.equal(await place.read("work/more"), "more\n");
    assert.match(resultsIn(model.asked()[1])[0] ?? "", /the user replaced the arguments/);
  },
);

slowTest(
  "interrupted before there is a box, no answer is given and the call still waits",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([bash(FAR), FINE]);
    const session = sessionOf(await park(place, model));
    // An engine that takes the connection and never answers.
    await using engine = await silentServer(place.at("engine.sock"));
    const cut = await approve(place, session, ["--once"], {
      env: { DOCKER_HOST: `unix://${place.at("engine.sock")}` },
      whenMade: [place.at("engine.sock"), (child) => void engine.asked.then(() => child.kill("SIGTERM"))],
    });
    assert.equal(cut.code, 143, cut.stderr);
    assert.match(cut.stderr, /no answer was given/);
    assert.equal((await approve(place, session, ["--once"])).code, 0);
  },
);

slowTest("cancelling the rest of a turn takes it back like a whole turn", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash(FAR, "echo began > began; sleep 60"), FINE]);
  const session = sessionOf(await park(place, model));
  const cut = await approve(place, session, ["--once", "--json"], {
    whenMade: [place.at("work/began"), (child) => child.kill("SIGINT")],
  });
  assert.equal(cut.code, 130, cut.stderr);
  assert.ok(eventsOf(cut).some(({ type }) => type === "rolled_back"));
  const more = await harness(place, [
    "run",
    "--json",
    "--continue",
    "--intent",
    "direct",
    ...model.flags,
    "and now?",
  ]);
  assert.deepEqual(endOf(more), DONE, more.stderr);
  assertValid(model.asked());
  assert.deepEqual(resultsIn(model.asked()[1]), []);
  assert.notDeepEqual(endOf(more), PARKED);
});
