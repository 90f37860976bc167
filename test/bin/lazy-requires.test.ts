import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { lazyRequires } from "../../bin/lazy-requires.ts";
import { scratch } from "../fixtures/scratch.ts";

const CLIENT = path.join(import.meta.dirname, "../../node_modules/ollama/dist/browser.mjs");

/** Sends a request with its own fetch, and prints whether Node's has been loaded. */
const ASK = `
  const { Ollama } = await import(process.argv[1]);
  const answer = { ok: true, json: async () => ({ version: "1" }) };
  const client = new Ollama({ fetch: async () => answer });
  const { version } = await client.version();
  console.log(version, process.moduleLoadList.some((name) => name.endsWith("deps/undici/undici")));
`;

const asked = async (file: string): Promise<string> =>
  (await promisify(execFile)(process.execPath, ["--input-type=module", "-e", ASK, file])).stdout.trim();

test("in the bundle, Ollama's client does not load Node's fetch, unlike the published package", async () => {
  await using folder = await scratch();
  const bundled = path.join(folder.path, "client.mjs");
  const transform = lazyRequires.transform as (code: string, id: string) => string | null;
  await writeFile(bundled, transform(await readFile(CLIENT, "utf8"), CLIENT) ?? "");
  assert.deepEqual([await asked(CLIENT), await asked(bundled)], ["1 true", "1 false"]);
});
