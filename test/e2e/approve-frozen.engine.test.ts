// also slow: a box that waits for every answer and isolation
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { engine } from "../fixtures/engine-api.ts";
import { skip } from "../fixtures/engine.ts";
import { noOverlay } from "../docker/box/open-box.ts";
import { household } from "./box-command.ts";
import { boxesFor, COUNTING, COUNTS, COUNTS_ON, parkingsOf } from "./frozen.ts";
import { approve, endOf, FAR, FINE, park, PARKED, sessionOf } from "./parked.ts";
import { bash, finishedOf, harness, type Said, startModel } from "./run-command.ts";
import { assertValid, resultsIn } from "./run-requests.ts";
import { firstOf, slowTest } from "../fixtures/slow-test.ts";

const job = (command: string): Said["calls"] => [["bash", { command, background: true }]];
const numbers = (text = ""): readonly number[] => (text.match(/^\d+$/gm) ?? []).map(Number);

const BEGIN: Said = {
  calls: [
    ...(job(COUNTING) ?? []),
    ...(job("echo over; echo at length >&2") ?? []),
    ["bash", { command: `${COUNTS}; echo kept > /tmp/kept; cat /tmp/n; cd /tmp; export MINE=1` }],
  ],
};
const AFTER: readonly Said[] = [
  bash(`cat /tmp/kept; ${COUNTS_ON}; echo $PWD $MINE`),
  {
    calls: [
      ["bash", { job: "j1" }],
      ["bash", { job: "j2" }],
      ["bash", { job: "j1", kill: true }],
      ["bash", { command: "sleep 100", background: true }],
    ],
  },
  FINE,
];

