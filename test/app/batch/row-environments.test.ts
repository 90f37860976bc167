import assert from "node:assert/strict";
import test from "node:test";
import { indexedRow, repositoryName, rowEnvironments } from "../../../src/app/batch/pod-row.ts";
import { type BatchRow, readRows } from "../../../src/app/batch/batch-rows.ts";
import { podEnvironmentFor } from "../../../src/app/boxes/pod-environment.ts";
import { type Host, hostFrom } from "../../../src/app/host.ts";
import type { Settings } from "../../../src/config/settings-schema.ts";
import { EXIT } from "../../../src/core/errors.ts";
import { batchJob, batchRows, type BatchPlan } from "../../../src/kubernetes/batch-job.ts";
import { noTreeAt } from "../../../src/kubernetes/batch-trees.ts";
import {
  type BuiltPlace,
  builtPlace,
  DIGEST,
  noteBuilt,
  type Pushed,
  REGISTRY,
} from "../../fixtures/built-environment.ts";
import { KUBERNETES, planFor, SETTINGS } from "../../fixtures/cluster-batch.ts";

/** Which rows of a batch in a cluster have an environment, how their loops get it, and what is refused. */

const REPO = "https://git.example/team/shop";
const IN_REGISTRY: Settings = { ...SETTINGS, kubernetes: { ...KUBERNETES, registry: REGISTRY } };
const OWN = `${REGISTRY}@${DIGEST}`;

const rowsOf = (...rows: readonly object[]): readonly BatchRow[] =>
  readRows(rows.map((row) => JSON.stringify({ prompt: "mend it", ...row })).join("\n"), "rows", {
    check: undefined,
  });

const cloned = ({ place }: BuiltPlace, url: string, folder = "work"): Promise<string> =>
  place.write(`${folder}/.git/config`, `[core]\n\tbare = false\n[remote "origin"]\n\turl = ${url}\n`);

interface Planned {
  readonly plan: BatchPlan;
  readonly warned: readonly string[];
}

async function planned(
  { host }: BuiltPlace,
  rows: readonly BatchRow[],
  settings: Settings = IN_REGISTRY,
): Promise<Planned> {
  const warned: string[] = [];
  const warn = (text: string): void => void warned.push(text);
  const environments = rowEnvironments({ host, settings, warn });
  return { plan: await planFor(rows, { settings, environments }), warned };
}

test("an origin and a row's address name the same repository, however it is reached", () => {
  const names = [
    "https://git.example/team/shop",
    "https://git.example/team/shop.git",
    "https://me:secret@Git.Example/team/shop/",
    "git@git.example:team/shop.git",
    "git.example:team/shop",
    "ssh://git@git.example:2222/team/shop.git",
  ].map(repositoryName);
  assert.deepEqual(new Set(names), new Set(["git.example/team/shop"]));
  assert.notEqual(repositoryName("https://git.example:8443/team/shop"), names[0]);
  assert.notEqual(repositoryName("https://git.example/team/shopping"), names[0]);
  for (const none of ["/srv/shop", "../shop", ""]) assert.equal(repositoryName(none), undefined);
});

test("a row's loop gets the environment of its repository, and the clone where it was built", async () => {
  const built = await builtPlace();
  await using _ = built.place;
  await cloned(built, `git@git.example:team/shop.git`);
  const other = "https://git.example/team/other";
  const rows = rowsOf(
    { repo: REPO, env: "own" },
    { repo: other },
    { repo: `${REPO}.git#v2`, env: "own" },
    { repo: REPO, env: "own", prompt: "another" },
    { repo: REPO, env: "none" },
  );
  const { plan, warned } = await planned(built, rows);
  assert.deepEqual(warned, []);
  const pod = batchJob(plan).spec?.template.spec;
  for (const { volumeMounts = [] } of [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])])
    assert.deepEqual(
      volumeMounts.flatMap(({ name, mountPath }) => (name === "work" ? [mountPath] : [])),
      ["/work", built.place.path],
    );
  const maps = batchRows(plan);
  assert.deepEqual(
    pod?.volumes
      ?.find(({ name }) => name === "rows")
      ?.projected?.sources?.map((each) => each.configMap?.name),
    maps.map(({ metadata }) => metadata?.name),
  );
  const data = Object.assign({}, ...maps.map((each) => each.data)) as Record<string, string>;
  const told = JSON.parse(data["environments.json"] ?? "") as readonly { readonly rows: string }[];
  assert.deepEqual(
    told.map((each) => each.rows),
    ["0,2-3"],
  );
  const places = (data["clones-0000.tsv"] ?? "")
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\t")[3]);
  const { workspace } = built;
  assert.deepEqual(places, [workspace, undefined, workspace, workspace, undefined]);
});

