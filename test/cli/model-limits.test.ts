import assert from "node:assert/strict";
import test from "node:test";
import { limitsOf } from "../../src/app/model-access.ts";
import { DEFAULTS } from "../../src/config/settings-schema.ts";

test("the timeouts for a model come from the settings", () => {
  assert.deepEqual(limitsOf(DEFAULTS), { connectMs: 10_000, firstMs: 600_000, idleMs: 600_000 });
  assert.deepEqual(
    limitsOf({ ...DEFAULTS, connect_timeout: 1000, first_token_timeout: 2000, idle_timeout: 3000 }),
    { connectMs: 1000, firstMs: 2000, idleMs: 3000 },
  );
});
