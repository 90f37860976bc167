import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test, { after, describe } from "node:test";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

/** Compiled code is kept between these tests, so that each start is as quick as a user's. */
const cache = await scratch();
after(() => cache[Symbol.asyncDispose]());

const FILE = "home/.config/harness/policy.toml";
const RULES = `[[rule]]
id = "build"
prefix = ["frob", "build"]
decision = "allow"
reason = "our own program"
match = ["frob build"]

[[rule]]
id = "keep"
effect = "write"
path = "keep/**"
decision = "deny"
reason = "it is kept"
`;

const policy = (place: Scratch, words: readonly string[], input?: string): Promise<Ended> =>
  runProgram("bin/harness", ["policy", ...words], {
    home: place.at("home"),
    cwd: place.at("w"),
    env: { XDG_CACHE_HOME: cache.path },
    ...(input === undefined ? {} : { input }),
  });

const workspace = (files: Readonly<Record<string, string>> = {}): Promise<Scratch> =>
  scratch({ "w/a": "", "home/x": "", ...files });

describe("rules of a user", { concurrency: 3 }, () => {
  test("apply in policy check and policy path", async () => {
    await using place = await workspace({ [FILE]: RULES });
    const ended = await Promise.all([
      policy(place, ["check", "--", "frob build"]),
      policy(place, ["check", "--", "echo x > keep/a"]),
      policy(place, ["path", "keep/a", "--op", "write"]),
      policy(place, ["check", "--stdin"], '{"cmd":"frob build"}\n'),
    ]);
    assert.deepEqual(
      ended.map(({ code, stdout, stderr }) => [code, stdout.split("\n")[0], stderr]),
      [
        [0, "allow  our own program  (user.build)", ""],
        [20, "deny  it is kept  (user.keep)", ""],
        [20, "deny  it is kept  (user.keep)", ""],
        [
          0,
          '{"decision":"allow","contained":true,"rules":[{"id":"user.build","reason":"our own program","span":[0,4]}],"effects":[{"kind":"unknown","doubt":"command.unknown","what":"frob","by":"frob","span":[0,4],"call":0}]}',
          "",
        ],
      ],
    );
  });

  test("of a named file are checked with their own examples, or judge a file of commands", async () => {
    const json = '{"rules": [{"prefix": ["frob"], "decision": "deny", "reason": "no", "match": ["frob x"]}]}';
    const both = `${RULES}\n[[rule]]\nprefix = ["frob"]\ndecision = "ask"\nreason = "not sure"\n`;
    await using place = await workspace({
      "w/p.toml": RULES,
      "w/p.json": json,
      "w/both.toml": both,
      "w/bad.toml": RULES.replace('"frob build"', '"frob deploy"'),
      "w/c.jsonl": '{"cmd":"frob build","want":"allow"}\n{"cmd":"frob x","want":"not-allow"}\n',
    });
    const ended = await Promise.all(
      [
        ["p.toml"],
        ["p.json"],
        ["both.toml"],
        ["bad.toml"],
        ["gone.toml"],
        ["c.jsonl"],
        ["--rules", "p.toml", "c.jsonl"],
        ["--rules", "p.json", "c.jsonl"],
      ].map((words) => policy(place, ["test", ...words])),
    );
    // An example that passes alone but not together with another rule is wrong.
    assert.deepEqual(
      ended.map(({ code }) => code),
      [0, 0, 1, 2, 2, 1, 0, 1],
      ended.map(({ stdout, stderr }) => stdout + stderr).join("\n"),
    );
  });

  test("apply in sandbox exec --policy, before there is a box", async () => {
    const rule = '[[rule]]\nprefix = ["ls"]\ndecision = "deny"\nreason = "no lists"\n';
    await using place = await workspace({ [FILE]: rule });
    const { code, stderr } = await runProgram("bin/harness", ["sandbox", "exec", "--policy", "--", "ls"], {
      home: place.at("home"),
      cwd: place.at("w"),
      env: { XDG_CACHE_HOME: cache.path },
    });
    assert.equal(code, 4);
    assert.match(stderr, /denied: no lists \(user\.1\)/);
  });

  test("a mistake in them ends the command with 2, file and line", async () => {
    await using place = await workspace({ [FILE]: RULES.replace('"frob build"', '"frob deploy"') });
    assert.deepEqual(await policy(place, ["check", "--", "ls"]), {
      code: 2,
      stdout: "",
      stderr: `error: ${place.at(FILE)}:6: match: "frob deploy" is still asked about: frob is not a known program (command.unknown)\n  next: fix it there; harness policy check -- ls shows whether it is valid\n`,
    });
  });

  test("policy allow writes a rule for exactly the command, once", async () => {
    await using place = await workspace();
    const rule =
      '[[rule]]\nprefix = ["frob", "a b"]\nexact = true\ndecision = "allow"\nreason = "approved as it stands"\nmatch = ["frob \'a b\'"]\n';
    const first = await policy(place, ["allow", "--", "frob", "a b"]);
    assert.deepEqual(first, { code: 0, stdout: `${place.at(FILE)}\n\n${rule}`, stderr: "" });
    assert.equal(await place.read(FILE), `# What may run: docs/policy-rules.md\n\n${rule}`);
    const [again, check, other] = await Promise.all([
      policy(place, ["allow", "--", "frob", "a b"]),
      policy(place, ["check", "--", "frob 'a b'"]),
      policy(place, ["check", "--", "frob a"]),
    ]);
    assert.deepEqual([again.code, check.code, other.code], [2, 0, 10]);
    assert.match(again.stderr, /no rule was written: it is allowed already/);
  });

  test("policy allow refuses a denied command and writes nothing", async () => {
    await using place = await workspace();
    const { code, stderr } = await policy(place, ["allow", "--", "sudo ls"]);
    assert.equal(code, 2);
    assert.match(stderr, /no rule was written: it is denied: sudo/);
    assert.equal(existsSync(place.at(FILE)), false);
  });
});

