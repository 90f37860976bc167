import assert from "node:assert/strict";
import test from "node:test";
import { loadRules } from "../../src/config/load-config.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const TOML = "home/.config/harness/policy.toml";
const JSON_FILE = "home/.config/harness/policy.json";
const PROJECT = "w/.harness/policy.toml";

const load = async (place: Scratch, trusted?: boolean) =>
  loadRules({
    env: { HOME: place.at("home") },
    project:
      trusted === undefined
        ? undefined
        : { file: place.at(PROJECT), text: await place.read(PROJECT), trusted },
  });

const DENY = '[[rule]]\nprefix = ["ls"]\ndecision = "deny"\nreason = "because"\n';

test("rules are read from TOML and from JSON with comments, wherever settings are read", async () => {
  for (const [file, text] of [
    [TOML, DENY],
    ["home/.harness/policy.toml", `\uFEFF${DENY.replaceAll("\n", "\r\n")}`],
    [JSON_FILE, '{"rules": [ // mine\n {"prefix": ["ls"], "decision": "deny", "reason": "because"},]}'],
    ["home/.harness/policy.json", '{"rules": [{"prefix": ["ls"], "decision": "deny", "reason": "because"}]}'],
  ] as const) {
    await using place = await scratch({ [file]: text });
    assert.deepEqual(
      (await load(place)).map(({ id }) => id),
      ["user.1"],
      file,
    );
  }
});

test("without a file, or with an empty one, there are no rules", async () => {
  for (const files of [{}, { [TOML]: "# later\n" }, { [JSON_FILE]: "{}" }]) {
    await using place = await scratch(files);
    assert.deepEqual(await load(place), []);
  }
});

test("a trusted project's rules are added to the user's, and of an untrusted one only those that tighten", async () => {
  const rules = `${DENY}[[rule]]\n${ALLOW}match = ["frob"]\n`;
  await using place = await scratch({ [TOML]: DENY, [PROJECT]: rules });
  const counted = async (trusted?: boolean) => (await load(place, trusted)).map(({ id }) => id);
  assert.deepEqual(
    [await counted(), await counted(false), await counted(true)],
    [["user.1"], ["user.1", "project.1"], ["user.1", "project.1", "project.2"]],
  );
  const reasons = (await load(place, false)).map(({ reason }) => reason);
  assert.deepEqual(reasons, ["because", "from the untrusted project: because"]);
});

test("a mistake in an untrusted project's rules makes them ignored, without an error", async () => {
  const deep = `a = ${"[".repeat(100_000)}`;
  for (const text of ["[[rule]]\n", "x", `${DENY}${DENY}id = "a"\nmatch = ["frob"]\n`, deep]) {
    await using place = await scratch({ [TOML]: DENY, [PROJECT]: text });
    assert.deepEqual(
      (await load(place, false)).map(({ id }) => id),
      ["user.1"],
    );
  }
});

test("examples of rules are checked independently of the workspace", async () => {
  const text =
    '[[rule]]\neffect = "read"\npath = "~/notes/**"\ndecision = "allow"\nreason = "x"\nmatch = ["cat ~/notes/a"]\n';
  await using place = await scratch({ [TOML]: text });
  assert.equal((await load(place)).length, 1);
});

test("two rule files in one place are an error", async () => {
  await using place = await scratch({ [TOML]: DENY, "home/.harness/policy.json": "{}" });
  assert.deepEqual(await refusalOf(() => load(place)), [
    2,
    `both ${place.at(TOML)} and ${place.at("home/.harness/policy.json")} exist; only one policy file is allowed`,
  ]);
});

const ALLOW = 'prefix = ["frob"]\ndecision = "allow"\nreason = "because"\n';

/** A file, and where and what its mistake is. */
const MISTAKES: readonly (readonly [file: string, text: string, where: string, message: string])[] = [
  [TOML, "[[rule]\n", ":1:8", "expected end of table array declaration; expected TOML"],
  [TOML, '[[rules]]\nid = "a"\n', "", "rules: unknown key; a policy file contains [[rule]] tables"],
  [TOML, "rule = 1\n", ":1", "rule: expected a list of rules: [[rule]] tables"],
  [
    TOML,
    `# a\n${DENY}\n[[rule]] # b\n\n${ALLOW}mtach = ["frob"]\n`,
    ":12",
    "mtach: unknown key; did you mean match?",
  ],
  [
    TOML,
    `${DENY}\n[[rule]]\n${ALLOW}`,
    ":6",
    "match: missing; a rule that allows needs at least one example of a command that it matches",
  ],
  [
    TOML,
    `[[rule]]\n${ALLOW}match = [\n  "frob a", # [[rule]]\n  "frobs",\n]\n`,
    ":5",
    'match: "frobs" is still asked about: frobs is not a known program (command.unknown)',
  ],
  [
    TOML,
    `[[rule]]\n${ALLOW.replace("because", "[[rule]]")}match = ["frob"]\nnotMatch = ["""\nfrob"""]\n`,
    ":6",
    'notMatch: "frob" is matched',
  ],
  [
    TOML,
    `[[rule]]\nreason = '''\n[[rule]]\nmatch = 1'''\n\n[[rule]]\nprefix = ["bash"]\ndecision = "allow"\nreason = "x"\nmatch = []\n`,
    ":1",
    "decision: missing; expected one of allow, ask, deny (and 1 more)",
  ],
  [
    JSON_FILE,
    '{\n  "rules": [\n    {"prefix": ["ls"],\n     "decision": "no", "reason": "x"}]}',
    ":4:18",
    "decision: expected one of allow, ask, deny",
  ],
  [JSON_FILE, '{"rule": []}', ":1:10", 'rule: unknown key; a policy file contains {"rules": [...]}'],
  [JSON_FILE, "{", ":1:2", "close brace expected; expected a JSON object"],
  [
    JSON_FILE,
    '{\n "rules": [{"prefix": ["ls"], "decision": "deny", "reason": "x",\n "match": ["ls",\n "cat"]}]}',
    ":4:2",
    'match: "cat" is not matched',
  ],
];

for (const [file, text, where, message] of MISTAKES)
  test(`${message}: the file and line are named`, async () => {
    await using place = await scratch({ [file]: text });
    assert.deepEqual(await refusalOf(() => load(place)), [2, `${place.at(file)}${where}: ${message}`]);
  });

test("a mistake in a trusted project's rules ends the command with file and line", async () => {
  await using place = await scratch({ [PROJECT]: `[[rule]]\n${ALLOW}` });
  assert.deepEqual(await refusalOf(() => load(place, true)), [
    2,
    `${place.at(PROJECT)}:1: match: missing; a rule that allows needs at least one example of a command that it matches`,
  ]);
});
