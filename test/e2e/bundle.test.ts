import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import test, { describe } from "node:test";
import { FAKE_DIGEST, startFakeOllama } from "../fakes/ollama-server.ts";
import { kept, SECRET } from "../fixtures/kept-session.ts";

describe("sessions export --bundle and replay --bundle", { concurrency: 2 }, () => {
  test("an exported bundle is verified and shown on a machine without the session, and nothing is written there", async () => {
    await using one = await kept();
    const { place, id, harness } = one;
    const done = await harness(["sessions", "export", id, "--bundle", "s.tar"]);
    assert.equal(done.code, 0, done.stderr);
    const [, hash = ""] = /^([0-9a-f]{64}) {2}s\.tar\n$/.exec(done.stdout) ?? [];
    const again = await harness(["sessions", "export", id, "--bundle", "t.tar", "--json"]);
    assert.equal((JSON.parse(again.stdout) as { sha256: string }).sha256, hash, "the same bytes each time");
    const bytes = readFileSync(place.at("work/s.tar"));
    assert.ok(!bytes.includes(SECRET) && bytes.includes("+key="));

    const file = place.at("work/s.tar");
    const shown = await harness(["replay", "--bundle", file], "there");
    assert.equal(shown.code, 0, shown.stderr);
    for (const said of [hash, "harness 9.9.9, policy feed", "unchanged", "run 1 of 1: task", "unbroken"])
      assert.ok(shown.stdout.includes(said), `${said} in ${shown.stdout}`);
    const json = JSON.parse((await harness(["replay", "--bundle", file, "--json"], "there")).stdout) as {
      bundle: { session: { id: string }; model: unknown };
      report: { runs: readonly unknown[]; diff: string };
    };
    assert.equal(json.bundle.session.id, id);
    assert.deepEqual(json.bundle.model, { provider: "ollama", name: "coder:7b", digest: null });
    assert.equal(json.report.runs.length, 1);
    assert.match(json.report.diff, /^diff --git a\/a\.txt b\/a\.txt\n/);
    assert.ok(!existsSync(place.at("there/harness/sessions.db")));
    assert.deepEqual(readdirSync(place.at("other")), ["x"]);
  });

  test("a changed byte is reported with its part, an existing file is not overwritten, and other files are refused", async () => {
    await using one = await kept();
    const { place, id, harness } = one;
    await harness(["sessions", "export", id, "--bundle", "s.tar"]);
    const file = place.at("work/s.tar");
    const twice = await harness(["sessions", "export", id, "--bundle", "s.tar"]);
    assert.deepEqual([twice.code, twice.stdout], [2, ""]);
    assert.match(twice.stderr, /s\.tar already exists/);
    const bytes = readFileSync(file);
    const at = bytes.indexOf('"kind":"decision"');
    bytes[at + 9] = (bytes[at + 9] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    const changed = await harness(["replay", "--bundle", file], "there");
    assert.deepEqual([changed.code, changed.stdout], [1, ""]);
    assert.match(changed.stderr, /its part audit\.jsonl was changed after it was written/);
    for (const [words, said] of [
      [["replay", "--bundle", place.at("nothing.tar")], /cannot be read/],
      [["replay", "--bundle", place.at("work/a.txt")], /is not a session bundle/],
      [["replay", "--bundle", place.at("work")], /cannot be read|no regular file/],
      [["replay", id, "--bundle", file], /leave out the ID/],
    ] as const) {
      const { code, stdout, stderr } = await harness(words, "there");
      assert.deepEqual([code, stdout], [2, ""], words.join(" "));
      assert.match(stderr, said);
    }
  });

  test("the bundle contains the model's digest if its server reports one", async () => {
    await using one = await kept();
    await using server = await startFakeOllama({ models: [{ name: "coder:7b" }] });
    const { id, harness, place } = one;
    await harness(["sessions", "export", id, "--bundle", "s.tar"], "here", server.url);
    const { stdout } = await harness(["replay", "--bundle", place.at("work/s.tar")], "there");
    assert.match(stdout, new RegExp(`model ollama coder:7b \\(${FAKE_DIGEST.replace("sha256:", "")}\\)`));
  });
});
