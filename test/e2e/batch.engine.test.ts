import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import test from "node:test";
import type { RowResult } from "../../src/render/batch-results.ts";
import { runProgram } from "../fixtures/cli.ts";
import { skip } from "../fixtures/engine.ts";
import { scratch } from "../fixtures/scratch.ts";
import { batchOf, folders, replies, rowsText } from "./batch.ts";
import { harness, startModel } from "./run-command.ts";

test(
  "each row is a run with patch, report and audit that leaves its folder unchanged, and a missing folder fails only its row",
  { skip },
  async () => {
    await using place = await folders("a");
    await place.write("b/notes.txt", "one\n");
    await using model = await startModel(replies);
    execFileSync("git", ["init", "-q", place.at("b")]);
    const identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"];
    execFileSync("git", ["-C", place.at("b"), "add", "-A"]);
    execFileSync("git", ["-C", place.at("b"), ...identity, "commit", "-qm", "begin"]);
    const change = "echo two >> notes.txt; mkdir -p sub; printf three > sub/new.txt";
    const tasks = await place.write(
      "tasks.jsonl",
      rowsText([
        { dir: place.at("a"), prompt: `Change the notes. do: ${change}` },
        { dir: place.at("gone"), prompt: "Change the notes. do: true" },
        { repo: place.at("b"), prompt: `Change the notes. do: ${change}` },
        { dir: place.at("a"), prompt: `Change the notes. do: ${change}` },
      ]),
    );
    const out = place.at("out");
    const words = ["batch", tasks, "--json", "--jobs", "2", "--out", out, "--html", place.at("rows.html")];
    const ran = await harness(place, [...words, ...model.flags]);
    assert.equal(ran.code, 1, ran.stderr);
    const { rows, whole } = batchOf(ran);
    assert.deepEqual(
      rows
        .toSorted((a, b) => a.row - b.row)
        .map(({ row, status, exit_code, cause }) => [row, status, exit_code, cause]),
      [
        [1, "done", 0, null],
        [2, "failed", 2, "dir"],
        [3, "done", 0, null],
        [4, "done", 0, null],
      ],
    );
    assert.deepEqual(
      { ...whole, usage: whole.usage.prompt_tokens },
      {
        type: "batch.finished",
        rows: 4,
        done: 3,
        failed: 1,
        not_started: 0,
        by_cause: { dir: 1 },
        usage: 600,
        exit_code: 1,
      },
    );
    assert.equal(await readFile(place.at("a/notes.txt"), "utf8"), "one\n");
    assert.equal(await readFile(place.at("b/notes.txt"), "utf8"), "one\n");
    for (const { row, id, changes } of rows.filter(({ cause }) => cause === null)) {
      assert.deepEqual([changes?.added, changes?.modified], [["sub/new.txt"], ["notes.txt"]]);
      const patch = `${out}/${row}-${id}.patch`;
      execFileSync("git", ["-C", place.at("b"), "apply", "--check", patch]);
      assert.match(await readFile(`${out}/${row}-${id}.html`, "utf8"), /Change the notes/);
      assert.match(await readFile(`${out}/${row}-${id}.audit.jsonl`, "utf8"), /notes\.txt/);
    }
    const kept = (await readdir(out)).filter((name) => /^\d/.test(name));
    assert.equal(kept.length, 9, kept.join(" "));
    assert.match(await readFile(place.at("rows.html"), "utf8"), /harness batch/);
    // Nothing of the clone is left.
    assert.deepEqual(await readdir(place.at(".cache/harness-clones/vet/boxes")), []);
  },
);

interface Span {
  readonly dir: string | undefined;
  readonly from: number;
  readonly to: number;
}

/** Both were at work at a time. */
const clash = (one: Span, other: Span): boolean => one.from < other.to && other.from < one.to;

