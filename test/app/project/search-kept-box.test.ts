import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { KeptBox } from "../../../src/app/project/search-of-run.ts";
import { fakeBox } from "../../fakes/box.ts";
import { NEVER } from "../../search/stores/words.ts";

test("all searches share one box, a lost one is replaced, and the last is removed with the searches", async () => {
  const lost = Promise.withResolvers<never>();
  const gone: number[] = [];
  let started = 0;
  await using kept = new KeptBox(() => {
    const number = (started += 1);
    const box = fakeBox();
    return Promise.resolve(
      Object.assign(box, {
        gone: number === 1 ? lost.promise : box.gone,
        [Symbol.asyncDispose]: () => Promise.resolve(void gone.push(number)),
      }),
    );
  });
  const first = await kept.box(NEVER);
  assert.equal(await kept.box(NEVER), first);
  lost.resolve(undefined as never);
  await turn();
  assert.notEqual(await kept.box(NEVER), first);
  assert.equal(started, 2);
  await kept[Symbol.asyncDispose]();
  assert.deepEqual(gone, [2]);
});

test("starting the box is retried after a failure", async () => {
  let tried = 0;
  await using kept = new KeptBox(() => {
    tried += 1;
    return tried === 1 ? Promise.reject(new Error("no engine")) : Promise.resolve(fakeBox());
  });
  await assert.rejects(kept.box(NEVER), /no engine/);
  assert.ok(await kept.box(NEVER));
});
