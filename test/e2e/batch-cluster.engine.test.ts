import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import test from "node:test";
import { rowResultForm, type RowResult } from "../../src/render/batch-results.ts";
import { startFakeCluster } from "../fakes/kubernetes-jobs.ts";
import { rowsFor, said } from "../fixtures/cluster-batch.ts";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { batchOf, folders, replies, rowsText } from "./batch.ts";
import { killRun } from "./row-loop.ts";
import { harness, type RunStart, startModel } from "./run-command.ts";

const KUBERNETES = JSON.stringify({
  loop_image: "registry.example/harness-loop:1",
  results_claim: "results",
  model_secret: "model",
});

async function settled(place: Scratch): Promise<void> {
  const set = await harness(place, ["config", "set", "kubernetes", KUBERNETES]);
  assert.equal(set.code, 0, set.stderr);
}

const tasksOf = (place: Scratch, count: number): Promise<string> =>
  place.write(
    "tasks.jsonl",
    rowsText(rowsFor(count).map(({ target, prompt }) => ({ repo: target, prompt }))),
  );

test("manifests are printed without a cluster, and without one nothing starts", async () => {
  await using place = await folders();
  await settled(place);
  const tasks = await tasksOf(place, 2);
  const words = ["batch", tasks, "--on", "kubernetes:/team"];
  const printed = await harness(place, [...words, "--print-manifests"], { env: { KUBECONFIG: "/nowhere" } });
  assert.equal(printed.code, 0, printed.stderr);
  assert.match(printed.stdout, /completionMode: Indexed\n/);
  assert.deepEqual(
    [...printed.stdout.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind),
    ["ServiceAccount", "Role", "RoleBinding", "NetworkPolicy", "ConfigMap", "Job"],
  );
  assert.match(printed.stdout, /namespace: team\n/);
  const begun = await harness(place, words, { env: { KUBECONFIG: "/nowhere" } });
  assert.equal(begun.code, 6, begun.stderr);
  const elsewhere = await harness(place, ["batch", tasks, "--on", "mars"]);
  assert.equal(elsewhere.code, 2, elsewhere.stderr);
});

test("a batch in a cluster reports its rows as a local one does, and --resume finds its Job", async () => {
  await using place = await folders();
  await settled(place);
  const rows = rowsFor(3);
  await using cluster = await startFakeCluster((index) =>
    index === 1 ? said(rows[index], 1, { cause: "check" }) : said(rows[index]),
  );
  const start = { env: { KUBECONFIG: await place.write("kubeconfig", cluster.config) } };
  const granted = ["--allow-domain", "api.example.org", "--secret", "API_TOKEN@api.example.org"];
  const on = ["--on", "kubernetes", ...granted, "--json", "--out", place.at("out")];
  const words = ["batch", await tasksOf(place, 3), ...on];
  const ran = await harness(place, words, start);
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(
    ran.stderr,
    /API_TOKEN: loops read it from the Secret model in the namespace team, never from/,
  );
  const { rows: told, whole } = batchOf(ran);
  assert.deepEqual(
    told.toSorted((a, b) => a.row - b.row).map(({ row, exit_code, cause }) => [row, exit_code, cause]),
    [
      [1, 0, null],
      [2, 1, "check"],
      [3, 0, null],
    ],
  );
  assert.deepEqual([whole.done, whole.failed, whole.by_cause], [2, 1, { check: 1 }]);
  const again = await harness(place, [...words.slice(0, -1), place.at("other")], start);
  assert.equal(again.code, 2);
  assert.match(again.stdout + again.stderr, /already exists in the namespace team/);
  const resumed = await harness(place, [...words.slice(0, -1), place.at("other"), "--resume"], start);
  assert.deepEqual([resumed.code, batchOf(resumed).rows.length, cluster.ran.length], [1, 3, 3]);
});

interface IndexRun {
  readonly flags: readonly string[];
  readonly index?: number;
  readonly whenMade?: NonNullable<RunStart["whenMade"]>;
}

