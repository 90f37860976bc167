// also slow: Qdrants with keys and collections of their own
import assert from "node:assert/strict";
import { appendFile } from "node:fs/promises";
import test from "node:test";
import { startEmbeddingOllama } from "../fakes/embedding-ollama.ts";
import { type FakeQdrant, startQdrant } from "../fakes/qdrant-server.ts";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { indexed, paths, search } from "./index-of.ts";
import { harness, type RunStart } from "./run-command.ts";
import { slowTest } from "../fixtures/slow-test.ts";

const FILES = {
  "src/door.ts": "export function openPortcullis(): void {}\n",
  "NOTES.md": "# A portcullis\n",
};
const BOTH = ["NOTES.md", "src/door.ts"];

type Place = Awaited<ReturnType<typeof household>>;

/** The message to a person when a search or an index fails. */
async function failure(place: Place, words: readonly string[], start: RunStart): Promise<string> {
  const { code, stderr, stdout } = await harness(place, words, start);
  assert.equal(code, 1, stderr + stdout);
  return stderr;
}

const status = async (place: Place, start: RunStart): Promise<Record<string, unknown>> =>
  JSON.parse((await harness(place, ["index", "--status", "--json"], start)).stdout) as Record<
    string,
    unknown
  >;

const envOf = ({ url }: Pick<FakeQdrant, "url">, apiKey?: string): RunStart => ({
  env: { HARNESS_SEARCH_URL: url, ...(apiKey === undefined ? {} : { QDRANT_API_KEY: apiKey }) },
});

test(
  "when Qdrant is named, Qdrant answers or the reason is given, whatever another index has",
  { skip },
  async () => {
    await using place = await household(FILES);
    const server = await startQdrant();
    await server.close();
    const { env } = envOf(server);
    await indexed(place, ["--store", "embedded"]);
    const named = { ...env, HARNESS_SEARCH_STORE: "qdrant" };
    for (const [flags, about] of [
      [["--store", "qdrant"], env],
      [[], named],
    ] as const) {
      const said = await failure(place, ["search", ...flags, "portcullis"], { env: about ?? {} });
      assert.match(said, /Qdrant at http:\S+ cannot be reached.*ECONNREFUSED/);
      assert.match(said, /\.\/start\.sh|search\.store embedded/);
    }
    const auto = await search(place, "portcullis", { env: env ?? {} });
    assert.deepEqual([paths(auto).toSorted(), auto.store, auto.stale], [BOTH, "embedded", false]);
  },
);

test(
  "a Qdrant that disappears during indexing leaves no index marked complete, and indexing continues later",
  { skip },
  async () => {
    await using place = await household(FILES);
    await using server = await startQdrant();
    const start = envOf(server);
    server.fault = ({ operation }) =>
      operation === "upsert_points"
        ? {
            status: 500,
            body: JSON.stringify({
              status: {
                error:
                  "Service internal error: No space left on device: WAL buffer size exceeds available disk space",
              },
              time: 0,
            }),
          }
        : undefined;
    const full = await failure(place, ["index", "--no-embed", "--store", "qdrant"], start);
    assert.match(full, /has no space left to store \d+ points .*WAL buffer size exceeds/);
    assert.match(full, /Free space where it stores its data, then: harness index/);
    let puts = 0;
    server.fault = ({ operation }) =>
      operation === "upsert_points" && (puts += 1) > 2 ? "reset" : undefined;
    assert.match(await failure(place, ["index", "--no-embed"], start), /cannot be reached to store/);
    server.fault = () => undefined;
    const { whole, fresh } = await status(place, start);
    assert.deepEqual([whole, fresh], [false, false]);
    await indexed(place, [], start);
    const found = await search(place, "portcullis", start);
    assert.deepEqual([paths(found).toSorted(), found.store, found.stale], [BOTH, "qdrant", false]);
  },
);

slowTest(
  "with a read-only key a search answers, and reports what it could not update",
  { skip },
  async () => {
    await using place = await household(FILES);
    await using server = await startQdrant({ apiKey: "a-key-to-write", readOnlyKey: "a-key-to-read" });
    await indexed(place, ["--store", "qdrant"], envOf(server, "a-key-to-write"));
    const reader = envOf(server, "a-key-to-read");
    const fresh = await search(place, "portcullis", reader);
    assert.deepEqual([paths(fresh).toSorted(), fresh.store, fresh.stale], [BOTH, "qdrant", false]);
    await appendFile(place.at("work/src/door.ts"), "export const crocodile = 1;\n");
    const stale = await search(place, "portcullis", reader);
    assert.deepEqual([paths(stale).toSorted(), stale.store, stale.stale], [BOTH, "qdrant", true]);
    assert.match(stale.stderr, /may be older.*does not allow .*Global manage access is required/);
    for (const [key, why] of [
      [undefined, /requires a key, and QDRANT_API_KEY is not set/],
      ["wrong-key", /rejects the key/],
    ] as const) {
      const said = await failure(place, ["search", "--store", "qdrant", "portcullis"], envOf(server, key));
      assert.match(said, why);
      assert.ok(!/a-key-to|wrong-key/.test(said), said);
    }
    const told = await harness(place, ["doctor", "--json"], envOf(server, "a-key-to-write"));
    assert.match(told.stdout, /Qdrant 1\.19\.0 at http/);
  },
);

slowTest("an index with its first model leaves others' collections of words alone", { skip }, async () => {
  await using place = await household(FILES);
  await using server = await startQdrant();
  await using ollama = await startEmbeddingOllama();
  const env = { ...envOf(server).env, OLLAMA_HOST: ollama.server.url };
  await indexed(place, ["--store", "qdrant"], { env });
  assert.deepEqual([...server.collections.keys()].toSorted(), ["harness-code-words", "harness-docs-words"]);
  const ran = await harness(place, ["index", "--json"], { env });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /"kind":"whole"/);
  const names = [...server.collections.keys()];
  assert.deepEqual([names.length, names.some((name) => name.endsWith("-words"))], [2, false], names.join());
  const found = await search(place, "portcullis", { env });
  assert.deepEqual([paths(found).toSorted(), found.store, found.stale], [BOTH, "qdrant", false]);
});