const JUDGED = [
  '{"cmd": "ls", "want": "allow", "class": "readers"}',
  '{"cmd": "rm x", "want": "allow", "class": "writers"}',
  "",
  '{"cmd": "rm x", "want": "not-allow", "mode": "read-only", "class": "writers", "why": "it deletes"}',
  '{"cmd": "rm -rf /", "want": "ask", "debatable": true}',
].join("\n");

describe("policy test", { concurrency: 3 }, () => {
  test("lists wrong verdicts and counts right ones by class", async () => {
    await using place = await workspace({ "w/judged.jsonl": JUDGED });
    assert.deepEqual(await policy(place, ["test", "judged.jsonl"]), {
      code: 1,
      stdout: [
        "judged.jsonl:2  want allow, got ask  [writers]",
        "    rm x",
        "    rm deletes x  (delete.workspace, workspace-write)",
        "",
        "judged.jsonl:5  want ask, got deny  [other, debatable]",
        "    rm -rf /",
        "    rm deletes everything in /  (delete.broad, workspace-write)",
        "",
        "readers         1/1",
        "writers         1/2",
        "all             2/3",
        "debatable only  0/1",
        "",
      ].join("\n"),
      stderr: "",
    });
  });

  test("with --json there is an object for each wrong verdict, and a summary", async () => {
    await using place = await workspace();
    const input = '{"cmd": "rm x", "want": "allow"}\n{"cmd": "ls", "want": "allow"}\n';
    const { code, stdout } = await policy(place, ["test", "--json", "-"], input);
    assert.equal(code, 1);
    assert.deepEqual(
      stdout
        .trimEnd()
        .split("\n")
        .map((line): unknown => JSON.parse(line)),
      [
        {
          line: 1,
          cmd: "rm x",
          mode: "workspace-write",
          class: "other",
          want: "allow",
          got: "ask",
          rule: "delete.workspace",
          reason: "rm deletes x",
          debatable: false,
        },
        {
          summary: {
            right: 1,
            total: 2,
            debatable: { right: 0, total: 0 },
            classes: { other: { right: 1, total: 2 } },
          },
        },
      ],
    );
  });

  test("debatable verdicts and rules of the user's own are taken into account", async () => {
    await using place = await workspace({ [FILE]: RULES });
    const input =
      '{"cmd": "frob build", "want": "allow"}\n{"cmd": "ls", "want": "deny", "debatable": true}\n';
    assert.equal((await policy(place, ["test", "-"], input)).code, 0);
  });

  for (const [name, text, message] of [
    ["that is not JSON", '{"cmd": "ls", "want": "allow"}\n{"cmd"', "judged.jsonl:2: not valid JSON"],
    [
      "with a key twice",
      '{"cmd": "ls", "cmd": "rm -rf /", "want": "allow"}',
      'judged.jsonl:1: the key "cmd" appears twice',
    ],
    [
      "of another shape",
      '{"cmd": "ls"}',
      "judged.jsonl:1: want: expected one of allow, ask, deny, not-allow",
    ],
    ["that is missing", "\n", "judged.jsonl holds no commands"],
  ] as const)
    test(`a line ${name} ends it with 2`, async () => {
      await using place = await workspace({ "w/judged.jsonl": text });
      const { code, stdout, stderr } = await policy(place, ["test", "judged.jsonl"]);
      assert.deepEqual([code, stdout, stderr.split("\n")[0]], [2, "", `error: ${message}`]);
    });

  test("a missing file ends it with 2", async () => {
    await using place = await workspace();
    const { code, stderr } = await policy(place, ["test", "none.jsonl"]);
    assert.equal(code, 2);
    assert.match(stderr, /^error: none\.jsonl: cannot be read: ENOENT/);
  });
});