async function indexRun(
  place: Scratch,
  { flags, index = 0, whenMade }: IndexRun,
): Promise<{ readonly code: number | null; readonly told: RowResult; readonly stderr: string }> {
  const words = [
    "batch",
    place.at("rows"),
    `--index=${index}`,
    `--tree=${place.at("tree")}`,
    `--out=${place.at("results")}`,
    `--told=${place.at("told")}`,
    "--json",
    "--isolation",
    "copy",
    ...flags,
  ];
  const ran = await harness(place, words, whenMade === undefined ? {} : { whenMade });
  const told = rowResultForm.parse(JSON.parse(await readFile(place.at("told"), "utf8")));
  return { code: ran.code, told, stderr: ran.stderr };
}

test(
  "a pod runs only its own row on its clone, and a recreated pod reports the same and runs nothing",
  { skip },
  async () => {
    await using place = await folders("tree");
    await using model = await startModel(replies);
    await place.write(
      "rows/rows-0000.jsonl",
      rowsText([
        { repo: "https://git.example/owner/r0", prompt: "Change the notes. do: echo two >> notes.txt" },
        { repo: "https://git.example/owner/r1", prompt: "Change the notes. do: echo three >> notes.txt" },
      ]),
    );
    const first = await indexRun(place, { flags: model.flags, index: 1 });
    assert.deepEqual([first.code, first.told.row, first.told.cause], [0, 2, null], first.stderr);
    assert.deepEqual(first.told.changes?.modified, ["notes.txt"]);
    const [folder = ""] = await readdir(place.at("results"));
    const kept = await readdir(place.at("results", folder));
    assert.deepEqual(
      kept
        .flatMap((name) => /^\d+-[0-9a-f]{16}\.(.+)$/.exec(name)?.[1] ?? [])
        .toSorted((a, b) => a.localeCompare(b)),
      ["audit.jsonl", "bundle.tar", "html", "patch"],
    );
    assert.match(
      await readFile(place.at("results", folder, `2-${first.told.id}.patch`), "utf8"),
      /^\+three$/m,
    );
    const again = await indexRun(place, { flags: ["--base-url", "http://127.0.0.1:9"], index: 1 });
    assert.deepEqual([again.code, again.told.session], [0, first.told.session], again.stderr);
  },
);

test(
  "a terminated pod reports this for its row without a result, and the next pod runs it",
  { skip },
  async () => {
    await using place = await folders("tree");
    await place.write(
      "rows/rows-0000.jsonl",
      rowsText([
        { repo: "https://git.example/owner/r0", prompt: "Change the notes. do: echo two >> notes.txt" },
      ]),
    );
    const asked = place.at("asked");
    await using slow = await startModel(() => {
      writeFileSync(asked, "");
      return "hang";
    });
    const whenMade = [asked, (child: ChildProcess) => void child.kill("SIGTERM")] as const;
    const ended = await indexRun(place, { flags: slow.flags, whenMade });
    assert.deepEqual(
      [ended.code, ended.told.exit_code, ended.told.cause, ended.told.session],
      [143, 143, "interrupted", null],
      ended.stderr,
    );
    await using model = await startModel(replies);
    const again = await indexRun(place, { flags: model.flags });
    assert.deepEqual([again.code, again.told.cause], [0, null], again.stderr);
  },
);

test(
  "a run killed while its loop lives is reported as such without a result, and the next pod runs the row",
  { skip },
  async () => {
    await using place = await folders("tree");
    await place.write(
      "rows/rows-0000.jsonl",
      rowsText([
        { repo: "https://git.example/owner/r0", prompt: "Change the notes. do: echo two >> notes.txt" },
      ]),
    );
    const asked = place.at("asked");
    await using slow = await startModel(() => {
      writeFileSync(asked, "");
      return "hang";
    });
    const ended = await indexRun(place, { flags: slow.flags, whenMade: [asked, killRun] });
    assert.deepEqual([ended.code, ended.told.cause], [137, "killed"], ended.stderr);
    await using model = await startModel(replies);
    const again = await indexRun(place, { flags: model.flags });
    assert.deepEqual([again.code, again.told.cause], [0, null], again.stderr);
  },
);