/** When each run was at work, as its audit has it. */
const spansOf = (out: string, rows: readonly RowResult[]): Promise<readonly Span[]> =>
  Promise.all(
    rows.map(async ({ row, id, dir }) => {
      const lines = (await readFile(`${out}/${row}-${id}.audit.jsonl`, "utf8")).trimEnd().split("\n");
      const times = lines.map((line) => Date.parse((JSON.parse(line) as { readonly ts: string }).ts));
      return { dir, from: Math.min(...times), to: Math.max(...times) };
    }),
  );

for (const jobs of [1, 2, 4])
  test(
    `--jobs ${jobs}: rows of one folder run one after the other, others ${jobs > 1 ? "side by side" : "too"}`,
    { skip },
    async () => {
      await using place = await folders("a", "b");
      await using model = await startModel(replies);
      const tasks = await place.write(
        "tasks.jsonl",
        rowsText(["a", "a", "b"].map((name) => ({ dir: place.at(name), prompt: "Wait. do: sleep 1" }))),
      );
      const words = ["batch", tasks, "--json", "--jobs", String(jobs), "--out", place.at("out")];
      const ran = await harness(place, [...words, ...model.flags]);
      assert.equal(ran.code, 0, ran.stderr);
      const spans = await spansOf(place.at("out"), batchOf(ran).rows);
      const [first, second] = spans.filter(({ dir }) => dir === place.at("a"));
      assert.ok(first !== undefined && second !== undefined && !clash(first, second));
      const beside = spans.some((one) => spans.some((other) => one !== other && clash(one, other)));
      assert.equal(beside, jobs > 1);
    },
  );

test("no row starts before all are read, and a batch that is refused leaves nothing", { skip }, async () => {
  await using place = await folders("a");
  const good = { dir: place.at("a"), prompt: "do: touch made" };
  const tasks = await place.write("tasks.jsonl", rowsText([good, { ...good, promt: "x" }]));
  const ran = await harness(place, ["batch", tasks, "--out", place.at("out"), "--provider", "scripted"]);
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /tasks\.jsonl, line 2: unknown key "promt"; did you mean prompt\?/);
  await assert.rejects(readdir(place.at("out")), { code: "ENOENT" });
  assert.deepEqual(await readdir(place.at("a")), ["notes.txt"]);
  const rows = await place.write("good.jsonl", rowsText([good]));
  const html = ["--html", place.at("no-folder/rows.html")];
  const paged = await harness(place, ["batch", rows, "--out", place.at("out"), ...html]);
  assert.equal(paged.code, 2);
  assert.match(paged.stderr, /rows\.html: cannot be written/);
  await assert.rejects(readdir(place.at("out")), { code: "ENOENT" });
});

test("a list of repositories may come from a pipe, and becomes the rows", { skip }, async () => {
  await using place = await folders("a");
  const words = ["batch", "--repos", "-", "--prompt", "Look.", "--json", "--out", place.at("out")];
  const input = `# those that are gone\n${place.at("none")}\r\n\n${place.at("a")}\n`;
  const ran = await harness(place, [...words, "--provider", "scripted", "--model", "m"], { input });
  const { rows, whole } = batchOf(ran);
  assert.deepEqual([ran.code, whole.rows, whole.by_cause], [1, 2, { repo: 2 }], ran.stderr);
  assert.match(rows.find(({ row }) => row === 1)?.reason ?? "", /there is no such file or folder/);
  assert.match(rows.find(({ row }) => row === 2)?.reason ?? "", /is not a git repository/);
  const neither = await harness(place, ["batch"], { input });
  assert.equal(neither.code, 2);
  assert.match(neither.stderr, /no rows were given/);
});

test("piped rows that are not UTF-8 are refused, as they are in a file", async () => {
  await using place = await scratch({ "a/x": "" });
  const input = Buffer.from(`{"dir": "a", "prompt": "caf\u00e9"}\n`, "latin1");
  const ran = await runProgram("bin/harness", ["batch", "-"], { home: place.path, cwd: place.path, input });
  assert.deepEqual([ran.code, ran.stdout], [2, ""]);
  assert.match(ran.stderr, /the list of rows from the pipe is not UTF-8/);
});
