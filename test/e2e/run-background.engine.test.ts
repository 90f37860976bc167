import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import { household } from "./box-command.ts";
import { approve, DONE, endOf, FAR, FINE, park, PARKED, sessionOf } from "./parked.ts";
import { type AskedChat, bash, eventsOf, finishedOf, harness, type Said, startModel } from "./run-command.ts";
import { assertValid, resultsIn } from "./run-requests.ts";

const begin = (prompt: string): Said => ({ calls: [["task", { prompt, background: true }]] });
const wait = (task: string): Said => ({ calls: [["task", { task, timeout: 60 }]] });
const isChild = ({ messages }: AskedChat): boolean => messages[1]?.content.includes("CHILD") === true;
/** How often its model has spoken. */
const stepOf = ({ messages }: AskedChat): number =>
  messages.filter(({ role }) => role === "assistant").length;

/** Denied because of its effect, next to a similar allowed one: the program exists, and the file could be created. */
const REFUSED = "curl https://example.com > far.txt";
const ALLOWED = 'curl --version > near.txt; echo "$HOME" > child.txt';

for (const background of [true, false])
  test(
    `a task ${background ? "beside" : "within"} the run is judged, works in the box, is audited separately, and can be undone`,
    { skip },
    async () => {
      await using place = await household({ "a.txt": "one\n" });
      await using model = await startModel((chat) => {
        const own = [bash(ALLOWED, REFUSED), { text: "It made child.txt." }];
        const first: Said = { calls: [["task", { prompt: "CHILD: make it", background }]] };
        const main = bash("echo main > main.txt; echo two >> a.txt");
        const parent = [first, main, ...(background ? [wait("t1")] : []), FINE];
        return (isChild(chat) ? own : parent)[stepOf(chat)] ?? FINE;
      });
      const ran = await harness(place, ["run", "--json", ...model.flags, "make the files"]);
      const finished = finishedOf(ran);
      assertValid(model.asked());
      assert.deepEqual(finished.changes?.added, ["child.txt", "main.txt", "near.txt"], ran.stderr);
      assert.deepEqual(
        finished.denials.map(({ target }) => target),
        [REFUSED],
      );
      // The home is one of the box.
      assert.notEqual((await place.read("work/child.txt")).trim(), place.path);
      assert.match(await place.read("work/near.txt"), /^curl /);
      assert.equal(existsSync(place.at("work/far.txt")), false);
      const results = resultsIn(model.asked().findLast((chat) => !isChild(chat)));
      assert.equal(results[0]?.startsWith("[t1 is running"), background);
      assert.match(results.join("\n"), /It made child\.txt\./);
      const events = eventsOf(ran);
      assert.deepEqual(
        events.flatMap((event) => (event.type === "task" ? [[event.agent, event.task, event.status]] : [])),
        ["begun", "done"].map((status) => ["a1", background ? "t1" : undefined, status]),
      );
      const proposed = events.flatMap((event) =>
        event.type === "call.proposed" && event.tool === "bash" ? [event.agent ?? "main"] : [],
      );
      assert.deepEqual(proposed.toSorted(), ["a1", "a1", "main"]);
      const audit = (await place.read(`.local/state/harness/audit/${finished.session}.jsonl`))
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
      const decisions = audit.filter(({ kind, agent }) => kind === "decision" && agent === "a1");
      assert.deepEqual(
        decisions.map(({ command, runs }) => [command, runs]),
        [
          [ALLOWED, true],
          [REFUSED, false],
        ],
      );
      assert.equal(audit.filter(({ kind, agent }) => kind === "call.started" && agent === "a1").length, 1);
      const undone = await harness(place, ["undo"]);
      assert.equal(undone.code, 0, undone.stdout + undone.stderr);
      assert.deepEqual(
        ["child.txt", "near.txt", "main.txt"].map((name) => existsSync(place.at(`work/${name}`))),
        [false, false, false],
      );
      assert.equal(await place.read("work/a.txt"), "one\n");
    },
  );

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGKILL", null],
] as const)
  test(
    `${signal} ends a run and its tasks: nothing keeps running, and the next run is told`,
    { skip },
    async () => {
      await using place = await household();
      await using model = await startModel((chat) => {
        if (isChild(chat)) return bash("touch began; sleep 20; touch late");
        if (chat.messages.some(({ content }) => content.startsWith("and now?"))) return FINE;
        return [begin("CHILD: wait"), bash("true"), wait("t1")][stepOf(chat)] ?? FINE;
      });
      const ran = await harness(place, ["run", "--json", ...model.flags, "make files"], {
        whenMade: [place.at("work/began"), (child) => child.kill(signal)],
      });
      assert.equal(ran.code, code, ran.stderr);
      const goesOn = ["run", "--json", "--continue", "--intent", "direct", ...model.flags];
      const more = await harness(place, [...goesOn, "and now?"]);
      assert.equal(finishedOf(more).status, "done", more.stderr);
      assertValid(model.asked());
      const asked = model
        .asked()
        .at(-1)
        ?.messages.findLast(({ role }) => role === "user");
      assert.match(asked?.content ?? "", /^and now\?[^]*\[harness\] t1 \(CHILD: wait\) is lost: /);
      assert.deepEqual([await boxesOver(place.at("work")), existsSync(place.at("work/late"))], [[], false]);
    },
  );

test("a task that needs approval parks the run, and both continue after it", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((chat) => {
    const own = [bash("echo child >> child"), bash(FAR), { text: "I have looked." }];
    const parent = [begin("CHILD: look far"), wait("t1"), wait("t1"), FINE];
    return (isChild(chat) ? own : parent)[stepOf(chat)] ?? FINE;
  });
  const ran = await park(place, model);
  assert.deepEqual(endOf(ran), PARKED, ran.stderr);
  const asked = eventsOf(ran).find(({ type }) => type === "call.parked");
  assert.equal(asked?.agent, "a1");
  const more = await approve(place, sessionOf(ran), ["--once", "--json"]);
  assert.deepEqual(endOf(more), DONE, more.stderr);
  assertValid(model.asked());
  assert.deepEqual([await place.read("work/child"), await place.read("work/ran")], ["child\n", "ran\n"]);
  assert.match(JSON.stringify(model.asked().at(-1)?.messages), /I have looked\./);
});
