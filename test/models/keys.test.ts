import assert from "node:assert/strict";
import { chmod, mkdir } from "node:fs/promises";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { readKey, redact } from "../../src/models/provider-servers.ts";
import { scratch } from "../fixtures/scratch.ts";

const KEYS = JSON.stringify({ openai: "sk-from-the-file" });

test("the environment takes precedence over the file, and both are optional", async () => {
  await using folder = await scratch();
  const file = await folder.write("keys.json", KEYS, 0o600);
  assert.equal(readKey("openai", { env: { OPENAI_API_KEY: " sk-from-env\n" }, file }), "sk-from-env");
  assert.equal(readKey("openai", { env: { OPENAI_API_KEY: "" }, file }), "sk-from-the-file");
  assert.equal(readKey("anthropic", { env: {}, file }), undefined);
  assert.equal(readKey("openai", { env: {}, file: folder.at("none.json") }), undefined);
  assert.equal(readKey("openai", { env: {}, file: folder.at("keys.json/none.json") }), undefined);
});

for (const mode of [0o644, 0o640, 0o660, 0o604, 0o602])
  test(`a keys file of mode ${mode.toString(8)} is refused with the command that fixes it`, async () => {
    await using folder = await scratch();
    const file = await folder.write("it's keys.json", KEYS, 0o600);
    await chmod(file, mode);
    assert.throws(() => readKey("openai", { env: {}, file }), {
      exit: EXIT.usage,
      message: `${file} has mode 0${mode.toString(8)}, so others may read or change the keys in it`,
      remedy: `chmod 600 "${file}"`,
    });
  });

function refused(ask: () => unknown): void {
  assert.throws(ask, (thrown) => {
    assert.ok(thrown instanceof HarnessError && thrown.remedy !== "");
    assert.doesNotMatch(`${thrown.message} ${thrown.remedy}`, /sk-secret/);
    return true;
  });
}

test("no error about keys shows a key", async () => {
  await using folder = await scratch();
  await mkdir(folder.at("folder"), { mode: 0o700 });
  const texts = [
    `{"openai": "sk-secret`,
    `{"openai": "sk-secret\\nx"}`,
    `{"other": "sk-secret"}`,
    `"sk-secret"`,
  ];
  const files = [folder.at("folder")];
  for (const [index, text] of texts.entries()) files.push(await folder.write(`${index}.json`, text, 0o600));
  for (const file of files) refused(() => readKey("openai", { env: {}, file }));
  refused(() => readKey("openai", { env: { OPENAI_API_KEY: "sk-secret\nx: y" }, file: folder.at("none") }));
});

test("every key in a text is masked, wherever it occurs; words as short as a placeholder stay", () => {
  const keys = ["sk-secret-1", "sk-secret-2", "none"];
  assert.equal(
    redact("Wrong key sk-secret-1: none of sk-secret-2sk-secret-1", keys),
    "Wrong key [key]: none of [key][key]",
  );
});
