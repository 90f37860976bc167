import assert from "node:assert/strict";
import { calls, failed, finished } from "./provider-ask.ts";
import type { Add } from "./provider-suite.ts";

const HELLO = { type: "text", text: "Hello" } as const;
const GOOD = { parts: [HELLO] } as const;

/** Faults inside a reply that began well. */
export function faultCases(add: Add): void {
  add(
    "a stream that breaks off after something was shown fails and is not retried",
    { scenario: { replies: [{ parts: [HELLO], ends: "cut" }, GOOD] } },
    async ({ ask, opened }) => {
      const answer = await ask();
      assert.equal(failed(answer).failure.kind, "garbled");
      assert.equal(answer.text, "Hello");
      assert.equal(opened.asked().length, 1);
    },
  );

  add(
    "a stream that breaks off before anything was shown is retried",
    { scenario: { replies: [{ parts: [], ends: "cut" }, GOOD] } },
    async ({ ask }) => {
      const answer = await ask();
      assert.equal(finished(answer).message.text, "Hello");
      assert.equal(answer.waits.length, 1);
      assert.equal(finished(answer).usage.requests, 2);
    },
  );

  add(
    "a call cut off with its stream is not run",
    {
      scenario: {
        replies: [{ parts: [{ type: "call", name: "list_dir", args: '{"path":"src"}' }], ends: "cut" }],
      },
    },
    async ({ ask }) => assert.equal(failed(await ask()).failure.kind, "garbled"),
  );

  for (const [sentence, text] of [
    ["garbage in place of an event", "\u0000\u0001{]%%\n\n"],
    ["a web page in place of an event", "<html><body>It works!</body></html>\n\n"],
  ] as const)
    add(
      `${sentence} is a failure that says so`,
      { scenario: { replies: [{ parts: [HELLO, { type: "garbage", text }] }] } },
      async ({ ask }) => assert.equal(failed(await ask()).failure.kind, "garbled"),
    );

  add(
    "an error inside the stream is a failure in the server's words",
    { scenario: { replies: [{ parts: [HELLO, { type: "error", message: "the llama fell over" }] }] } },
    async ({ ask }) => {
      const { failure } = failed(await ask());
      assert.equal(failure.kind, "server");
      assert.match(failure.reason, /the llama fell over/);
    },
  );

  add(
    "an empty reply is requested once more with a different request",
    { scenario: { replies: [{ parts: [], usage: { prompt: 50, completion: 30 } }, GOOD] } },
    async ({ ask, opened }) => {
      const answer = await ask();
      assert.equal(finished(answer).message.text, "Hello");
      assert.equal(answer.waits.length, 1);
      assert.equal(finished(answer).notes.length, 1);
      const [first, second] = opened.asked();
      assert.notEqual(first?.body, second?.body);
    },
  );

  add(
    "a reply with only thinking is empty",
    { scenario: { replies: [{ parts: [{ type: "thinking", text: "Hm." }] }, GOOD] }, needs: "thinking" },
    async ({ ask }) => assert.equal(finished(await ask()).message.text, "Hello"),
  );

  add(
    "two empty replies are a failure, not an end",
    { scenario: { replies: [{ parts: [] }] } },
    async ({ ask, opened }) => {
      assert.equal(failed(await ask()).failure.kind, "empty");
      assert.equal(opened.asked().length, 2);
    },
  );

  add(
    "a model that does not accept tools gets them in its prompt from then on",
    {
      scenario: {
        replies: [
          { refuses: "no_tools" },
          {
            parts: [
              {
                type: "text",
                text: '<tool_call>\n{"name": "list_dir", "arguments": {"path": "src"}}\n</tool_call>',
              },
            ],
          },
        ],
      },
    },
    async ({ ask, opened }) => {
      const answer = await ask();
      assert.deepEqual(calls(answer), [{ name: "list_dir", args: { path: "src" } }]);
      assert.equal(finished(answer).notes.length, 1);
      await ask();
      const [native, ...others] = opened.asked();
      assert.deepEqual(native?.tools, ["list_dir", "read_file", "write_file"]);
      assert.deepEqual(
        others.map(({ tools }) => tools),
        [[], []],
      );
      for (const { body } of others) assert.match(body, /Lists a folder\./);
      assert.equal(others[0]?.body, others[1]?.body);
    },
  );
}
