import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import type { Box } from "../../src/core/ports.ts";
import type { Suite } from "./box-suite.ts";
import { asking, NEVER, text } from "./box-words.ts";

const isLoss = (thrown: unknown): boolean =>
  thrown instanceof HarnessError &&
  thrown.exit === EXIT.sandbox &&
  /^the box was lost: ./.test(thrown.message);

const slow = (): Promise<void> => sleep(20);

async function everythingIsLost(box: Box): Promise<void> {
  const asked = [
    box.exec(asking(["true"]), NEVER),
    box.exec(asking(["true"]), AbortSignal.abort()),
    box.start(asking(["true"])).result,
    box.read("old.txt"),
    box.write("old.txt", Buffer.from("x")),
    box.list("."),
    box.stat("."),
    box.changes(),
  ];
  for (const [index, asking] of asked.entries()) await assert.rejects(asking, isLoss, `the ${index}th`);
  assert.notEqual(await box.gone, "");
}

/** Commands and jobs that end while the box stays. */
export function commandEndingCases(suite: Suite): void {
  abortCases(suite);
  jobCases(suite);
}

function abortCases({ open, of, skip }: Suite): void {
  test(of("aborting a command ends it, and it still gives its result"), { skip }, async () => {
    await using opened = await open();
    const abort = new AbortController();
    const busy = opened.box.exec(asking(["sleep", "3600"]), abort.signal);
    await sleep(50);
    abort.abort();
    const { exit_code, cause, reason, killed, timed_out } = await busy;
    assert.deepEqual([exit_code, cause, reason, killed, timed_out], [137, "user", "cancelled", true, false]);
  });

  test(of("a command aborted before it started does not start"), { skip }, async () => {
    await using opened = await open();
    const { exit_code, cause, killed, stdout } = await opened.box.exec(
      asking(["touch", "made"]),
      AbortSignal.abort(),
    );
    assert.deepEqual([exit_code, cause, killed, stdout.total], [137, "user", true, 0]);
    assert.equal((await opened.box.stat("made")).kind, "failed");
  });

  test(of("aborting an ended command changes nothing, for it or for others"), { skip }, async () => {
    await using opened = await open();
    const abort = new AbortController();
    const { exit_code } = await opened.box.exec(asking(["true"]), abort.signal);
    const other = opened.box.exec(asking(["sleep", "0.2"]), NEVER);
    abort.abort();
    assert.deepEqual([exit_code, (await other).exit_code], [0, 0]);
  });

  test(of("a flood with a slow reader ends when it is cancelled or its time is up"), { skip }, async () => {
    await using opened = await open();
    const flood = asking(opened.words.flood(1e10), { onOutput: slow, keep: { head: 1e12, tail: 0 } });
    const aborted = await opened.box.exec(flood, AbortSignal.timeout(100));
    assert.deepEqual([aborted.exit_code, aborted.cause], [137, "user"]);
    const late = await opened.box.exec({ ...flood, timeoutMs: 100 }, NEVER);
    assert.deepEqual([late.exit_code, late.cause], [124, "timeout"]);
  });

  test(of("aborting one command does not affect others"), { skip }, async () => {
    await using opened = await open();
    const abort = new AbortController();
    const [one, other] = [
      opened.box.exec(asking(["sleep", "30"]), abort.signal),
      opened.box.exec(asking(["sleep", "0.5"]), NEVER),
    ];
    await sleep(50);
    abort.abort();
    assert.deepEqual([(await one).exit_code, (await other).exit_code], [137, 0]);
  });
}

function jobCases({ open, of, skip }: Suite): void {
  test(of("a job runs beside other commands until it is killed"), { skip }, async () => {
    await using opened = await open();
    const never = Promise.withResolvers<never>();
    async function* oneLine(): AsyncGenerator<Uint8Array> {
      yield await Promise.resolve(Buffer.from("ready\n"));
      await never.promise;
    }
    const job = opened.box.start(asking(["cat"], { input: oneLine(), timeoutMs: 0 }));
    while (job.output().stdout.length < 6) await sleep(5);
    assert.equal((await opened.box.exec(asking(["true"]), NEVER)).exit_code, 0);
    assert.equal(text(job.output().stdout), "ready\n");
    job.kill();
    job.kill();
    const { exit_code, cause, killed, stdout } = await job.result;
    assert.deepEqual([exit_code, cause, killed, text(stdout.head)], [137, "user", true, "ready\n"]);
    job.kill();
    job.resize(80, 24);
  });

  test(of("a job that ends by itself has a result like any command"), { skip }, async () => {
    await using opened = await open();
    const job = opened.box.start(asking(opened.words.exit(4)));
    assert.deepEqual([(await job.result).exit_code, job.output().stdout.length], [4, 0]);
  });
}

/** The box itself ends. */
export function endingCases({ open, of, skip }: Suite): void {
  test(of("when the box is lost, everything in it and after it rejects"), { skip }, async () => {
    await using opened = await open();
    const { box } = opened;
    const job = box.start(asking(["sleep", "30"]));
    const busy = box.exec(asking(["sleep", "30"]), NEVER);
    const outcomes = Promise.allSettled([busy, job.result]);
    await sleep(50);
    await opened.lose();
    for (const outcome of await outcomes) assert.ok(outcome.status === "rejected" && isLoss(outcome.reason));
    await everythingIsLost(box);
  });

  test(of("a job whose result nobody awaits may be lost silently"), { skip }, async () => {
    await using opened = await open();
    opened.box.start(asking(["sleep", "30"]));
    await opened.lose();
    await opened.box.gone;
    await sleep(20);
  });

  test(of("after its owner has disposed of it, even several times, it is gone"), { skip }, async () => {
    await using opened = await open();
    const { box } = opened;
    const busy = assert.rejects(box.exec(asking(["sleep", "30"]), NEVER), isLoss);
    await Promise.all([box[Symbol.asyncDispose](), box[Symbol.asyncDispose]()]);
    await busy;
    await everythingIsLost(box);
    await box[Symbol.asyncDispose]();
  });
}
