import assert from "node:assert/strict";
import { chmod, readdir, readlink, stat, symlink } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { addRules } from "../../src/config/policy-rules-file.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const RULE = { prefix: ["frob", "a"], decision: "allow" as const, reason: "because", match: ["frob a"] };
const TOML_RULE =
  '[[rule]]\nprefix = ["frob", "a"]\ndecision = "allow"\nreason = "because"\nmatch = ["frob a"]\n';
const FILE = "home/.config/harness/policy.toml";
const JSON_FILE = "home/.config/harness/policy.json";

const add = (place: Scratch): Promise<string> => addRules({ HOME: place.at("home") }, [RULE]);

test("the first rule creates a private file", async () => {
  await using place = await scratch();
  assert.equal(await add(place), place.at(FILE));
  assert.equal(await place.read(FILE), `# What may run: docs/policy-rules.md\n\n${TOML_RULE}`);
  assert.equal((await stat(place.at(FILE))).mode & 0o777, 0o600);
});

test("existing text in the file stays unchanged", async () => {
  const before = '# mine\n[[rule]]   # odd\n  prefix=["ls"]\ndecision = "deny"\nreason = "x"';
  await using place = await scratch({ [FILE]: before });
  await add(place);
  assert.equal(await place.read(FILE), `${before}\n\n${TOML_RULE}`);
});

test("in JSON a rule is added to the end of the list, and comments are kept", async () => {
  await using place = await scratch({
    [JSON_FILE]:
      '{\n  // mine\n  "rules": [\n    { "prefix": ["ls"], "decision": "deny", "reason": "x" }\n  ]\n}\n',
  });
  assert.equal(await add(place), place.at(JSON_FILE));
  const text = await place.read(JSON_FILE);
  assert.ok(
    text.startsWith(
      '{\n  // mine\n  "rules": [\n    { "prefix": ["ls"], "decision": "deny", "reason": "x" },\n',
    ),
    text,
  );
  const plain: unknown = JSON.parse(text.replace("// mine", ""));
  assert.deepEqual(plain, { rules: [{ prefix: ["ls"], decision: "deny", reason: "x" }, RULE] });
});

test("an empty JSON file gets a list", async () => {
  await using place = await scratch({ [JSON_FILE]: "{}" });
  await add(place);
  assert.deepEqual(JSON.parse(await place.read(JSON_FILE)), { rules: [RULE] });
});

test("a link stays a link, and permissions are kept", async () => {
  await using place = await scratch({ "dotfiles/policy.toml": "", "home/.config/harness/x": "" });
  await chmod(place.at("dotfiles/policy.toml"), 0o640);
  await symlink("../../../dotfiles/policy.toml", place.at(FILE));
  await add(place);
  assert.equal(await readlink(place.at(FILE)), "../../../dotfiles/policy.toml");
  assert.equal(await place.read("dotfiles/policy.toml"), TOML_RULE);
  assert.equal((await stat(place.at("dotfiles/policy.toml"))).mode & 0o777, 0o640);
});

test("a file that would become invalid is left alone", async () => {
  const before = "rule = []\n";
  await using place = await scratch({ [FILE]: before });
  const [exit, message] = await refusalOf(() => add(place));
  assert.equal(exit, 2);
  assert.ok(message.startsWith(`the rule cannot be added to the file: ${place.at(FILE)}:3:`), message);
  assert.equal(await place.read(FILE), before);
  assert.deepEqual(await readdir(path.dirname(place.at(FILE))), ["policy.toml"]);
});