/** From the results of the calls after the answer, as the model saw them. */
function assertSameBox(results: readonly string[], answer: string, frozen: number): void {
  const behind = results.slice(BEGIN.calls?.length);
  const [far = "", looked = "", ...jobs] = behind;
  assert.match(far, answer === "--once" ? /curl/ : /The user said no/);
  assert.match(far, /The box has waited: background jobs and \/tmp are as they were/);
  const [thawed = 0, later = 0] = numbers(looked);
  assert.ok(frozen > 0 && thawed >= frozen && later > thawed, `${frozen} ${looked}`);
  assert.match(looked, /^kept$/m);
  assert.match(looked, /^\/tmp 1$/m);
  const told = [
    /^at \d+$[^]*\[j1 is running/m,
    /\[j2 ended: exit 0\]/,
    /\[j1 was ended\]/,
    /\[j3 is running/,
  ];
  for (const [at, form] of told.entries()) assert.match(jobs[at] ?? "", form);
}

for (const answer of firstOf(["--once", "--deny"]))
  test(
    `with ${answer} the run continues in the box that waited, with its jobs and /tmp`,
    { skip },
    async () => {
      await using place = await household();
      await using model = await startModel([BEGIN, bash(FAR), ...AFTER]);
      const ran = await park(place, model);
      assert.deepEqual([endOf(ran), ran.stderr], [PARKED, ""]);
      const [box, ...others] = await boxesFor(place);
      assert.deepEqual([box?.State, others], ["paused", []]);
      const [file = "", ...more] = await parkingsOf(place);
      assert.deepEqual(more, []);
      assert.equal((await stat(place.at(".local/state/harness/parked", file))).mode & 0o777, 0o600);
      // Nothing counts while it is frozen.
      const frozen = await place.read("work/n");
      await sleep(1000);
      assert.equal(await place.read("work/n"), frozen);
      const went = await approve(place, sessionOf(ran), [answer, "--json"]);
      assert.deepEqual([went.code, went.stderr], [answer === "--once" ? 0 : 4, ""]);
      assertValid(model.asked());
      assertSameBox(resultsIn(model.asked().at(-1)), answer, Number(frozen));
      assert.deepEqual([await boxesFor(place), await parkingsOf(place)], [[], []]);
    },
  );

test("job output already shown is not shown again, and changes cover the whole run", { skip }, async () => {
  await using place = await household({ "a.txt": "a\n" });
  const said = "printf 'one\\n'; sleep 0.6; printf 'two\\n'; touch /tmp/said; sleep 100";
  await using model = await startModel([
    { calls: [...(job(said) ?? []), ["bash", { command: "echo b > b.txt; echo more >> a.txt" }]] },
    {
      calls: [
        ["bash", { job: "j1" }],
        ["bash", { command: "until [ -e /tmp/said ]; do sleep 0.1; done" }],
        // The same twice would be one call.
        ["bash", { job: "j1", timeout: 1 }],
        ["bash", { command: FAR }],
      ],
    },
    { calls: [["bash", { job: "j1" }]] },
    FINE,
  ]);
  const ran = await park(place, model);
  const more = await approve(place, sessionOf(ran), ["--once", "--json"]);
  const [begun = "", , first = "", , second = "", , last = ""] = resultsIn(model.asked().at(-1));
  assert.match(begun + first + second, /one\n[^]*two\n/);
  assert.match(last, /^\[j1 is running/);
  const { changes } = finishedOf(more);
  assert.deepEqual([changes?.added, changes?.modified], [["b.txt", "ran"], ["a.txt"]]);
});

for (const [what, first] of [
  ["its very first call", bash(FAR)],
  ["its very first reply, after a job", { calls: [...(job(COUNTING) ?? []), ["bash", { command: FAR }]] }],
] as const satisfies readonly (readonly [string, Said])[])
  test(`a run that parks at ${what} continues in the same container`, { skip }, async () => {
    await using place = await household();
    const jobs = (first.calls?.length ?? 0) - 1;
    const looks = jobs === 0 ? "true" : COUNTS_ON;
    await using model = await startModel([first, bash(looks, "cat /proc/sys/kernel/hostname"), FINE]);
    const ran = await park(place, model);
    assert.deepEqual([endOf(ran), ran.stderr], [PARKED, ""]);
    const [box, ...others] = await boxesFor(place);
    assert.deepEqual([box?.State, others], ["paused", []]);
    const { Config } = await engine.api.getContainer(box?.Id ?? "").inspect();
    const went = await approve(place, sessionOf(ran), ["--once", "--json"]);
    assert.equal(went.code, 0, went.stderr);
    const results = resultsIn(model.asked().at(-1));
    assert.match(results[jobs] ?? "", /The box has waited: background jobs and \/tmp are as they were/);
    assert.ok((results.at(-1) ?? "").includes(Config.Hostname), results.at(-1));
    if (jobs === 0) return;
    const [thawed = 0, later = 0] = numbers(results.at(-2));
    assert.ok(thawed > 0 && later > thawed, results.at(-2));
  });

slowTest("a run may wait several times in the same box", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([BEGIN, bash(FAR), bash(FAR), AFTER[0] ?? FINE, FINE]);
  const session = sessionOf(await park(place, model));
  const [box] = await boxesFor(place);
  const again = await approve(place, session, ["--once", "--json"]);
  assert.deepEqual([endOf(again), again.stderr], [PARKED, ""]);
  const [same, ...others] = await boxesFor(place);
  assert.deepEqual([same?.Id, same?.State, others], [box?.Id, "paused", []]);
  assert.equal((await parkingsOf(place)).length, 1);
  const more = await approve(place, session, ["--once"]);
  assert.equal(more.code, 0, more.stderr);
  const results = resultsIn(model.asked().at(-1));
  assert.match(results.at(-1) ?? "", /^kept$/m, `${more.stderr}\n${results.join("\n---\n")}`);
});

for (const isolation of firstOf(["overlay", "copy"] as const))
  test(
    `a run with ${isolation} can be parked too, and is applied when it is over`,
    { skip: noOverlay },
    async () => {
      await using place = await household({ "a.txt": "a\n", "gone/b.txt": "b\n" });
      const change = bash(
        "echo more >> a.txt; echo new > new.txt; rm -r gone; mkdir gone; echo x > gone/x; echo t > /tmp/t",
      );
      await using model = await startModel([
        change,
        bash(FAR),
        bash("cat a.txt new.txt ran /tmp/t; ls gone"),
        FINE,
      ]);
      const ran = await park(place, model, ["--isolation", isolation]);
      assert.deepEqual([endOf(ran), ran.stderr], [PARKED, ""]);
      const session = sessionOf(ran);
      assert.deepEqual(
        (await boxesFor(place)).map(({ State }) => State),
        ["paused"],
      );
      const diff = await harness(place, ["diff", session]);
      assert.match(diff.stdout, /new\.txt/, diff.stderr);
      const early = await harness(place, ["apply", session]);
      assert.deepEqual([early.code, existsSync(place.at("work/new.txt"))], [2, false], early.stderr);
      assert.match(early.stderr, /a frozen box holds the changes[^]*next: harness approve/);
      const more = await approve(place, session, ["--once"]);
      assert.deepEqual([more.code, more.stdout], [0, `${FINE.text}\n`], more.stderr);
      assert.match(resultsIn(model.asked().at(-1)).at(-1) ?? "", /^a\nmore\nnew\nran\nt\nx/);
      const applied = await harness(place, ["apply", session]);
      assert.equal(applied.code, 0, applied.stderr);
      assert.equal(await place.read("work/a.txt"), "a\nmore\n");
      assert.deepEqual(
        ["new.txt", "ran", "gone/x", "gone/b.txt"].map((name) => existsSync(place.at("work", name))),
        [true, true, true, false],
      );
      const label = [`dev.harness.workspace=${place.at("work")}`];
      assert.deepEqual((await engine.api.listVolumes({ filters: { label } })).Volumes ?? [], []);
    },
  );
