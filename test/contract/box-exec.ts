import assert from "node:assert/strict";
import test from "node:test";
import { listsOf } from "../fixtures/changes.ts";
import type { ExecResult } from "../../src/core/ports.ts";
import type { Suite } from "./box-suite.ts";
import { asking, inputOf, KEEP, NEVER, type Opened, text } from "./box-words.ts";

const brief = ({ exit_code, cause, timed_out, killed }: ExecResult): readonly unknown[] => [
  exit_code,
  cause,
  timed_out,
  killed,
];

const exec = ({ box }: Opened, words: readonly string[], more = {}): Promise<ExecResult> =>
  box.exec(asking(words, more), NEVER);

async function* failing(): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from("so far"));
  throw new Error("the disk is gone");
}

export function execCases(suite: Suite): void {
  resultCases(suite);
  givenCases(suite);
  besideCases(suite);
  keptCases(suite);
}

/** The outcome for a file that was requested with a command. */
const keptFileResult = ({ keptFile }: ExecResult): string =>
  keptFile === undefined
    ? "nothing"
    : keptFile.kind === "ok"
      ? `ok ${text(keptFile.value)}`
      : `${keptFile.kind} ${keptFile.code}`;

function keptCases({ open, of, skip }: Suite): void {
  test(of("a requested file is returned with the end of its command, and no other"), { skip }, async () => {
    await using opened = await open();
    const { words, box } = opened;
    const cases: readonly (readonly [readonly string[], string, string, object?])[] = [
      [["true"], "old.txt", "ok old text\n"],
      [["false"], "old.txt", "ok old text\n"],
      [["true"], "gone.txt", "ok "],
      [["true"], "no-such-file", "failed ENOENT"],
      [["true"], "sub", "failed EISDIR"],
      [words.leave(2), "old.txt", "ok old text\n"],
      [words.die(15), "old.txt", "nothing"],
      [words.die(9), "old.txt", "nothing"],
      [["no-such-program"], "old.txt", "nothing"],
      [["true"], "old.txt", "nothing", { folder: "no/such/folder" }],
      [["sleep", "30"], "old.txt", "nothing", { timeoutMs: 100 }],
    ];
    for (const [words, name, expected, more] of cases) {
      const keepFile = { path: `${box.workspace}/${name}`, limit: 100 };
      assert.equal(
        keptFileResult(await exec(opened, words, { keepFile, ...more })),
        expected,
        words.join(" "),
      );
    }
    assert.equal(keptFileResult(await exec(opened, ["true"])), "nothing");
  });

  test(of("a requested file is returned whole or refused as too large"), { skip }, async () => {
    await using opened = await open();
    const path = `${opened.box.workspace}/old.txt`;
    const at = async (limit: number): Promise<string> =>
      keptFileResult(await exec(opened, ["true"], { keepFile: { path, limit } }));
    assert.deepEqual(
      [await at(9), await at(8), await at(0)],
      ["ok old text\n", "failed EFBIG", "failed EFBIG"],
    );
  });

  test(of("a command whose folder is gone does not run and is marked as such"), { skip }, async () => {
    await using opened = await open();
    const { workspace } = opened.box;
    const gone = async (folder: string, exactFolder?: true): Promise<readonly unknown[]> => {
      const more = exactFolder === undefined ? {} : { exactFolder };
      const { exit_code, folder_gone } = await exec(opened, ["true"], { folder, ...more });
      return [exit_code, folder_gone];
    };
    assert.deepEqual(await gone("no/such/folder"), [126, true]);
    assert.deepEqual(await gone("old.txt", true), [126, true]);
    assert.deepEqual(await gone("sub"), [0, undefined]);
    assert.deepEqual(await gone(`${workspace}/sub`, true), [0, undefined]);
    assert.equal((await exec(opened, ["no-such-program"])).folder_gone, undefined);
  });
}

function resultCases({ open, of, skip }: Suite): void {
  test(of("a result has every field, empty where there is nothing to report"), { skip }, async () => {
    await using opened = await open();
    const result = await exec(opened, ["true"]);
    const { duration_ms, peak, stdout, stderr, ...rest } = result;
    assert.deepEqual(rest, {
      exit_code: 0,
      cause: null,
      reason: "",
      timed_out: false,
      killed: false,
      leftovers: 0,
      blocked: [],
      quarantined: [],
    });
    assert.ok(duration_ms >= 0 && peak.memory_bytes > 0 && peak.pids > 0);
    for (const { head, tail, total, lost } of [stdout, stderr])
      assert.deepEqual([head.length, tail.length, total, lost], [0, 0, 0, 0]);
  });

  test(of("exit codes are those of a shell"), { skip }, async () => {
    await using opened = await open();
    const { words } = opened;
    const cases: readonly (readonly [readonly string[], readonly unknown[], object?])[] = [
      [["true"], [0, null, false, false]],
      [["false"], [1, "program", false, false]],
      [words.exit(3), [3, "program", false, false]],
      [words.exit(255), [255, "program", false, false]],
      [words.die(15), [143, "program", false, false]],
      [words.die(9), [137, "program", false, true]],
      [["no-such-program"], [127, "program", false, false]],
      [["./no/such/program"], [127, "program", false, false]],
      [["./old.txt"], [126, "program", false, false]],
      [["true"], [126, "program", false, false], { folder: "no/such/folder" }],
      [["true"], [126, "program", false, false], { folder: "old.txt" }],
      [[], [126, "program", false, false]],
      [["sleep", "30"], [124, "timeout", true, true], { timeoutMs: 100 }],
    ];
    for (const [words, expected, more] of cases) {
      const result = await exec(opened, words, more);
      assert.deepEqual(
        brief(result),
        expected,
        `${words.join(" ")} ${JSON.stringify(more)}: ${result.reason}`,
      );
      assert.equal(result.reason === "", result.cause === null);
    }
  });
}

