import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import test, { describe } from "node:test";
import type { Report } from "../../src/render/report-form.ts";
import { kept } from "../fixtures/kept-session.ts";

const lines = (text: string): readonly string[] => text.trimEnd().split("\n");

describe("commands that read a session also read it from a bundle", { concurrency: 2 }, () => {
  test("report shows the same as for the session itself, and lists what the file does not contain", async () => {
    await using one = await kept();
    const { place, id, harness } = one;
    const told = async (words: readonly string[], state?: string): Promise<Report> => {
      const { code, stdout, stderr } = await harness(["report", ...words, "--json"], state);
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout) as Report;
    };
    await harness(["sessions", "export", id, "--bundle", "s.tar"]);
    const file = place.at("work/s.tar");
    const here = await told([id]);
    const there = await told(["--bundle", file], "there");
    assert.ok(here.runs.length > 0);
    assert.deepEqual([there.session, there.runs], [here.session, here.runs]);
    assert.deepEqual([there.audit?.lines, there.audit?.broken], [here.audit?.lines, null]);
    assert.match(there.diff ?? "", /^diff --git a\/a\.txt b\/a\.txt\n/);
    assert.equal(there.bundle?.file, file);
    assert.match(there.bundle.not_held.join(), /full outputs.*masked.*nothing can be undone/);

    const text = await harness(["report", "--bundle", file], "there");
    assert.match(text.stdout, /run 1 of 1: task/);
    assert.match(text.stdout, /not in it\n.*full outputs that the model was shown in pages/);
    const page = await harness(["report", "--bundle", file, "--html", place.at("other/r.html")], "there");
    assert.equal(page.code, 0, page.stderr);
    const html = await readFile(place.at("other/r.html"), "utf8");
    for (const said of ["Read from", there.bundle.sha256, "Not in that file: full outputs"])
      assert.ok(html.includes(said), said);
    const verified = await harness(["report", "--bundle", file, "--verify", "--json"], "there");
    assert.deepEqual([verified.code, (JSON.parse(verified.stdout) as { ok: unknown }).ok], [0, true]);
    assert.ok(!existsSync(place.at("there/harness/sessions.db")));
  });

  test("sessions show and diff show the conversation and the changes", async () => {
    await using one = await kept();
    const { place, id, harness } = one;
    await harness(["sessions", "export", id, "--bundle", "s.tar"]);
    const file = place.at("work/s.tar");
    const own = JSON.parse((await harness(["sessions", "show", id, "--json"])).stdout) as object;
    const shown = await harness(["sessions", "show", "--bundle", file, "--json"], "there");
    const { bundle, ...rest } = JSON.parse(shown.stdout) as { bundle: string; records: readonly unknown[] };
    assert.equal(bundle, file);
    assert.deepEqual(Object.keys(rest).toSorted(), Object.keys(own).toSorted());
    assert.equal(rest.records.length, 1);
    const text = await harness(["sessions", "show", "--bundle", file], "there");
    assert.ok(
      text.stdout.includes(`read from ${file}`) && text.stdout.includes("use [secret: anthropic key]"),
      text.stdout,
    );
    const diff = await harness(["diff", "--bundle", file], "there");
    assert.match(diff.stdout, /^diff --git a\/a\.txt b\/a\.txt\n(?:.*\n)*\+key=/);
    const json: unknown = JSON.parse((await harness(["diff", "--bundle", file, "--json"], "there")).stdout);
    const workspace = place.at("work");
    assert.deepEqual(json, { session: id, workspace, bundle: file, patch: diff.stdout });
  });

  test("a folder of bundles is listed, and a truncated or invalid one is named and hides no other", async () => {
    await using one = await kept();
    const { place, id, harness } = one;
    const folder = place.at("other/results");
    await mkdir(path.join(folder, "hash/rows"), { recursive: true });
    await harness(["sessions", "export", id, "--bundle", path.join(folder, "good.tar")]);
    await harness(["sessions", "export", id, "--bundle", path.join(folder, "hash/rows/1-a.bundle")]);
    const bytes = readFileSync(path.join(folder, "good.tar"));
    await writeFile(path.join(folder, "cut\u001B[2J.tar"), bytes.subarray(0, bytes.length - 3000));
    await writeFile(path.join(folder, "none.tar"), "no archive");
    await writeFile(path.join(folder, "1-a.patch"), "diff --git a/x b/x\n");
    await writeFile(path.join(folder, `new.tar.${randomUUID()}`), bytes.subarray(0, 4000));
    await symlink("/dev/zero", path.join(folder, "endless.tar"));

    const json = await harness(["sessions", "--bundle", folder, "--json"], "there");
    assert.equal(json.code, 1, json.stderr);
    const found = lines(json.stdout).map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      found.map(({ bundle }) => String(bundle)).toSorted(),
      ["good.tar", "hash/rows/1-a.bundle"].map((name) => path.join(folder, name)),
    );
    const [own] = lines((await harness(["sessions", "list", "--json"])).stdout);
    for (const { bundle: _, ...info } of found) assert.deepEqual(info, JSON.parse(own ?? ""));
    const warned = lines(json.stderr);
    assert.equal(warned.length, 2, json.stderr);
    assert.match(warned[0] ?? "", /^warning: .*results\/cut.*\.tar is not a session bundle: .*middle of/);
    assert.match(warned[1] ?? "", /^warning: .*results\/none\.tar is not a session bundle/);
    assert.doesNotMatch(json.stderr, /\u001B/);

    const table = await harness(["sessions", "list", "--bundle", folder, "--quiet"], "there");
    assert.match(table.stdout, /^ID +AGE +STATUS +MESSAGES +MODEL +WORKSPACE +BUNDLE +TITLE\n/);
    assert.equal(lines(table.stdout).length, 3);
    assert.equal(lines(table.stderr).length, 2, "a broken bundle is reported even with --quiet");
    const good = path.join(folder, "good.tar");
    const alone = await harness(["sessions", "--bundle", good, "--query", "USE", "--json"], "there");
    assert.deepEqual([alone.code, alone.stderr], [0, ""]);
    assert.equal((JSON.parse(alone.stdout) as { id: string }).id, id);
    const nothing = await harness(["sessions", "--bundle", good, "--query", "unsaid"], "there");
    assert.deepEqual([nothing.code, nothing.stdout], [0, ""]);
    assert.ok(!existsSync(place.at("there/harness")));
  });

  test("a file that is not a bundle ends with 2, a cause and a next step", async () => {
    await using one = await kept();
    const { place, id, harness } = one;
    await harness(["sessions", "export", id, "--bundle", "s.tar"]);
    const file = place.at("work/s.tar");
    for (const [words, said] of [
      [["sessions", "--bundle", place.at("nothing.tar")], /cannot be read/],
      [["sessions", "--bundle", place.at("other")], /there is no session bundle in/],
      [["sessions", "--bundle", place.at("work/a.txt")], /is not a session bundle/],
      [["sessions", "--bundle", file, "--all"], /--all/],
      [["report", "--bundle", place.at("work/a.txt")], /is not a session bundle/],
      [["report", id, "--bundle", file], /leave out the ID/],
      [["diff", id, "--bundle", file], /leave out the ID/],
      [["diff", "--bundle", file, "--stat"], /--stat/],
      [["sessions", "show", id, "--bundle", file], /leave out the ID/],
      [["sessions", "show"], /no session was given/],
    ] as const) {
      const { code, stdout, stderr } = await harness(words, "there");
      assert.deepEqual([code, stdout], [2, ""], `${words.join(" ")}\n${stderr}`);
      assert.match(stderr, said);
      assert.match(stderr, /next: /);
    }
  });

  test("a broken audit chain in a file with correct hashes is reported, and ends with 1", async () => {
    await using one = await kept("broken");
    const { place, id, harness } = one;
    const done = await harness(["sessions", "export", id, "--bundle", "s.tar"]);
    assert.equal(done.code, 0, done.stderr);
    const file = place.at("work/s.tar");
    const listed = await harness(["sessions", "--bundle", file, "--json"], "there");
    assert.equal(listed.code, 1);
    assert.equal((JSON.parse(listed.stdout) as { id: string }).id, id);
    assert.match(listed.stderr, /^warning: .*s\.tar: its audit is broken at line 2: /);
    for (const more of [[], ["--verify"]])
      assert.equal((await harness(["report", "--bundle", file, ...more], "there")).code, 1);
  });
});
