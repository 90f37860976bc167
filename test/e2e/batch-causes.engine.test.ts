// also slow: whole batches for each cause
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { batchOf, folders, replies, rowsText } from "./batch.ts";
import { harness, startModel } from "./run-command.ts";
import { slowTest } from "../fixtures/slow-test.ts";

test(
  "the end of a row is reported with its cause, and permanent ones are not retried",
  { skip },
  async () => {
    await using place = await folders("a", "b", "c", "d");
    await using model = await startModel(replies);
    const tasks = await place.write(
      "tasks.jsonl",
      rowsText([
        { dir: place.at("a"), prompt: "Change the notes. do: cat ~/.ssh/id_rsa" },
        { dir: place.at("b"), prompt: "Change the notes. do: echo x >> notes.txt", check: "false" },
        { dir: place.at("c"), prompt: "Change the notes. do: echo x >> notes.txt", limits: { max_turns: 1 } },
        {
          dir: place.at("d"),
          prompt: "Change the notes. do: echo x >> notes.txt",
          check: "grep x notes.txt",
        },
        { dir: place.at("d/notes.txt"), prompt: "Change the notes. do: true" },
        { repo: place.at("d"), prompt: "Change the notes. do: true" },
        { repo: "https://127.0.0.1:9/owner/name", prompt: "Change the notes. do: true" },
      ]),
    );
    const words = ["batch", tasks, "--json", "--jobs", "2", "--out", place.at("out"), "--retries", "3"];
    const ran = await harness(place, [...words, ...model.flags]);
    assert.equal(ran.code, 1, ran.stderr);
    const { rows, whole } = batchOf(ran);
    assert.deepEqual(
      rows
        .toSorted((a, b) => a.row - b.row)
        .map(({ row, status, exit_code, cause, attempts }) => [row, status, exit_code, cause, attempts]),
      [
        [1, "refused", 4, "refused", 0],
        [2, "failed", 1, "check", 0],
        [3, "budget", 3, "budget", 0],
        [4, "done", 0, null, 0],
        [5, "failed", 2, "dir", 0],
        [6, "failed", 2, "repo", 0],
        [7, "failed", 2, "repo", 0],
      ],
      JSON.stringify(rows, null, 1),
    );
    assert.deepEqual(whole.by_cause, { check: 1, budget: 1, refused: 1, dir: 1, repo: 2 });
    assert.deepEqual(rows.find(({ row }) => row === 4)?.verified?.exit_code, 0);
  },
);

