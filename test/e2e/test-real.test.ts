import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import test from "node:test";
import { ROOT } from "./package.ts";

function testReal(env: Readonly<Record<string, string>>): readonly [number | null, string] {
  const { status, stdout, stderr } = spawnSync(process.execPath, [path.join(ROOT, "test/real/main.ts")], {
    env: { PATH: process.env["PATH"], ...env },
    encoding: "utf8",
  });
  return [status, stdout + stderr];
}

test("test:real without a model says what to set and ends with 2", () => {
  const cases = [
    [{}, /^OLLAMA_HOST is not set, and HARNESS_GGUF is not set, so nothing was tested/],
    [{ OLLAMA_HOST: "127.0.0.1:1" }, /^no Ollama that can be used answers at http:\/\/127\.0\.0\.1:1, and/],
    [{ HARNESS_GGUF: "/nowhere.gguf" }, /there is no \/nowhere\.gguf \(HARNESS_GGUF\)/],
    [{ HARNESS_GGUF: import.meta.filename }, /\.ts is no GGUF file \(HARNESS_GGUF\)/],
    [{ HARNESS_GGUF: import.meta.dirname }, /is no GGUF file/],
  ] as const;
  for (const [env, words] of cases) {
    const [status, said] = testReal(env);
    assert.equal(status, 2, said);
    assert.match(said, words);
    assert.match(said, /^ {2}OLLAMA_HOST=.*\n {2}HARNESS_GGUF=/m);
  }
});
