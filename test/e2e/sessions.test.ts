// also slow: a kill at each step of rm
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import test, { after, describe } from "node:test";
import { CheckpointStore } from "../../src/sessions/checkpoints/checkpoint-store.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT, message, RECORDS } from "../contract/store-words.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { killingItself } from "../kills/killed.ts";
import { slowTest } from "../fixtures/slow-test.ts";

const cache = await scratch();
after(() => cache[Symbol.asyncDispose]());

interface Filled extends AsyncDisposable {
  readonly place: Scratch;
  /** Of the folder `here`, with a record of each kind; of another folder, changed later. */
  readonly here: string;
  readonly there: string;
  readonly harness: (
    words: readonly string[],
    cwd?: string,
    more?: Readonly<Record<string, string>>,
  ) => Promise<Ended>;
}

async function filled(): Promise<Filled> {
  const place = await scratch({ "here/x": "", "home/x": "" });
  using store = openStore(place.at("state/harness"));
  const here = store.create({ ...ABOUT, workspace: place.at("here") });
  for (const record of RECORDS) here.append(record);
  const there = store.create({ ...ABOUT, workspace: "/gone/project", title: "bad\u001B[31m title" });
  there.append(message("where is the Needle?\u0007"));
  const env = { XDG_STATE_HOME: place.at("state"), XDG_CACHE_HOME: cache.path, XDG_CONFIG_HOME: place.path };
  const harness: Filled["harness"] = (words, cwd = place.at("here"), more = {}) =>
    runProgram("bin/harness", ["sessions", ...words], {
      home: place.at("home"),
      cwd,
      env: { ...env, ...more },
    });
  return {
    place,
    here: here.id,
    there: there.id,
    harness,
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

const jsonLines = (text: string): readonly unknown[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));

const idsIn = (text: string): readonly unknown[] =>
  text === "" ? [] : jsonLines(text).map((info) => (info as { id: unknown }).id);

describe("sessions", { concurrency: 2 }, () => {
  test("list shows the folder's sessions, those of all folders, or matches of a query", async () => {
    await using one = await filled();
    const { here, there, harness, place } = one;
    const plain = await harness(["list"]);
    assert.equal(plain.code, 0);
    assert.match(plain.stdout, /^ID +AGE +STATUS +MESSAGES +MODEL +TITLE\n/);
    assert.match(plain.stdout, new RegExp(`\n${here} +\\d+ s +done +1 +coder:7b +fix the sum\n$`));
    assert.deepEqual(idsIn((await harness(["list", "--all", "--json"])).stdout), [there, here]);
    assert.deepEqual(idsIn((await harness(["list", "--all", "--json", "--limit", "1"])).stdout), [there]);
    assert.deepEqual(idsIn((await harness(["list", "--all", "--json", "--query", "needle"])).stdout), [
      there,
    ]);
    assert.deepEqual(idsIn((await harness(["list", "--json", "--cwd", "/gone/project"])).stdout), [there]);
    const none = await harness(["list"], place.at("home"));
    assert.deepEqual([none.code, none.stdout], [0, ""]);
    assert.match(none.stderr, /--all/);
  });

  test("sessions are printed without control characters", async () => {
    await using one = await filled();
    for (const words of [
      ["list", "--all"],
      ["list", "--all", "--json"],
      ["show", one.there],
      ["export", one.there],
    ]) {
      const { stdout, code } = await one.harness(words);
      assert.equal(code, 0);
      assert.doesNotMatch(stdout, /[\u0000-\u0008\u000B-\u001F\u007F]/, words.join(" "));
      assert.match(stdout, /title|Needle/);
    }
  });

  test("show and export print the conversation, and accept the beginning of an id", async () => {
    await using one = await filled();
    const { here, harness } = one;
    const shown = await harness(["show", here]);
    assert.equal(shown.code, 0);
    for (const part of [
      "fix the sum",
      "-> read",
      "  a - b",
      "(rolled back to 1 messages)",
      "(done; 2 turns, 1 call)",
    ])
      assert.ok(shown.stdout.includes(part), `${part} in ${shown.stdout}`);
    const { stdout } = await harness(["show", "--json", here]);
    assert.deepEqual((JSON.parse(stdout) as { records: unknown }).records, RECORDS);
    assert.deepEqual(jsonLines((await harness(["export", here])).stdout), RECORDS);
  });

  test("rm removes the named sessions, and none if one of them is unknown", async () => {
    await using one = await filled();
    const { here, there, harness } = one;
    const wrong = await harness(["rm", here, "nothing"]);
    assert.deepEqual([wrong.code, wrong.stdout], [2, ""]);
    assert.match(wrong.stderr, /next: harness sessions list/);
    const right = await harness(["rm", here]);
    assert.deepEqual([right.code, right.stdout], [0, `${here}\n`]);
    assert.deepEqual(idsIn((await harness(["list", "--all", "--json"])).stdout), [there]);
    for (const words of [["show", here], ["export", here], ["rm", here], ["rm"], ["show"]])
      assert.equal((await harness(words)).code, 2, words.join(" "));
  });

  slowTest("a killed rm can be repeated until nothing is left of the session", async () => {
    await using one = await filled();
    const { place, here, harness } = one;
    let listed = 0;
    for (let at = 1, code: number | null = null, id = here; code === null; at += 1) {
      const store = openStore(place.at("state/harness"));
      const checkpoints = new CheckpointStore({
        stateDir: place.at("state/harness"),
        workspace: place.at("here"),
      });
      if (!store.list({}).some((info) => info.id === id)) {
        assert.deepEqual(checkpoints.trees.ids(), [], `killed before change ${at - 1}`);
        ({ id } = store.create({ ...ABOUT, workspace: place.at("here") }));
      } else listed += 1;
      await checkpoints.take(id);
      store[Symbol.dispose]();
      checkpoints[Symbol.dispose]();
      ({ code } = await harness(["rm", id], undefined, killingItself({ kind: "step", at, half: false })));
    }
    assert.ok(listed > 2);
  });

  test("a damaged database is reported once and kept", async () => {
    await using one = await filled();
    await one.place.write("state/harness/sessions.db", "garbage ".repeat(1000));
    const first = await one.harness(["list", "--all", "--json", "--quiet"]);
    assert.deepEqual([first.code, first.stdout], [0, ""]);
    assert.match(
      first.stderr,
      /^warning: the session database was damaged .*it was set aside as .*\.damaged-/,
    );
    const kept = readdirSync(one.place.at("state/harness")).find((name) => name.includes(".damaged-"));
    assert.equal(await one.place.read(`state/harness/${kept}`), "garbage ".repeat(1000));
    assert.deepEqual(await one.harness(["list", "--all", "--quiet"]), { code: 0, stdout: "", stderr: "" });
  });
});
