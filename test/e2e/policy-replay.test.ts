import assert from "node:assert/strict";
import test, { after, describe } from "node:test";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

/** Compiled code is kept between these tests, so that each start is as quick as a user's. */
const cache = await scratch();
after(() => cache[Symbol.asyncDispose]());

const RULES = `[[rule]]
id = "build"
prefix = ["frob", "build"]
decision = "allow"
reason = "our own program"
match = ["frob build"]
`;

const replay = (place: Scratch, ...words: readonly string[]): Promise<Ended> =>
  runProgram("bin/harness", ["policy", "replay", ...words], {
    home: place.at("home"),
    cwd: place.at("w"),
    env: { XDG_CACHE_HOME: cache.path },
  });

const workspace = (files: Readonly<Record<string, string>> = {}): Promise<Scratch> =>
  scratch({ "w/a": "", "home/x": "", ...files });

const then = (command: string, decision: string, more: object = {}): string =>
  JSON.stringify({
    kind: "decision",
    ts: "2026-01-02T03:04:05.000Z",
    session: "s1",
    command,
    mode: "workspace-write",
    workspace: "/w",
    decision,
    ...more,
  });

describe("policy replay", { concurrency: 3 }, () => {
  test("reports that there are no sessions", async () => {
    await using place = await workspace();
    assert.deepEqual(await replay(place), {
      code: 0,
      stdout: "there are no sessions yet\n",
      stderr: "",
    });
  });

  const AUDIT = {
    "home/.config/harness/policy.toml": RULES,
    "home/.local/state/harness/audit/s1.jsonl": [
      '{"kind":"run.started"}',
      then("frob build", "ask"),
      then("ls", "allow"),
      then("frob build", "ask", { mode: "read-only", ts: "2026-02-02T00:00:00Z" }),
      '{"kind":"decision","ts":"2026',
    ].join("\n"),
    "home/.local/state/harness/audit/s2.jsonl": `no json\n${then("rm -rf /", "allow", { session: undefined, ts: "2026-03-01T00:00:00Z" })}\n`,
    "home/.local/state/harness/audit/other.txt": "x",
  };

  test("lists the verdicts that change under the current rules", async () => {
    await using place = await workspace(AUDIT);
    assert.deepEqual(await replay(place), {
      code: 0,
      stdout: [
        "ask -> allow  2026-01-02T03:04:05.000Z  s1",
        "    frob build",
        "    our own program  (user.build, workspace-write)",
        "",
        "allow -> deny  2026-03-01T00:00:00Z  s2",
        "    rm -rf /",
        "    rm deletes everything in /  (delete.broad, workspace-write)",
        "",
        "sessions: 2; commands judged: 4; verdicts that change: 2; other lines skipped: 1; lines that are not JSON: 1; files with an incomplete last line: 1",
        "",
      ].join("\n"),
      stderr: "",
    });
  });

  test("--since leaves out earlier ones, and --json shows the same", async () => {
    await using place = await workspace(AUDIT);
    const { code, stdout } = await replay(place, "--since", "2026-02-01", "--json");
    assert.equal(code, 0);
    assert.deepEqual(
      stdout
        .trimEnd()
        .split("\n")
        .map((line): unknown => JSON.parse(line)),
      [
        {
          ts: "2026-03-01T00:00:00Z",
          session: "s2",
          command: "rm -rf /",
          mode: "workspace-write",
          old: "allow",
          new: "deny",
          rule: "delete.broad",
          reason: "rm deletes everything in /",
        },
        { summary: { judged: 2, changed: 1, sessions: 2, skipped: 1, unreadable: 1, torn: 1 } },
      ],
    );
  });

  test("an invalid time ends it with 2", async () => {
    await using place = await workspace();
    const { code, stderr } = await replay(place, "--since", "soon");
    assert.equal(code, 2);
    assert.match(
      stderr,
      /^error: --since soon: expected a duration such as 90, 90s, 30m or 2h, 7d, or a date/,
    );
  });

  test("unreadable past sessions end it with 2, their folder and the next step", async () => {
    await using place = await workspace({ "home/.local/state/harness/audit": "no folder" });
    const { code, stdout, stderr } = await replay(place);
    const folder = place.at("home/.local/state/harness/audit");
    assert.deepEqual([code, stdout], [2, ""]);
    assert.ok(stderr.startsWith(`error: ${folder}: cannot be read: ENOTDIR`), stderr);
    assert.ok(stderr.endsWith(`  next: ls -ld ${folder}\n`), stderr);
  });
});
