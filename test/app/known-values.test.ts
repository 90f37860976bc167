import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import test from "node:test";
import { hostFrom } from "../../src/app/host.ts";
import { modelWords, serverWords, sessionWords } from "../../src/app/known-values.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const hostIn = (place: Scratch) =>
  hostFrom({ HOME: place.path, XDG_STATE_HOME: place.at("state"), XDG_CONFIG_HOME: place.at("config") });

test("models come from sessions and from the user's settings, each once", async () => {
  await using place = await scratch({
    "config/harness/config.json":
      '{ /* mine */ "chat_model": "big:30b", "mcp": {"tracker": {"command": "x"}} }',
    "here/.harness/config.json": '{ "chat_model": "theirs" }',
  });
  {
    using store = openStore(place.at("state/harness"));
    store.create({ ...ABOUT, model: "big:30b" });
    store.create({ ...ABOUT, model: "small:1b", title: "a title" });
  }
  const host = hostIn(place);
  const models = (await modelWords(host, place.at("here"))).map(({ value }) => value);
  assert.deepEqual(models.toSorted(), ["big:30b", "nomic-embed-text", "small:1b"]);
  assert.deepEqual(
    (await serverWords(host)).map(({ value }) => value),
    ["tracker"],
  );
  assert.ok(sessionWords(host, place.at("here")).some(({ about }) => about === "a title"));
});

test("broken settings yield the defaults, and nothing is created", async () => {
  await using place = await scratch({ "config/harness/config.json": '{"chat_model": ' });
  const host = hostIn(place);
  const models = (await modelWords(host, "/gone")).map(({ value }) => value);
  assert.deepEqual(models, ["nomic-embed-text", "qwen3:8b"]);
  assert.deepEqual(await serverWords(host), []);
  assert.deepEqual(sessionWords(host, "/gone"), []);
  assert.deepEqual(readdirSync(place.path), ["config"]);
});
