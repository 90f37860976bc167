import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { type BatchRow, readRows, rowsFile, rowsOfList } from "../../../src/app/batch/batch-rows.ts";
import { EXIT, HarnessError } from "../../../src/core/errors.ts";
import { scratch } from "../../fixtures/scratch.ts";

const rowsIn = (text: string, check?: string): readonly BatchRow[] =>
  readRows(text, "tasks.jsonl", { check });

const idsOf = (text: string, check?: string): readonly string[] => rowsIn(text, check).map(({ id }) => id);

/** The message to a person. */
function refusalOf(work: () => unknown): HarnessError {
  try {
    work();
  } catch (thrown) {
    assert.ok(thrown instanceof HarnessError);
    assert.equal(thrown.exit, EXIT.usage);
    return thrown;
  }
  return assert.fail("it was taken");
}

test("rows are read with all their fields, whatever the line ends and with or without a byte order mark", () => {
  const whole = {
    dir: "shop",
    prompt: "mend it",
    check: "make test",
    limits: { max_turns: 5, max_time: "10m", max_tokens: 1000, max_cost: 0.5, max_tool_calls: 9 },
    mode: "read-only",
    env: "none",
  };
  const text = `\uFEFF${JSON.stringify(whole)}\r\n\r\n{"repo":"https://example.org/a/b#v1","prompt":"look"}`;
  const rows = rowsIn(text);
  assert.deepEqual(
    rows.map((row) => ({ ...row, id: "" })),
    [
      {
        row: 1,
        id: "",
        kind: "dir",
        target: "shop",
        prompt: "mend it",
        limits: whole.limits,
        check: "make test",
        mode: "read-only",
        env: "none",
      },
      { row: 2, id: "", kind: "repo", target: "https://example.org/a/b#v1", prompt: "look", limits: {} },
    ],
  );
  for (const { id } of rows) assert.match(id, /^[0-9a-f]{16}$/);
});

for (const [line, told] of [
  [
    '{"dir":"a","promt":"x"}',
    /line 2: prompt: expected a task, as a string; unknown key "promt"; did you mean prompt\?$/,
  ],
  [
    '{"dir":"a","prompt":"x","limits":{"max_turns":"3"}}',
    /limits\.max_turns: expected a whole number of at least 1$/,
  ],
  ['{"dir":"a","prompt":"x","limits":{"max_cost":"3"}}', /limits\.max_cost: expected a cost greater than 0$/],
  ['{"dir":"a","prompt":"x","limits":3}', /limits: expected an object with the keys max_turns, /],
  ['{"dir":3,"prompt":"x"}', /dir: expected a string that is not empty$/],
  [
    '{"dir":"a","prompt":"x","limits":{"max_turn":3}}',
    /unknown key "limits\.max_turn"; did you mean max_turns/,
  ],
  ['{"dir":"a","prompt":"x","limits":{"max_time":"soon"}}', /limits\.max_time: expected a duration/],
  ['{"dir":"a","prompt":"x","mode":"all"}', /mode: expected one of read-only, /],
  ['{"dir":"a","prompt":"  "}', /prompt: expected a task/],
  ['{"prompt":"x"}', /expected one of "dir" and "repo"/],
  ['{"dir":"a","repo":"b","prompt":"x"}', /expected one of "dir" and "repo"/],
  ['{"dir":"a\\u0000b","prompt":"x"}', /dir: expected a string/],
  ['["a"]', /line 2: expected an object$/],
  ['{"dir":', /line 2: not valid JSON/],
  ['{"dir":"a","prompt":"x","prompt":"y"}', /line 2: the key "prompt" appears twice$/],
  [
    '{"dir":"a","prompt":"x","limits":{"max_turns":3,"max\\u005fturns":4}}',
    /the key "max_turns" appears twice$/,
  ],
] as const)
  test(`${line} is not a row, and the message says what is wrong`, () => {
    const { message, remedy } = refusalOf(() => rowsIn(`{"dir":"a","prompt":"x"}\n${line}\n`));
    assert.match(message, told);
    assert.match(message, /^tasks\.jsonl, line 2: /);
    assert.match(remedy, /nothing was started.*prompt/);
  });

test("of many invalid lines the first are listed and the rest counted", () => {
  const { message } = refusalOf(() => rowsIn("{}\n".repeat(25)));
  assert.equal(message.split("\n").length, 11);
  assert.match(message, /and 15 more lines$/);
});

test("a file without rows is refused, and so is a list without entries", () => {
  for (const text of ["", "\n\r\n", "\uFEFF"]) {
    assert.match(refusalOf(() => rowsIn(text)).message, /has no rows/);
    assert.match(
      refusalOf(() => rowsOfList(text, "list", { prompt: "p", check: undefined })).message,
      /has no rows/,
    );
  }
});

test("a list yields a row for each line that is not a comment", () => {
  const rows = rowsOfList("# mine\na\r\n\n https://example.org/b#main \n", "list", {
    prompt: "p",
    check: "true",
  });
  assert.deepEqual(
    rows.map(({ row, kind, target, prompt, check }) => [row, kind, target, prompt, check]),
    [
      [1, "repo", "a", "p", "true"],
      [2, "repo", "https://example.org/b#main", "p", "true"],
    ],
  );
});

test("rows are identified by their content: a duplicate and a changed row get new ids, a moved one keeps its id", () => {
  const one = '{"dir":"a","prompt":"x"}';
  const [first = "", second = ""] = idsOf(`${one}\n${one}\n`);
  assert.notEqual(first, second);
  assert.deepEqual(
    idsOf(`{"prompt":"y","dir":"a"}\n{"prompt":"x","dir":"${path.resolve("a")}"}\n${one}`).slice(1),
    [first, second],
  );
  const others = [
    '{"dir":"a","prompt":"x","check":"true"}',
    '{"dir":"a","prompt":"x","mode":"read-only"}',
    '{"dir":"a","prompt":"x","limits":{"max_turns":2}}',
    '{"repo":"a","prompt":"x"}',
    '{"dir":"b","prompt":"x"}',
  ].flatMap((line) => idsOf(line));
  assert.equal(new Set([first, second, ...others]).size, 7);
  assert.notDeepEqual(idsOf(one, "make test"), [first]);
  assert.deepEqual(idsOf('{"dir":"a","prompt":"x","limits":{"max_turns":1,"max_tokens":2}}'), [
    ...idsOf('{"dir":"a","prompt":"x","limits":{"max_tokens":2,"max_turns":1}}'),
  ]);
});

test("a missing file, a folder and a file that is not UTF-8 are named with the reason", async () => {
  await using place = await scratch({ folder: "", "rows.jsonl": '{"dir":"a","prompt":"ä"}\n' });
  assert.equal(rowsIn(await rowsFile(place.at("rows.jsonl")))[0]?.prompt, "ä");
  await assert.rejects(rowsFile(place.at("none")), /none cannot be read: ENOENT/);
  await assert.rejects(rowsFile(place.path), /cannot be read: it is not a file/);
  const { writeFile } = await import("node:fs/promises");
  await writeFile(place.at("odd"), Buffer.from([0x7b, 0xff, 0x7d]));
  await assert.rejects(rowsFile(place.at("odd")), /it is not UTF-8/);
});

test("ten thousand rows are read, each with a unique id", () => {
  const text = Array.from(
    { length: 10_000 },
    (_, at) => `{"dir":"d${at % 7}","prompt":"task ${at % 90}"}\n`,
  ).join("");
  const rows = rowsIn(text);
  assert.equal(new Set(rows.map(({ id }) => id)).size, 10_000);
  assert.equal(rows.at(-1)?.row, 10_000);
});