function givenCases({ open, of, skip }: Suite): void {
  test(
    of("a command starts in the workspace, in a folder below it, or anywhere else"),
    { skip },
    async () => {
      await using opened = await open();
      const { workspace } = opened.box;
      for (const [folder, expected] of [
        [undefined, workspace],
        ["sub", `${workspace}/sub`],
        ["sub/../sub/", `${workspace}/sub`],
        [`${workspace}/sub`, `${workspace}/sub`],
      ] as const) {
        const { stdout } = await exec(opened, ["pwd"], folder === undefined ? {} : { folder });
        assert.equal(text(stdout.head), `${expected}\n`);
      }
    },
  );

  test(of("a call's variables override the box's for this call only"), { skip }, async () => {
    await using opened = await open();
    const value = "a=b \"'$\n ä";
    const set = await exec(opened, ["printenv", "SOME_NAME"], { env: { SOME_NAME: value } });
    assert.equal(text(set.stdout.head), `${value}\n`);
    assert.equal((await exec(opened, ["printenv", "SOME_NAME"])).exit_code, 1);
  });

  test(of("arguments arrive unchanged"), { skip }, async () => {
    await using opened = await open();
    const words = ["a b", "", "$HOME", "*", "'\"", "ä\n-"];
    assert.equal(text((await exec(opened, ["echo", "x", ...words])).stdout.head), `x ${words.join(" ")}\n`);
  });

  test(of("a command gets the given input, and no input otherwise"), { skip }, async () => {
    await using opened = await open();
    assert.equal((await exec(opened, ["cat"])).stdout.total, 0);
    const given = await exec(opened, ["cat"], { input: inputOf("one ", "", Buffer.from([0, 255, 10])) });
    assert.deepEqual(Buffer.from(given.stdout.head), Buffer.from([111, 110, 101, 32, 0, 255, 10]));
    const large = Buffer.alloc(3_000_001, "0123456789");
    assert.equal((await exec(opened, ["cat"], { input: inputOf(large) })).stdout.total, large.length);
    const unread = await exec(opened, ["true"], { input: inputOf(large, large) });
    assert.equal(unread.exit_code, 0);
  });

  test(of("a command whose input fails is ended"), { skip }, async () => {
    await using opened = await open();
    const result = await exec(opened, ["cat"], { input: failing() });
    assert.deepEqual(brief(result), [137, "user", false, true]);
    assert.match(result.reason, /input/);
    assert.equal((await exec(opened, ["true"])).exit_code, 0);
  });
}

function besideCases({ open, of, skip }: Suite): void {
  test(of("any number of commands run in parallel, each with its own output"), { skip }, async () => {
    await using opened = await open();
    const numbers = Array.from({ length: 100 }, (_, index) => String(index));
    const results = await Promise.all(
      numbers.map((number) => exec(opened, ["cat"], { input: inputOf(number), keep: KEEP })),
    );
    assert.deepEqual(
      results.map(({ exit_code, stdout }) => [exit_code, text(stdout.head)]),
      numbers.map((number) => [0, number]),
    );
  });

  test(of("processes that a command leaves behind end with it and are counted"), { skip }, async () => {
    await using opened = await open();
    const { exit_code, leftovers, cause } = await exec(opened, opened.words.leave(3));
    assert.deepEqual([exit_code, leftovers, cause], [0, 3, null]);
  });

  test(of("an impossible argument yields a failed result, and nothing runs"), { skip }, async () => {
    await using opened = await open();
    for (const words of [
      ["touch", "made\0not"],
      ["tou\0ch", "made"],
    ])
      assert.deepEqual(brief(await exec(opened, words)), [126, "program", false, false]);
    const env = await exec(opened, ["true"], { env: { NAME: "a\0b" } });
    assert.deepEqual(brief(env), [126, "program", false, false]);
    const long = await exec(opened, ["true", "x".repeat(200 * 1024)]);
    assert.deepEqual([long.exit_code, long.cause], [126, "program"]);
    const longer = await exec(opened, ["true", ...Array.from({ length: 20 }, () => "x".repeat(100_000))]);
    assert.deepEqual([longer.exit_code, longer.cause], [126, "program"]);
    assert.equal((await exec(opened, ["true"])).exit_code, 0);
    assert.deepEqual((await listsOf(opened.box.changes())).added, []);
  });
}