test(
  "an output folder inside a folder that a row writes in place is refused, and one beside an overlay is not",
  { skip },
  async () => {
    await using place = await folders("a");
    await using model = await startModel(replies);
    await mkdir(place.at("a/deep"));
    await symlink(place.at("a/deep"), place.at("elsewhere"));
    const row = { dir: place.at("a"), prompt: "Change the notes. do: echo x >> notes.txt" };
    const tasks = await place.write("tasks.jsonl", rowsText([row]));
    const batch = (out: string, ...flags: readonly string[]): ReturnType<typeof harness> =>
      harness(place, ["batch", tasks, "--json", "--out", place.at(out), ...flags, ...model.flags]);
    for (const [out, flags] of [
      ["a/out", ["--isolation", "bind"]],
      ["a", ["--isolation", "bind"]],
      ["elsewhere/out", ["--isolation", "bind"]],
      ["a/out", ["--attempts", "2", "--check", "true"]],
    ] as const) {
      const ran = await batch(out, ...flags);
      assert.equal(ran.code, 2, ran.stderr);
      assert.match(
        ran.stdout,
        /^\{"error":.*inside the folder that row 1 changes in place: .*\/a\b.*"exit_code":2/,
      );
    }
    assert.deepEqual(await readdir(place.at("a")), ["deep", "notes.txt"]);
    const beside = await batch("out", "--isolation", "bind");
    assert.equal(beside.code, 0, beside.stderr);
    assert.match(await readFile(place.at("a/notes.txt"), "utf8"), /^one\nx\n$/);
  },
);

test("a row whose model is unavailable is retried until it is back, and not forever", { skip }, async () => {
  await using place = await folders("a");
  const tasks = await place.write(
    "tasks.jsonl",
    rowsText([{ dir: place.at("a"), prompt: "Change the notes. do: echo x >> notes.txt" }]),
  );
  const port = await (async () => {
    await using model = await startModel(replies);
    return model.port;
  })();
  const flags = ["--provider", "ollama", "--base-url", `http://127.0.0.1:${port}`, "--model", "coder:7b"];
  const once = ["batch", tasks, "--json", "--retries", "0", "--out", place.at("none")];
  const given = await harness(place, [...once, ...flags]);
  const [lost] = batchOf(given).rows;
  assert.deepEqual([lost?.cause, lost?.exit_code, lost?.attempts], ["model", 5, 0], given.stderr);
  const running = place.at("out/running");
  const ran = harness(place, ["batch", tasks, "--json", "--out", place.at("out"), ...flags]);
  const seen = async (count: number): Promise<void> => {
    for (let nth = 0; nth < 1500; nth += 1) {
      const names = await readdir(running).catch(() => undefined);
      if (names?.length === count) return;
      await sleep(10);
    }
    assert.fail(`there are not ${count} runs`);
  };
  // The first one begins, and ends without a model.
  await seen(1);
  await seen(0);
  await using _model = await startModel(replies, 32_768, port);
  const ended = await ran;
  assert.equal(ended.code, 0, ended.stderr);
  const [row] = batchOf(ended).rows;
  // More than once where so much else is done that the model was not there in time for the first.
  assert.ok(row?.exit_code === 0 && row.attempts >= 1, JSON.stringify(row));
  assert.match(ended.stderr, /row 1 is retried in 2 s \(model\)/);
});

slowTest(
  "a spent budget of the batch starts no further row, and --resume continues with them",
  { skip },
  async () => {
    await using place = await folders("a", "b", "c");
    await using model = await startModel(replies);
    const rows = ["a", "b", "c"].map((name) => ({ dir: place.at(name), prompt: "Look. do: true" }));
    const tasks = await place.write("tasks.jsonl", rowsText(rows));
    const words = ["batch", tasks, "--out", place.at("out"), ...model.flags];
    const table = await harness(place, [...words, "--max-tokens", "100"]);
    assert.equal(table.code, 1, table.stderr);
    assert.match(table.stdout, /^done +1 +0$/m);
    assert.match(table.stdout, /^not started +2 +3 +--max-tokens was used up; --resume runs them$/m);
    const still = await harness(place, [...words, "--json", "--resume", "--max-tokens", "100"]);
    assert.deepEqual([still.code, batchOf(still).whole.not_started], [1, 2]);
    const rest = await harness(place, [...words, "--json", "--resume", "--max-tokens", "100000"]);
    assert.deepEqual(
      [rest.code, batchOf(rest).rows.length, batchOf(rest).whole.done],
      [0, 2, 3],
      rest.stderr,
    );
    const unpriced = await harness(place, [...words, "--resume", "--max-cost", "1"]);
    assert.equal(unpriced.code, 2);
    assert.match(unpriced.stderr, /no price is known for coder:7b/);
  },
);

const noMount = process.getuid?.() === 0 ? false : "only root mounts a small disk";

slowTest(
  "a full disk ends the batch with complete results, and with room it continues",
  { skip: skip || noMount },
  async () => {
    await using place = await folders("a", "b");
    await using model = await startModel(replies);
    const out = place.at("out");
    await mkdir(out);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=20k", "tmpfs", out]);
    try {
      const rows = ["a", "b"].map((name) => ({
        dir: place.at(name),
        prompt: "Change. do: echo x >> notes.txt",
      }));
      const tasks = await place.write("tasks.jsonl", rowsText(rows));
      const words = ["batch", tasks, "--json", "--out", out, ...model.flags];
      const full = await harness(place, words);
      assert.equal(full.code, 1, full.stderr);
      assert.match(full.stdout + full.stderr, /results cannot be saved in .*: the disk is full/);
      assert.equal(await readFile(`${out}/results.jsonl`, "utf8"), "");
      for (const name of (await readdir(out)).filter((each) => /^\d/.test(each)))
        assert.match(name, /\.(?:patch|html|audit\.jsonl)$/);
      execFileSync("mount", ["-o", "remount,size=10m", out]);
      const rest = await harness(place, [...words, "--resume"]);
      assert.equal(rest.code, 0, rest.stderr);
      assert.equal((await readdir(out)).filter((each) => /^\d/.test(each)).length, 6);
    } finally {
      execFileSync("umount", ["-l", out]);
    }
  },
);

slowTest(
  "rows that work in place see what earlier ones did, and several candidates make one change",
  { skip },
  async () => {
    await using place = await folders("a", "b");
    await using model = await startModel(replies);
    const row = { dir: place.at("a"), prompt: "Change the notes. do: echo x >> notes.txt" };
    const tasks = await place.write("tasks.jsonl", rowsText([row, row]));
    const words = ["batch", tasks, "--json", "--jobs", "2", ...model.flags];
    const ran = await harness(place, [...words, "--isolation", "bind", "--out", place.at("out")]);
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal(await readFile(place.at("a/notes.txt"), "utf8"), "one\nx\nx\n");
    const [first, second] = batchOf(ran).rows;
    assert.match(await readFile(place.at("out", `2-${second?.id}.patch`), "utf8"), /^ x\n\+x$/m);
    assert.notEqual(first?.session, second?.session);
    const some = await place.write(
      "some.jsonl",
      rowsText([{ ...row, dir: place.at("b"), check: "grep -q x notes.txt" }]),
    );
    const several = ["batch", some, "--json", "--attempts", "2", "--out", place.at("tried")];
    const vain = ["--isolation", "bind", ...model.flags];
    const refused = await harness(place, [...several, ...vain]);
    assert.deepEqual([refused.code, refused.stdout.match(/--attempts: .*\(row 1\)/)?.length], [2, 1]);
    assert.deepEqual(existsSync(place.at("tried")), false);
    const tried = await harness(place, [...several, ...model.flags]);
    assert.equal(tried.code, 0, tried.stderr);
    assert.equal(await readFile(place.at("b/notes.txt"), "utf8"), "one\nx\n");
    const [one] = batchOf(tried).rows;
    assert.match(await readFile(place.at("tried", `1-${one?.id}.patch`), "utf8"), /^\+x$/m);
  },
);
