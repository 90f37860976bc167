import assert from "node:assert/strict";
import test from "node:test";
import { bound, MAX_BYTES } from "../../src/agent/call-result.ts";
import { showFullTool } from "../../src/tools/show-full.ts";
import { visible } from "../../src/core/visible.ts";
import { memoryOutputs } from "../fakes/tool-context.ts";
import { called } from "../fixtures/call.ts";
import { fc } from "../fixtures/property.ts";

const MARKER = /\[… ([\d,]+) of ([\d,]+) characters left out; show_full (\{.*?\}) goes on from here …\]\n/;

const number = (text = ""): number => Number(text.replaceAll(",", ""));

/** All pages joined, as a model would ask for them. */
async function paged(outputs: ReturnType<typeof memoryOutputs>, id: string, from: number): Promise<string> {
  const tool = showFullTool({ outputs });
  const pages: string[] = [];
  for (let offset = from, more = true; more;) {
    const { kind, text } = await called(tool, { id, offset });
    assert.equal(kind, "ok");
    assert.ok(Buffer.byteLength(text) <= MAX_BYTES);
    const [, body = "", next] =
      /^([^]*)\n\[characters [^\n]*; (?:next: (.*)|this is the end)\]$/.exec(text) ?? [];
    pages.push(body);
    more = next !== undefined;
    if (next !== undefined) ({ offset } = JSON.parse(next) as { offset: number });
  }
  return pages.join("");
}

test("a short result goes to the model as it is, and is not kept", () => {
  const outputs = memoryOutputs();
  assert.deepEqual(bound("all\nof it\n", outputs), { text: "all\nof it\n" });
  assert.deepEqual(bound("é".repeat(MAX_BYTES / 2), outputs), { text: "é".repeat(MAX_BYTES / 2) });
  assert.deepEqual(outputs.kept, []);
});

test("of a long result the model gets whole lines of its head and tail, and where to read on", () => {
  const outputs = memoryOutputs();
  const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index}`);
  const { text, full } = bound(lines.join("\n"), outputs);
  assert.equal(full, "o1");
  const [, left, total, next] = MARKER.exec(text) ?? [];
  const [head = "", tail = ""] = text.split(new RegExp(MARKER.source.replaceAll(/\(([^?])/g, "(?:$1")));
  assert.equal(number(total), lines.join("\n").length);
  assert.equal(number(left), number(total) - head.length - tail.length);
  assert.deepEqual(JSON.parse(next ?? ""), { id: "o1", offset: head.length });
  assert.match(head, /^line 0\n[^]*line \d+\n$/);
  assert.match(tail, /^line \d+\n[^]*line 19999$/);
  assert.ok(head.length > 1.8 * tail.length && head.length < 2.2 * tail.length);
});

test("one line of 600 KB is cut, and pages show it whole", async () => {
  const outputs = memoryOutputs();
  const line = "minified;é😀".repeat(50_000);
  const { text, full = "" } = bound(line, outputs);
  assert.ok(Buffer.byteLength(text) <= MAX_BYTES);
  assert.equal(await paged(outputs, full, 0), line);
});

test("controls are shown in what is sent and in what is kept, CRLF is a line end", () => {
  const outputs = memoryOutputs();
  assert.equal(bound("\u001B[2J\r\nx\u202E", outputs).text, "␛[2J\nx<U+202E>");
  bound("\u001B[2J\r\n".repeat(10_000), outputs);
  assert.deepEqual(outputs.kept, ["␛[2J\n".repeat(10_000)]);
});

test("any text is at most 30,000 bytes of valid UTF-8, and head and pages give it back", async () => {
  const unit = fc.constantFrom(
    "a",
    "\n",
    "é",
    "日",
    "😀",
    "\u001B",
    "\r",
    "\uD800",
    "\uDC00",
    "\u200B",
    "-----\n",
  );
  const runs = fc.array(fc.tuple(fc.array(unit, { maxLength: 30 }), fc.nat(3000)), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(runs, async (parts) => {
      const given = parts.map(([units, times]) => units.join("").repeat(times)).join("");
      const outputs = memoryOutputs();
      const { text, full } = bound(given, outputs);
      assert.ok(Buffer.byteLength(text) <= MAX_BYTES);
      assert.ok(text.isWellFormed());
      const whole = visible(given.toWellFormed());
      if (full === undefined) return assert.equal(text, whole);
      const head = text.slice(0, text.search(MARKER)).replace(/\n$/, "");
      const { offset } = JSON.parse(MARKER.exec(text)?.[3] ?? "") as { offset: number };
      assert.ok(whole.startsWith(head));
      assert.equal(whole.slice(0, offset) + (await paged(outputs, full, offset)), whole);
      assert.ok(whole.endsWith(text.slice(text.search(MARKER)).replace(MARKER, "")));
    }),
    { numRuns: 60 },
  );
});
