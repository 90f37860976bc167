import assert from "node:assert/strict";
import test from "node:test";
import {
  ARTIFACT_REQUEST,
  ARTIFACT_SCHEMA,
  mergeArtifacts,
  readArtifact,
  renderArtifact,
} from "../../src/agent/compaction.ts";

const whole = {
  goal: "make the parser accept tabs",
  constraints: ["no new packages"],
  decisions: ["tabs count as one column"],
  open: ["docs are not updated"],
  files: ["src/parse.ts: the lexer"],
  done: ["added a failing test"],
};
const json = JSON.stringify(whole);
const rendered = `Goal: make the parser accept tabs
Constraints:
- no new packages
Decisions:
- tabs count as one column
Open:
- docs are not updated
Files:
- src/parse.ts: the lexer
Done:
- added a failing test`;

const read = (reply: string): string => {
  const artifact = readArtifact(reply);
  return artifact === undefined ? "nothing" : renderArtifact(artifact);
};

for (const [name, reply] of [
  ["plain JSON", json],
  ["JSON in a fence", `\`\`\`json\n${JSON.stringify(whole, null, 2)}\n\`\`\``],
  ["JSON with prose around", `Here is what I need {so far}:\n${json}\nThat is all.`],
  ["JSON behind thoughts", `<think>{"goal": "no"}</think>${json}`],
  [
    "entries as objects",
    json.replace('"src/parse.ts: the lexer"', '{"path":"src/parse.ts","why":"the lexer"}'),
  ],
  ["a list as one text", json.replace('["no new packages"]', '"- no new packages"')],
] as const)
  test(`an artifact is read from ${name}`, () => assert.equal(read(reply), rendered));

for (const [name, reply] of [
  ["nothing", ""],
  ["spaces", " \n\t"],
  ["an empty object", "{}"],
  ["an object without any of it", '{"name": "x", "arguments": {}}'],
  ["empty lists", '{"goal": "", "open": []}'],
  ["thoughts only", "<think>hm</think>"],
] as const)
  test(`${name} is no artifact`, () => assert.equal(read(reply), "nothing"));

test("prose is taken as it is, also with other JSON in it, or where its JSON was cut", () => {
  for (const prose of ["We fixed it.", 'The call {"name": "x"} failed.', '{"goal": "fix it", "open": ["do'])
    assert.equal(read(prose), prose);
});

test("a long goal on several lines is one line", () => {
  assert.equal(read(JSON.stringify({ goal: `fix\n${"g".repeat(500)}` })), `Goal: fix ${"g".repeat(500)}`);
});

test("what comes is bounded, in its lists, its lines and as a whole", () => {
  const long = Array.from({ length: 20 }, (_, n) => `${n} ${"word ".repeat(200)}`);
  const text = read(
    JSON.stringify({ ...whole, goal: "g".repeat(5000), constraints: long, open: long, files: long }),
  );
  assert.ok(text.length <= 9001, `${text.length}`);
  assert.equal(text.match(/^Open:\n(?:- .*\n)*/m)?.[0].split("\n- ").length, 9);
  assert.ok(text.split("\n").every((line) => line.length < 620));
  assert.ok(read("p".repeat(200_000)).length < 3002);
});

const merged = (earlier: string, reply: string): string => {
  const now = readArtifact(reply);
  assert.ok(now !== undefined);
  return renderArtifact(mergeArtifacts(earlier, now));
};

test("what a new artifact leaves out of the one before it is kept", () => {
  assert.equal(
    merged(rendered, '{"decisions": ["errors are values"]}'),
    rendered.replace("- tabs", "- errors are values\n- tabs"),
  );
  assert.equal(merged(rendered, json), rendered);
  assert.equal(merged("", json), rendered);
});

test("an open point goes when something done says that it is settled", () => {
  const text = merged(rendered, '{"goal": "g", "done": ["the docs are updated now, and checked"]}');
  assert.doesNotMatch(text, /Open:/);
});

test("prose keeps the decisions and open points that were there", () => {
  const text = merged(rendered, "The lexer works. Tabs count as one column.");
  assert.match(text, /^The lexer works\. Tabs count as one column\.\nGoal: make the parser/);
  assert.match(text, /Open:\n- docs are not updated/);
  assert.doesNotMatch(text, /Decisions:/);
});

test("decisions survive ten compactions that never repeat them", () => {
  const names = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet"];
  let text = "";
  for (const name of names)
    text = merged(text, JSON.stringify({ goal: name, decisions: [`we chose ${name}`] }));
  for (const name of names) assert.match(text, new RegExp(`- we chose ${name}\\b`));
});

test("what is asked for is short, and its schema has every part of it", () => {
  assert.ok(Buffer.byteLength(ARTIFACT_REQUEST) < 1000);
  assert.match(ARTIFACT_REQUEST, /JSON only, call no tool/);
  const { properties, required } = ARTIFACT_SCHEMA;
  assert.deepEqual(required, Object.keys(whole));
  assert.deepEqual(properties, {
    goal: { type: "string" },
    constraints: { type: "array", items: { type: "string" }, maxItems: 12 },
    decisions: { type: "array", items: { type: "string" }, maxItems: 16 },
    open: { type: "array", items: { type: "string" }, maxItems: 8 },
    files: { type: "array", items: { type: "string" }, maxItems: 12 },
    done: { type: "array", items: { type: "string" }, maxItems: 12 },
  });
});