/** A folder with what the pods of a batch have of it, and a host where nothing of this user is. */
async function inPod(
  { place }: BuiltPlace,
  plan: BatchPlan,
): Promise<{ readonly folder: string; readonly loop: Host }> {
  for (const { data = {} } of batchRows(plan))
    for (const [file, text] of Object.entries(data)) await place.write(`rows/${file}`, text);
  return { folder: place.at("rows"), loop: hostFrom({ HOME: place.at("loop") }) };
}

/** What the row's run starts its box from, and its notices. */
async function startedFrom(loop: Host, workspace: string, env: string | undefined) {
  const said: string[] = [];
  const warn = (text: string): void => void said.push(text);
  const settings = { ...IN_REGISTRY, env: env ?? null };
  return { found: await podEnvironmentFor({ host: loop, settings, workspace, warn }), said };
}

test("a loop finds the environment as if it was built there, and reports a clone with different lock files", async () => {
  const built = await builtPlace();
  await using _ = built.place;
  await cloned(built, REPO);
  const rows = rowsOf({ repo: "https://git.example/team/other" }, { repo: REPO, env: "own" });
  const { folder, loop } = await inPod(built, (await planned(built, rows)).plan);
  const at = { folder, tree: "/work/tree" };
  const plain = await indexedRow(loop, { ...at, index: 0 });
  assert.deepEqual([plain.row.env, plain.tree], [undefined, "/work/tree"]);
  const { workspace } = built;
  const { row, tree } = await indexedRow(loop, { ...at, index: 1 });
  assert.deepEqual([row.row, row.env, tree], [2, "own", workspace]);
  const { found, said } = await startedFrom(loop, workspace, row.env);
  assert.deepEqual([found?.image, found?.env["A"], found?.brought.length, said], [OWN, "b", 2, []]);
  await built.place.write("work/package.json", '{"dependencies": {"a": "1"}}');
  await built.place.write("work/package-lock.json", '{"lockfileVersion": 3, "packages": {}}');
  const older = await startedFrom(loop, workspace, row.env);
  assert.match(older.said.join(), /^lock files or an image .* so the environment is out of date/);
});

test("the environment that the project or its files define gets a name in the loop that no user's environment has", async () => {
  const built = await builtPlace();
  await using _ = built.place;
  await noteBuilt(built, "");
  await cloned(built, REPO);
  const { plan, warned } = await planned(built, rowsOf({ repo: REPO }));
  // The recipe that was noted is not what the empty folder says.
  assert.match(
    warned.join(),
    /^rows of .*\/work: what the project needs has changed since it was built, .* Rebuild it: harness env build$/,
  );
  const { folder, loop } = await inPod(built, plan);
  const { row } = await indexedRow(loop, { folder, index: 0, tree: null });
  const { found, said } = await startedFrom(loop, built.workspace, row.env);
  assert.deepEqual([row.env, found?.image, said], ["of-this-row", OWN, []]);
});

test("a different environment of the same rows makes a different batch", async () => {
  const built = await builtPlace();
  await using _ = built.place;
  await cloned(built, REPO);
  const rows = rowsOf({ repo: REPO, env: "own" });
  const first = await planned(built, rows);
  assert.equal((await planned(built, rows)).plan.hash, first.plan.hash);
  await noteBuilt(built, "own", { digest: `sha256:${"cd".repeat(32)}` });
  assert.notEqual((await planned(built, rows)).plan.hash, first.plan.hash);
});

