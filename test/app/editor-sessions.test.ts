import assert from "node:assert/strict";
import test from "node:test";
import { shownMessages } from "../../src/app/editor-sessions.ts";
import type { Message } from "../../src/core/model-provider.ts";

test("an editor that shows a session again shows what harness told the model as its words, not as the person's", () => {
  const tool: Message = { role: "tool", call: "c1", text: "out" };
  assert.deepEqual(
    shownMessages([
      { role: "user", text: "fix it\n\nplease\n\n[harness] The tests are run by: npm test" },
      tool,
      { role: "user", text: "[harness] Nothing was done." },
      { role: "user", text: "what does [harness] mean?" },
    ]),
    [
      { role: "user", text: "fix it\n\nplease" },
      { role: "assistant", text: "\n\n[harness] The tests are run by: npm test\n\n", calls: [] },
      tool,
      { role: "assistant", text: "\n\n[harness] Nothing was done.\n\n", calls: [] },
      { role: "user", text: "what does [harness] mean?" },
    ],
  );
});
