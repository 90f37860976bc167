import assert from "node:assert/strict";
import test, { describe } from "node:test";
import {
  askPlaces,
  changesFor,
  rankedOffers,
  rowOf,
  type ServerOffer,
  type ServerPlace,
  serverPlaces,
  wantedOffers,
} from "../../src/app/first-run.ts";
import { hostFrom } from "../../src/app/host.ts";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { columnsOf } from "../../src/render/tty/columns.ts";
import { startLoopback } from "../fakes/loopback.ts";
import { startFakeOllama } from "../fakes/ollama-server.ts";

test("the columns of offers are aligned, whatever characters their names have", () => {
  const place: ServerPlace = { provider: "ollama", address: "http://a", usual: true, key: "" };
  const startOf = (model: string): number => {
    const row = rowOf({ place, model, size: null, tools: true });
    return columnsOf(row.slice(0, row.indexOf(" at http")));
  };
  assert.equal(startOf("模型:8b"), startOf("model:8b"));
});

const GiB = 2 ** 30;
const never = new AbortController().signal;

const placed = (provider: ServerPlace["provider"], address: string, key = ""): ServerPlace => ({
  provider,
  address,
  usual: false,
  key,
});

/** A port that nothing listens on any more. */
async function closedAddress(): Promise<string> {
  const server = await startLoopback([{}]);
  await server.close();
  return server.url;
}

const listOf = (...ids: readonly string[]): string => JSON.stringify({ data: ids.map((id) => ({ id })) });

const hostWith = (env: Readonly<Record<string, string>>): ReturnType<typeof hostFrom> =>
  hostFrom({ HOME: "/nowhere", ...env });
const seen = (places: readonly ServerPlace[]): readonly string[] =>
  places.map(({ provider, address, usual }) => `${provider} ${address}${usual ? "" : " set"}`);

const offer = (usual: boolean): ServerOffer => ({
  place: { provider: "ollama", address: "http://127.0.0.1:9", usual, key: "" },
  model: "qwen3:8b",
  size: null,
  tools: null,
});
const keys = (usual: boolean, own: object): readonly string[] =>
  changesFor(offer(usual), own).map(({ key, value }) => `${key} ${value}`);

describe("the places of the first run", () => {
  test("are the usual ports of this machine", () => {
    assert.deepEqual(seen(serverPlaces(hostWith({}), {})), [
      "ollama http://127.0.0.1:11434",
      "lmstudio http://127.0.0.1:1234/v1",
      "llamacpp http://127.0.0.1:8080/v1",
      "vllm http://127.0.0.1:8000/v1",
    ]);
  });

  test("an Ollama on another machine is left out, one on another port of this machine is not", () => {
    const [elsewhere] = serverPlaces(hostWith({ OLLAMA_HOST: "models.example:11434" }), {});
    assert.equal(elsewhere?.provider, "lmstudio");
    assert.deepEqual(seen(serverPlaces(hostWith({ OLLAMA_HOST: "127.0.0.1:9" }), {}, "ollama")), [
      "ollama http://127.0.0.1:9 set",
    ]);
  });

  test("base_url applies to the provider it was set for, and each address is contacted once", () => {
    const own = { provider: "vllm", base_url: "http://127.0.0.1:9/v1" };
    assert.deepEqual(seen(serverPlaces(hostWith({}), own, "vllm")), ["vllm http://127.0.0.1:9/v1 set"]);
    assert.deepEqual(seen(serverPlaces(hostWith({}), own, "lmstudio")), [
      "lmstudio http://127.0.0.1:1234/v1",
    ]);
    assert.deepEqual(
      serverPlaces(hostWith({ OLLAMA_HOST: "127.0.0.1:8080" }), {}).map(({ provider }) => provider),
      ["ollama", "lmstudio", "vllm"],
    );
  });

  test("a key is sent only to the server that was named", () => {
    const host = hostWith({ VLLM_API_KEY: "k" });
    assert.deepEqual(new Set(serverPlaces(host, {}).map(({ key }) => key)), new Set([""]));
    assert.equal(serverPlaces(host, {}, "vllm")[0]?.key, "k");
  });
});

describe("what answers", () => {
  test("chat models are offered, best fit first; embedding models and closed ports are not", async () => {
    await using ollama = await startFakeOllama({
      models: [
        { name: "huge:70b", size: 40 * GiB },
        { name: "gemma3:4b", size: GiB, capabilities: ["completion"] },
        { name: "qwen3:8b", size: 5 * GiB, capabilities: ["completion", "tools"] },
        { name: "all-minilm", size: 50, capabilities: ["embedding"] },
      ],
    });
    await using studio = await startLoopback([
      { body: listOf("qwen2.5-coder", "text-embedding-nomic-embed") },
    ]);
    const closed = await closedAddress();
    const answers = await askPlaces(
      [placed("ollama", ollama.url), placed("lmstudio", `${studio.url}/v1`), placed("vllm", `${closed}/v1`)],
      never,
    );
    const names = (own: object): readonly string[] =>
      rankedOffers(answers, own, 12 * GiB).map(({ model }) => model);
    assert.deepEqual(names({}), ["qwen3:8b", "qwen2.5-coder", "gemma3:4b", "huge:70b"]);
    assert.deepEqual(names({ chat_model: "gemma3:4b" })[0], "gemma3:4b");
    assert.notEqual(answers[2]?.reason, "");
    assert.equal(studio.heard[0]?.headers.authorization, undefined);
    const offers = rankedOffers(answers, {}, 12 * GiB);
    assert.deepEqual(
      wantedOffers(offers, answers, "gemma3:4b").map(({ model }) => model),
      ["gemma3:4b"],
    );
    assert.throws(() => wantedOffers(offers, answers, "none:1b"), { exit: EXIT.model });
  });

  test("when nothing answers, all addresses are named, with the next step", async () => {
    const closed = await closedAddress();
    await using silent = await startFakeOllama({ faults: { "*": "silent" } });
    const places = [placed("ollama", silent.url), placed("llamacpp", `${closed}/v1`)];
    const answers = await askPlaces(places, never, 300);
    assert.throws(
      () => wantedOffers(rankedOffers(answers, {}, GiB), answers, undefined),
      (thrown) => {
        assert.ok(thrown instanceof HarnessError);
        for (const { address } of places) assert.ok(thrown.message.includes(address), thrown.message);
        assert.match(thrown.remedy, /\.\/start\.sh.*ollama serve/);
        return thrown.exit === EXIT.model;
      },
    );
  });
});

describe("what is written", () => {
  test("base_url is written only if it is not the default or replaces another one", () => {
    assert.deepEqual(keys(true, {}), ["provider ollama", "chat_model qwen3:8b"]);
    assert.deepEqual(keys(false, {}), [
      "base_url http://127.0.0.1:9",
      "provider ollama",
      "chat_model qwen3:8b",
    ]);
    assert.deepEqual(keys(true, { base_url: "http://x/v1", provider: "ollama", chat_model: "qwen3:8b" }), [
      "base_url null",
    ]);
  });
});
