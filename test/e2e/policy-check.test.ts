import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test, { after, describe } from "node:test";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { scratch } from "../fixtures/scratch.ts";

/** Compiled code is kept between these tests, so that each start is as quick as a user's. */
const place = await scratch({ "w/x": "", "home/x": "" });
after(() => place[Symbol.asyncDispose]());

const check = (words: readonly string[], input?: string): Promise<Ended> =>
  runProgram("bin/harness", ["policy", "check", ...words], {
    home: "/home/dev",
    cwd: place.at("w"),
    env: { XDG_CACHE_HOME: place.path, XDG_CONFIG_HOME: place.path },
    ...(input === undefined ? {} : { input }),
  });

const IN = ["--cwd", "/home/dev/project"];

describe("policy check", { concurrency: 3 }, () => {
  for (const [words, code, line] of [
    [["ls -la src"], 0, "allow  ls reads src  (read.workspace)\n"],
    [["ls", "-la", "src"], 0, "allow  ls reads src  (read.workspace)\n"],
    [["echo", "a && rm -rf /"], 0, "allow  it only prints  (harmless)\n"],
    [["echo a && rm -rf /"], 20, "deny  rm deletes everything in /  (delete.broad)\n"],
    [["mkdir build"], 10, "ask  mkdir writes build  (write.workspace)\n"],
    [[""], 20, "deny  there is no command  (text.empty)\n"],
  ] as const)
    test(`${JSON.stringify(words)} ends with ${code} and one line`, async () => {
      assert.deepEqual(await check([...IN, "--", ...words]), { code, stdout: line, stderr: "" });
    });

  test("--json prints the decision in the documented form", async () => {
    const { code, stdout } = await check([...IN, "--json", "--mode", "read-only", "--", "rm a.txt"]);
    assert.deepEqual(
      { code, answer: JSON.parse(stdout) as unknown },
      {
        code: 10,
        answer: {
          decision: "ask",
          contained: true,
          rules: [{ id: "delete.workspace", reason: "rm deletes a.txt", span: [3, 8] }],
          effects: [
            {
              kind: "delete",
              path: "/home/dev/project/a.txt",
              forced: false,
              recursive: false,
              span: [3, 8],
              by: "rm",
              call: 0,
            },
          ],
        },
      },
    );
  });

  test("--stdin answers every line in order, including invalid ones, and ends with 0", async () => {
    const lines = [
      '{"cmd":"ls"}',
      "no json",
      '{"cmd":7}',
      '{"cmd":"mkdir x","mode":"danger-full-access"}',
      "",
      '{"cmd":"ls","mode":"all"}',
      '{"cmd":"rm -rf /"}',
      '{"cmd":"rm -rf /","cmd":"ls"}',
    ];
    const { code, stdout } = await check([...IN, "--stdin"], `${lines.join("\n")}\n`);
    const answers = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { decision: string; rules: { id: string; reason: string }[] })
      .map(({ decision, rules: [rule] }) =>
        `${decision} ${rule?.id} ${rule?.id === "input.line" ? rule.reason : ""}`.trim(),
      );
    assert.deepEqual(
      { code, answers },
      {
        code: 0,
        answers: [
          "allow read.workspace",
          'deny input.line line 2: not valid JSON; expected {"cmd": "ls -l"}',
          'deny input.line line 3: expected an object with a string "cmd", as in {"cmd": "ls -l", "mode": "read-only"}',
          "allow write.workspace",
          'deny input.line line 5: not valid JSON; expected {"cmd": "ls -l"}',
          "deny input.line line 6: mode must be one of read-only, workspace-write, danger-full-access",
          "deny delete.broad",
          'deny input.line line 8: the key "cmd" appears twice',
        ],
      },
    );
  });

  test("--stdin gives one answer per line, whatever it contains", async () => {
    const { code, stdout } = await check([...IN, "--stdin"], '\uFEFF{"cmd":"echo \u2028"}\r\n{"cmd":"ls"}');
    const answers = stdout.trimEnd().split("\n");
    assert.deepEqual(
      [code, answers.map((line) => (JSON.parse(line) as { decision: string }).decision)],
      [0, ["ask", "allow"]],
    );
  });

  test("a missing command, or one together with --stdin, is a usage error with a next step", async () => {
    for (const words of [[], ["--"], ["--stdin", "--", "ls"], ["--stdin", "--explain"]]) {
      const { code, stdout, stderr } = await check(words, "");
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, /^error: .*\n {2}next: harness policy check -- 'ls -l'\n$/);
    }
  });

  test("the workspace need not exist, and nothing is created", async () => {
    const { code } = await check(["--cwd", place.at("none"), "--", "ls"]);
    assert.deepEqual([code, existsSync(place.at("none"))], [0, false]);
  });
});
