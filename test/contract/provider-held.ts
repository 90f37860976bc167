import assert from "node:assert/strict";
import type { Message } from "../../src/core/model-provider.ts";
import { calls, finished } from "./provider-ask.ts";
import { HISTORY, type Reply } from "./provider-server.ts";
import type { Add } from "./provider-suite.ts";

/** Replies constrained by a schema of calls and an answer. */

const says = (text: string): Reply => ({ parts: [{ type: "text", text }], slice: 7 });
const CALL = says('{"tool": "list_dir", "arguments": {"path": "src"}}');
const LISTED = [{ name: "list_dir", args: { path: "src" } }];
/** Split within the key, an escape, and a surrogate pair. */
const ANSWER = [
  '{"ans',
  'wer": "One \\',
  '"two\\"\\n\\u00',
  "e9\\ud83d",
  "\\ude00 three, and",
  ' then four."}',
];
const NOW = { hold: { now: true } };

const hasSchema = (body: string): boolean => /"const":"write_file"/.test(body) && /"answer":/.test(body);
/** The text that precedes the requested form. */
const HEAD = "Last question: and now?";
const prefixOf = (body: string): string => body.slice(body.indexOf('"messages"'), body.indexOf(HEAD));

export function heldCases(add: Add): void {
  add(
    "a request that may be constrained is the same as any other while the model calls well",
    { scenario: { replies: [says("Good.")] } },
    async ({ ask, opened }) => {
      await ask();
      await ask({ hold: { paths: ["a.ts"] } });
      const [without, held] = opened.asked();
      assert.equal(held?.body.replace(/,?"hold":\{[^}]*\}/, ""), without?.body);
    },
  );

  add(
    "a constrained request carries the schema where the API has one, and never changes what was sent before",
    { scenario: { replies: [says("Good.")] } },
    async ({ ask, opened }) => {
      await ask();
      await ask(NOW);
      const [without, held] = opened.asked();
      assert.ok(without !== undefined && held !== undefined);
      assert.equal(hasSchema(held.body), opened.wire.holds !== undefined);
      assert.deepEqual(held.tools, without.tools);
      assert.equal(prefixOf(held.body), prefixOf(without.body));
      assert.ok(prefixOf(held.body).length > 100);
    },
  );

  add(
    "a constrained call is returned as a call, and its text is not shown",
    { scenario: { replies: [CALL] }, needs: "hold" },
    async ({ ask }) => {
      const answer = await ask(NOW);
      assert.deepEqual(calls(answer), LISTED);
      assert.deepEqual([answer.text, finished(answer).stop], ["", "calls"]);
    },
  );

  add(
    "a constrained answer is streamed without its JSON",
    { scenario: { replies: [{ parts: ANSWER.map((text) => ({ type: "text", text })) }] }, needs: "hold" },
    async ({ ask }) => {
      const answer = await ask(NOW);
      assert.equal(finished(answer).message.text, 'One "two"\né😀 three, and then four.');
      assert.ok(answer.events.filter(({ type }) => type === "text").length > 1, "in pieces");
      assert.deepEqual(calls(answer), []);
    },
  );

  add(
    "a constrained reply that is not such an object is parsed like any other",
    {
      scenario: {
        replies: [says(`I look.\n<tool_call>{"name": "list_dir", "arguments": {"path": "src"}}</tool_call>`)],
      },
      needs: "hold",
    },
    async ({ ask }) => {
      const answer = await ask(NOW);
      assert.deepEqual([calls(answer), answer.text], [LISTED, "I look."]);
    },
  );

  add(
    "a truncated constrained call is malformed",
    {
      scenario: { replies: [{ ...says('{"tool": "list_dir", "arguments": {"path": "sr'), stop: "length" }] },
      needs: "hold",
    },
    async ({ ask }) => {
      const { malformed, message } = finished(await ask(NOW));
      assert.deepEqual([message.calls, malformed.map(({ name }) => name)], [[], ["list_dir"]]);
    },
  );

  add(
    "excluded tools are left out of the schema, and known paths may be chosen from",
    { scenario: { replies: [CALL] }, needs: "hold" },
    async ({ ask, opened }) => {
      await ask({ hold: { now: true, without: ["list_dir"], paths: ["a.ts", "ö.ts"] } });
      const [asked] = opened.asked();
      assert.doesNotMatch(asked?.body ?? "", /"const":"list_dir"/);
      const enums = [...(asked?.body ?? "").matchAll(/"enum":(\["a\.ts","ö\.ts"\])/g)];
      assert.equal(enums.length, 1, "of read_file, not of write_file");
      assert.deepEqual(asked?.tools, ["list_dir", "read_file", "write_file"]);
    },
  );

  add(
    "a server that refuses a schema is asked again without one, and never again with one",
    { scenario: { replies: [{ refuses: "no_schema" }, says("Good.")] }, needs: "hold" },
    async ({ ask, opened }) => {
      const answer = await ask(NOW);
      assert.equal(answer.text, "Good.");
      await ask(NOW);
      await ask();
      const [first, second, third, plain] = opened.asked().map(({ body }) => body);
      assert.deepEqual(
        [first, second, third].map((body) => hasSchema(body ?? "")),
        [true, false, false],
      );
      assert.equal(second?.replace(/,?"hold":\{[^}]*\}/, ""), plain);
      assert.equal(third, second);
    },
  );

  add(
    "after two replies in a row without a valid call, replies are constrained, with a notice",
    {
      scenario: {
        replies: [says('{"name": "fix_all", "arguments": {}}'), says("<tool_call>{"), CALL],
      },
      needs: "hold",
    },
    async ({ ask, opened }) => {
      const hold = { hold: {} };
      const first = finished(await ask(hold));
      assert.deepEqual(
        first.malformed.map(({ name, missed }) => [name, missed]),
        [["fix_all", "not_offered"]],
      );
      assert.equal(finished(await ask(hold)).notes.length, 1);
      assert.deepEqual(calls(await ask(hold)), LISTED);
      const again: readonly Message[] = [...HISTORY, { role: "assistant", text: "So.", calls: [] }];
      await ask({ ...hold, messages: again });
      await ask();
      assert.deepEqual(
        opened.asked().map(({ body }) => hasSchema(body)),
        [false, false, true, true, false],
      );
    },
  );

  add(
    "an empty reply is requested once more, constrained",
    { scenario: { replies: [{ parts: [] }, CALL] }, needs: "hold" },
    async ({ ask, opened }) => {
      const answer = await ask({ hold: {} });
      assert.deepEqual(calls(answer), LISTED);
      assert.deepEqual(
        opened.asked().map(({ body }) => hasSchema(body)),
        [false, true],
      );
    },
  );

  add(
    "a request with its own format is not constrained to calls",
    { scenario: { replies: [says("{}")] }, needs: "hold" },
    async ({ ask, opened }) => {
      await ask({ ...NOW, format: { type: "object" } });
      assert.equal(hasSchema(opened.asked()[0]?.body ?? ""), false);
    },
  );
}