type Refused = readonly [
  what: string,
  pushed: Partial<Pushed> | null,
  row: object,
  settings: Partial<Settings>,
  words: RegExp,
];
const NONE = `or, to use the image from the settings: "env": "none"`;
const REFUSED: readonly Refused[] = [
  [
    "a name that was built for no folder of this repository",
    {},
    { repo: "https://git.example/team/other", env: "own" },
    {},
    /^row 1: no folder whose origin is https:\/\/git\.example\/team\/other has the environment own; next, .*: harness env build --env own; /,
  ],
  [
    "an environment that was not pushed",
    null,
    { env: "own" },
    {},
    new RegExp(
      `^row 1: .*/work: .*not pushed to ${REGISTRY}\\. Push it: harness env build --env own; ${NONE}`,
    ),
  ],
  [
    "an environment from a flag or the settings that was pushed elsewhere",
    { registry: "r.example/x" },
    {},
    { env: "own" },
    /^row 1: .*pushed to r\.example\/x, and pods pull it from .* Push it: harness env build --env own/,
  ],
  [
    "an environment without a named registry",
    {},
    { env: "own" },
    { kubernetes: KUBERNETES },
    /^row 1: .*pods get environments from a registry, and none is set/,
  ],
  [
    "an environment together with an image",
    {},
    { env: "own" },
    { image: "tools:1" },
    /^row 1: the environment own and an image/,
  ],
];
for (const [what, pushed, row, settings, words] of REFUSED)
  test(`refused before a cluster is contacted, naming the row: ${what}`, async () => {
    const built = await builtPlace(pushed);
    await using _ = built.place;
    await cloned(built, REPO);
    const asked = planned(built, rowsOf({ repo: REPO, ...row }), { ...IN_REGISTRY, ...settings });
    await assert.rejects(asked, { exit: EXIT.usage, message: words });
  });

test("a repository with different environments in two folders is refused before a cluster is contacted", async () => {
  const built = await builtPlace();
  await using _ = built.place;
  const second = { ...built, workspace: built.place.at("second") };
  await noteBuilt(second, "own");
  await cloned(built, REPO);
  await cloned(built, `${REPO}.git`, "second");
  await assert.rejects(planned(built, rowsOf({ repo: REPO, env: "own" })), {
    exit: EXIT.usage,
    message: /^row 1: 2 folders with this repository as their origin .*\/work.*harness env rm FOLDER/,
  });
});

test("a clone is placed only where a user's folder may be, and not where a loop has its own files", () => {
  for (const place of [
    "/home/me/shop",
    "/srv/shop",
    "/root/a/shop",
    "/tmp/shop",
    "/work/shop",
    "/var/lib/ci/shop",
  ])
    assert.equal(noTreeAt(place), undefined, place);
  for (const place of [
    "/shop",
    "/usr/shop",
    "/usr/lib/shop",
    "/etc/a/shop",
    "/state/shop",
    "/results/a/b",
    "/run/a/b",
  ])
    assert.notEqual(noTreeAt(place), undefined, place);
  assert.match(noTreeAt("/srv/a:b/shop") ?? "", /characters/);
});

test("a loop with a damaged rows folder reports it, and does not run in another image", async () => {
  const built = await builtPlace();
  await using _ = built.place;
  await built.place.write("rows/rows-0000.jsonl", JSON.stringify({ repo: REPO, prompt: "x" }));
  for (const text of ["{", '[{"rows": "0", "environment": {}}]']) {
    await built.place.write("rows/environments.json", text);
    const folder = built.place.at("rows");
    await assert.rejects(indexedRow(built.host, { folder, index: 0, tree: null }), {
      exit: EXIT.usage,
      message: /environments\.json cannot be read/,
    });
  }
  const record = JSON.parse(JSON.stringify(await noteBuilt(built, "own"))) as { workspace: string };
  record.workspace = built.place.at("nowhere");
  await built.place.write("rows/environments.json", JSON.stringify([{ rows: "0", environment: record }]));
  await assert.rejects(indexedRow(built.host, { folder: built.place.at("rows"), index: 0, tree: null }), {
    message: /the clone is at .*, not at .*nowhere/,
  });
});
