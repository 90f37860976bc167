import assert from "node:assert/strict";
import { chmodSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { RunCheckpoints } from "../../../src/sessions/checkpoints/recorder.ts";
import { keptRun } from "../../fixtures/kept-run.ts";

/** Longer than the pause between two calls that still counts as the run's own. */
const WHILE_MS = 80;
const WRITE = { call: "c", turn: 1, lasting: false };

test("a change by somebody else between two calls belongs to neither step", async () => {
  await using kept = await keptRun({ "a.txt": "a" });
  const file = kept.place.at("work/a.txt");
  await kept.run(
    () => writeFileSync(file, "b"),
    async () => {
      await sleep(WHILE_MS);
    },
  );
  {
    const { steps, open } = kept;
    await using run = new RunCheckpoints({ session: "s", steps, open, notice: assert.fail });
    await run.around(WRITE, () => Promise.resolve(writeFileSync(file, "c")));
    await sleep(WHILE_MS);
    writeFileSync(file, "mine");
    await run.around(WRITE, () => Promise.resolve());
  }
  const [, , third, fourth] = kept.steps.all();
  assert.ok(third !== undefined && fourth !== undefined);
  assert.notEqual(third.after, fourth.before);
  assert.equal(fourth.before, fourth.after);
});

test("parallel calls form one chain of states", async () => {
  await using kept = await keptRun({ "a.txt": "a" });
  const { steps, open } = kept;
  {
    await using run = new RunCheckpoints({ session: "s", steps, open, notice: assert.fail });
    await Promise.all(
      ["one", "two", "three"].map((call, at) =>
        run.around({ ...WRITE, call }, async () => {
          writeFileSync(kept.place.at(`work/${call}`), call);
          await sleep(at * 30);
          writeFileSync(kept.place.at(`work/${call}`), `${call} again`);
        }),
      ),
    );
  }
  const all = steps.all();
  assert.equal(all.length, 3);
  for (const [at, step] of all.entries()) if (at > 0) assert.equal(step.before, all[at - 1]?.after);
  await kept.undo();
  assert.equal(await kept.place.read("work/a.txt"), "a");
  await assert.rejects(kept.place.read("work/three"));
});

test("parallel calls that end in a different order are undone completely", async () => {
  await using kept = await keptRun({ "a.txt": "a" });
  const { steps, open } = kept;
  {
    await using run = new RunCheckpoints({ session: "s", steps, open, notice: assert.fail });
    const first = Promise.withResolvers<void>();
    const long = run.around(WRITE, async () => {
      writeFileSync(kept.place.at("work/long"), "");
      await first.promise;
      writeFileSync(kept.place.at("work/long"), "whole");
    });
    await run.around(WRITE, () => Promise.resolve(writeFileSync(kept.place.at("work/short"), "short")));
    first.resolve();
    await long;
  }
  await kept.undo();
  assert.equal(await kept.place.read("work/a.txt"), "a");
  for (const name of ["long", "short"]) await assert.rejects(kept.place.read(`work/${name}`), name);
});

test("parallel calls cut off by a kill all count as work of that run", async () => {
  await using kept = await keptRun({ "a.txt": "a" });
  const { steps, open } = kept;
  const write = (name: string, text: string): void => writeFileSync(kept.place.at(`work/${name}`), text);
  const never = new Promise<void>(() => undefined);
  const killed = new RunCheckpoints({ session: "s", steps, open, notice: assert.fail });
  void killed.around(WRITE, () => (write("long", ""), never));
  await killed.around(WRITE, () => Promise.resolve(write("short", "short")));
  void killed.around(WRITE, () => (write("other", "other"), never));
  await sleep(WHILE_MS);
  write("long", "whole");
  {
    const told: string[] = [];
    await using run = new RunCheckpoints({ session: "s", steps, open, notice: (text) => told.push(text) });
    await run.around(WRITE, () => Promise.resolve());
    assert.match(told.join(), /was killed/);
  }
  assert.ok(steps.all().every(({ after }) => after !== null));
  await kept.undo();
  for (const name of ["long", "short", "other"]) await assert.rejects(kept.place.read(`work/${name}`), name);
});

test("what a job writes after its call has ended belongs to the run", async () => {
  await using kept = await keptRun({ "a.txt": "a" });
  const { steps, open } = kept;
  {
    await using run = new RunCheckpoints({ session: "s", steps, open, notice: assert.fail });
    await run.around({ ...WRITE, lasting: true }, () => Promise.resolve());
    await sleep(WHILE_MS);
    writeFileSync(kept.place.at("work/a.txt"), "by the job");
  }
  const { done } = await kept.undo();
  assert.equal(done, true);
  assert.equal(await kept.place.read("work/a.txt"), "a");
});

test("a call that throws has its step ended, and its error is passed on", async () => {
  await using kept = await keptRun({ "a.txt": "a" });
  const work = kept.run(() => {
    writeFileSync(kept.place.at("work/a.txt"), "b");
    throw new Error("the box was lost");
  });
  await assert.rejects(work, /the box was lost/);
  assert.notEqual(kept.steps.all()[0]?.after, null);
  await kept.undo();
  assert.equal(await kept.place.read("work/a.txt"), "a");
});

test("a killed step ends where the session's next run begins", async () => {
  await using kept = await keptRun({ "a.txt": "a" });
  using store = kept.open();
  const before = await store.take("s");
  kept.steps.begin({ kind: "call", call: "c", turn: 1, before, target: null });
  writeFileSync(kept.place.at("work/a.txt"), "half");
  await kept.run(() => writeFileSync(kept.place.at("work/b.txt"), "b"));
  assert.match(kept.notices.join(), /was killed/);
  await kept.undo();
  assert.equal(await kept.place.read("work/a.txt"), "a");
  await assert.rejects(kept.place.read("work/b.txt"));
});

test("a run that ends does not wait for a snapshot that nobody needs", async () => {
  await using kept = await keptRun({ "a.txt": "a" });
  for (let at = 0; at < 3000; at += 1) writeFileSync(kept.place.at(`work/f${at}`), `${at}`);
  const { steps, open } = kept;
  {
    await using run = new RunCheckpoints({ session: "s", steps, open, notice: assert.fail });
    run.prepare();
  }
  using store = kept.open();
  assert.equal(store.trees.ids().length, 0);
  assert.ok(![...(await store.look())].some(([, { kind }]) => kind === "unkept"));
});

test("a file counts as unchanged since the run by content, kind and mode, not by times", async () => {
  const names = ["same", "back", "anew", "touched", "other", "mode", "gone", "link", "later"];
  await using kept = await keptRun(Object.fromEntries(names.map((name) => [name, name])));
  const { steps, open } = kept;
  const at = (name: string): string => kept.place.at(`work/${name}`);
  // An earlier run of the session is no part of this one.
  await kept.run(() => writeFileSync(at("back"), "earlier"));
  const since = steps.all().at(-1)?.step ?? 0;
  await using run = new RunCheckpoints({ session: "s", steps, since, open, notice: assert.fail });
  const paths = [...names, "new", "never"];
  assert.deepEqual(await run.unchanged(paths), new Set(), "nothing was recorded yet");
  await run.around(WRITE, () => {
    writeFileSync(at("same"), "same");
    writeFileSync(at("back"), "other");
    for (const name of ["anew", "gone", "link"]) rmSync(at(name));
    utimesSync(at("touched"), 1, 1);
    writeFileSync(at("other"), "odder");
    chmodSync(at("mode"), 0o755);
    writeFileSync(at("new"), "new");
    return Promise.resolve();
  });
  await run.around(WRITE, () => {
    writeFileSync(at("back"), "earlier");
    writeFileSync(at("anew"), "anew");
    symlinkSync("same", at("link"));
    return Promise.resolve();
  });
  writeFileSync(at("later"), "LATER");
  assert.deepEqual(await run.unchanged(paths), new Set(["same", "back", "anew", "touched"]));
  assert.deepEqual(await Promise.all([...names, "new"].map((name) => run.before(name))), [
    ...names.map((name) => (name === "back" ? "earlier" : name)),
    undefined,
  ]);
  const unknown = new RunCheckpoints({ session: "s", steps, open, notice: assert.fail });
  await unknown.around(WRITE, () => Promise.resolve());
  assert.deepEqual(await unknown.unchanged(paths), new Set(), "its start is unknown");
  await unknown[Symbol.asyncDispose]();
});

test("a damaged checkpoint yields no earlier content, and ends nothing", async () => {
  await using kept = await keptRun({ a: "one" });
  const { steps, open } = kept;
  const since = steps.all().at(-1)?.step ?? 0;
  const told: string[] = [];
  const run = new RunCheckpoints({ session: "s", steps, since, open, notice: (text) => told.push(text) });
  await run.around(WRITE, () => {
    writeFileSync(kept.place.at("work/a"), "two");
    return Promise.resolve();
  });
  assert.equal(await run.before("a"), "one");
  {
    using store = open();
    rmSync(store.packs.folder, { recursive: true });
  }
  assert.equal(await run.before("a"), undefined);
  await run[Symbol.asyncDispose]();
});
