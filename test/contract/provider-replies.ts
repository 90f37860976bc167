import assert from "node:assert/strict";
import { finished } from "./provider-ask.ts";
import { HISTORY, NO_UTF8 } from "./provider-server.ts";
import type { Add } from "./provider-suite.ts";

const MiB = 2 ** 20;

export function replyCases(add: Add): void {
  const text = { type: "text", text: "Hello, " } as const;
  const more = { type: "text", text: "wörld 🙂\n" } as const;

  add(
    "a text arrives in pieces and ends as the message, without surrounding blanks",
    { scenario: { replies: [{ parts: [text, more], usage: { prompt: 120, completion: 5 } }] } },
    async ({ ask }) => {
      const answer = await ask();
      const { message, malformed, usage, stop, notes } = finished(answer);
      assert.deepEqual(message, { role: "assistant", text: "Hello, wörld 🙂", calls: [] });
      assert.deepEqual([malformed, stop, notes], [[], "end", []]);
      assert.deepEqual([usage.requests, usage.prompt_tokens, usage.completion_tokens], [1, 120, 5]);
      assert.equal(usage.cost, null);
      assert.deepEqual(
        answer.events.flatMap((event) => (event.type === "text" ? [event.text] : [])),
        ["Hello,", " wörld 🙂"],
      );
    },
  );

  add(
    "a missing token count is unknown, not zero",
    { scenario: { replies: [{ parts: [text] }] } },
    async ({ ask }) => {
      const { requests, prompt_tokens, completion_tokens, cost } = finished(await ask()).usage;
      assert.deepEqual([requests, prompt_tokens, completion_tokens, cost], [1, null, null, null]);
    },
  );

  add(
    "thinking is kept separate from the text",
    { scenario: { replies: [{ parts: [{ type: "thinking", text: "Hm. " }, text] }] }, needs: "thinking" },
    async ({ ask }) => {
      const { message } = finished(await ask());
      assert.deepEqual(message, { role: "assistant", text: "Hello,", thinking: "Hm. ", calls: [] });
    },
  );

  add(
    "a reply that ended at the model's limit says so",
    { scenario: { replies: [{ parts: [text], stop: "length" }] } },
    async ({ ask }) => assert.equal(finished(await ask()).stop, "length"),
  );

  for (const slice of [1, 2, 3, 7])
    add(
      `pieces of ${slice} bytes, split inside characters, are joined correctly`,
      { scenario: { replies: [{ parts: [text, more], slice }] } },
      async ({ ask }) => assert.equal((await ask()).text, "Hello, wörld 🙂"),
    );

  add(
    "ten megabytes in one piece are a valid text",
    {
      scenario: { replies: [{ parts: [{ type: "text", text: "0123456789abcdef".repeat(10 * 2 ** 16) }] }] },
      limits: { firstMs: 10_000 },
    },
    async ({ ask }) => assert.equal(finished(await ask()).message.text.length, 10 * MiB),
  );

  add(
    "bytes that are not UTF-8 become a replacement character, and the rest is kept",
    { scenario: { replies: [{ parts: [{ type: "text", text: `a${NO_UTF8}b` }] }] } },
    async ({ ask }) => assert.equal((await ask()).text, "a\u{FFFD}b"),
  );

  add(
    "the whole history is sent in order, with every tool",
    { scenario: { replies: [{ parts: [text] }] } },
    async ({ ask, opened }) => {
      await ask();
      const [request] = opened.asked();
      assert.ok(request !== undefined);
      assert.deepEqual(request.tools, ["list_dir", "read_file", "write_file"]);
      const said = HISTORY.map(({ text }) => JSON.stringify(text).slice(1, -1));
      const places = said.map((words) => request.body.indexOf(words));
      assert.ok(!places.includes(-1), request.body);
      const conversation = places.slice(1);
      assert.deepEqual(
        conversation,
        conversation.toSorted((a, b) => a - b),
      );
    },
  );

  add(
    "the same request produces the same bytes",
    { scenario: { replies: [{ parts: [text] }] } },
    async ({ ask, opened }) => {
      await ask();
      await ask();
      const [first, second] = opened.asked();
      assert.equal(first?.body, second?.body);
    },
  );
}
