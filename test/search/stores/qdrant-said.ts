import assert from "node:assert/strict";
import { HarnessError } from "../../../src/core/errors.ts";

export const KEY = "a-key-that-nobody-may-see";

/** Checks the message and the remedy of a failure, and that it does not contain the key. */
export async function assertSaid(failing: Promise<unknown>, said: RegExp, remedy: RegExp): Promise<void> {
  await assert.rejects(failing, (thrown) => {
    assert.ok(thrown instanceof HarnessError, String(thrown));
    assert.match(thrown.message, said);
    assert.match(thrown.remedy, remedy);
    assert.ok(!`${thrown.message}${thrown.remedy}`.includes(KEY));
    return true;
  });
}
