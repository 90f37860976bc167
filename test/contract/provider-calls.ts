import assert from "node:assert/strict";
import { calls, finished } from "./provider-ask.ts";
import type { Part } from "./provider-server.ts";
import type { Add } from "./provider-suite.ts";

const call = (name: string, args: string, id?: string): Part =>
  id === undefined ? { type: "call", name, args } : { type: "call", name, args, id };

const LOOK = call("list_dir", '{"path":"src"}');
const HARD = { path: 'sr"c/ö🙂.ts', content: '}{ ]["\\\n</tool_call>\u0001\t"' };

export function callCases(add: Add): void {
  goodCalls(add);
  badCalls(add);
}

function goodCalls(add: Add): void {
  add(
    "a single call is returned with an id",
    { scenario: { replies: [{ parts: [LOOK] }] } },
    async ({ ask }) => {
      const { message, stop, malformed } = finished(await ask());
      const [made] = message.calls;
      assert.ok(made !== undefined && made.id !== "");
      assert.deepEqual(message, {
        role: "assistant",
        text: "",
        calls: [{ id: made.id, name: "list_dir", args: { path: "src" } }],
      });
      assert.deepEqual([stop, malformed], ["calls", []]);
    },
  );

  add(
    "a text before calls is kept, and the calls keep their order",
    {
      scenario: {
        replies: [{ parts: [{ type: "text", text: "I look." }, LOOK, call("read_file", '{"path":"a"}')] }],
      },
    },
    async ({ ask }) => {
      const answer = await ask();
      assert.equal(answer.text, "I look.");
      assert.deepEqual(calls(answer), [
        { name: "list_dir", args: { path: "src" } },
        { name: "read_file", args: { path: "a" } },
      ]);
    },
  );

  for (const slice of [1, 2, 3, 7])
    add(
      `a call in pieces of ${slice}, split inside characters and JSON, is assembled`,
      { scenario: { replies: [{ parts: [call("write_file", JSON.stringify(HARD))], slice }] } },
      async ({ ask }) => assert.deepEqual(calls(await ask()), [{ name: "write_file", args: HARD }]),
    );

  add(
    "duplicate ids are made unique",
    {
      scenario: {
        replies: [{ parts: [call("list_dir", '{"path":"a"}', "x"), call("list_dir", '{"path":"b"}', "x")] }],
      },
      needs: "ids",
    },
    async ({ ask }) => {
      const [first, second] = finished(await ask()).message.calls;
      assert.equal(first?.id, "x");
      assert.match(second?.id ?? "", /^[0-9A-Za-z]{9}$/);
    },
  );

  add(
    "the same call twice in one reply is one call",
    { scenario: { replies: [{ parts: [LOOK, LOOK] }] } },
    async ({ ask }) => assert.deepEqual(calls(await ask()), [{ name: "list_dir", args: { path: "src" } }]),
  );

  add(
    "a tool name in another spelling is recognised",
    { scenario: { replies: [{ parts: [call("functions.ListDir:0", '{"path":"src"}')] }] } },
    async ({ ask }) => assert.deepEqual(calls(await ask()), [{ name: "list_dir", args: { path: "src" } }]),
  );

  add(
    "a call written as text counts as a call",
    {
      scenario: {
        replies: [
          {
            parts: [
              {
                type: "text",
                text: 'I look.\n<tool_call>\n{"name": "list_dir", "arguments": {"path": "src"}}\n</tool_call>',
              },
            ],
          },
        ],
      },
    },
    async ({ ask }) => {
      const answer = await ask();
      assert.deepEqual(calls(answer), [{ name: "list_dir", args: { path: "src" } }]);
      assert.equal(answer.text.trim(), "I look.");
      assert.equal(finished(answer).stop, "calls");
    },
  );
}

function badCalls(add: Add): void {
  const malformed = (sentence: string, part: Part, reason: RegExp, needs?: "argument text"): void =>
    add(
      sentence,
      { scenario: { replies: [{ parts: [LOOK, part] }] }, ...(needs === undefined ? {} : { needs }) },
      async ({ ask }) => {
        const answer = await ask();
        const { malformed } = finished(answer);
        assert.deepEqual(calls(answer), [{ name: "list_dir", args: { path: "src" } }]);
        assert.equal(malformed.length, 1);
        assert.match(malformed[0]?.reason ?? "", reason);
        assert.notEqual(malformed[0]?.id, "");
      },
    );

  malformed("a list is not an object of arguments", call("read_file", '["a"]'), /object/);
  malformed("a number is not an object of arguments", call("read_file", "7"), /object/);
  malformed("a tool that was not offered is not called", call("launch", "{}"), /launch/);
  malformed(
    "a duplicate key is ambiguous",
    call("read_file", '{"path":"a","path":"b"}'),
    /path/,
    "argument text",
  );
  malformed(
    "truncated arguments are not run",
    call("write_file", '{"path":"a","content":"half of'),
    /cut/,
    "argument text",
  );
  malformed(
    "arguments that are not JSON are not run",
    call("write_file", "{path: 'a'}"),
    /JSON/,
    "argument text",
  );
}
