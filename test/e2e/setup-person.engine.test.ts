import assert from "node:assert/strict";
import test from "node:test";
import { startFakeOllama } from "../fakes/ollama-server.ts";
import { skip } from "../fixtures/engine.ts";
import { scratch } from "../fixtures/scratch.ts";
import { noTerminal, onTerminal } from "./terminal.ts";

const SETUP = ["setup", "--no-install", "--no-sidecars"];
const HALF = { status: "pulling a3de", digest: "sha256:a3de", total: 4 * 2 ** 30, completed: 2 ** 30 };

test(
  "a person chooses a model by number and stops the download, and the next set-up continues it",
  { skip: skip === false ? noTerminal : skip },
  async () => {
    await using place = await scratch({ "work/x": "" });
    await using ollama = await startFakeOllama({
      models: [{ name: "gemma3:4b", size: 5000, capabilities: ["completion"] }],
      pull: { lines: [HALF], ending: "silence" },
    });
    const env = { OLLAMA_HOST: ollama.url, HARNESS_CHAT_MODEL: "" };
    {
      await using terminal = onTerminal(place, SETUP, env);
      const list = await terminal.until(/Which one\? \[1-\d, Enter for 1, n for none\] /);
      assert.match(list, /A run needs a chat model\. These fit [\d.]+ GiB of memory/);
      assert.match(list, /^ {2}1 {2}gemma3:4b +on the server/m);
      assert.match(list, /^ {2}2 {2}\S+ +[\d.]+ GiB to load/m);
      terminal.type("9\r");
      await terminal.until(/Which one\?/);
      terminal.type("2\r");
      await terminal.until(/ 25 % 1\.0 GiB of 4\.0 GiB/);
      process.kill(await terminal.pid(), "SIGINT");
      const end = await terminal.until(/error: interrupted/);
      assert.match(end, /✗ model .*the download of \S+ was interrupted; 1\.0 GiB of 4\.0 GiB are kept/);
      assert.equal(await terminal.ended, 130);
    }
    const { chat_model: model } = JSON.parse(await place.read(".config/harness/config.json")) as {
      readonly chat_model: string;
    };
    await using terminal = onTerminal(place, SETUP, env);
    const shown = await terminal.until(/ 25 % 1\.0 GiB of 4\.0 GiB/);
    assert.ok(!shown.includes("Which one") && !shown.includes("[y/N]"), shown);
    const pulls = ollama.requests.filter(({ path }) => path === "/api/pull");
    assert.deepEqual(
      pulls.map(({ body }) => (body as { model: string }).model),
      [model, model],
    );
    process.kill(await terminal.pid(), "SIGINT");
    assert.equal(await terminal.ended, 130);
  },
);

test(
  "a person who wants no model is told what to type, and the set-up succeeds",
  { skip: skip === false ? noTerminal : skip },
  async () => {
    await using place = await scratch({ "work/x": "" });
    await using ollama = await startFakeOllama();
    await using terminal = onTerminal(place, SETUP, { OLLAMA_HOST: ollama.url, HARNESS_CHAT_MODEL: "" });
    await terminal.until(/Which one\?/);
    terminal.type("n\r");
    const end = await terminal.until(/\n {2}next {2}/);
    assert.match(end, /~ model .*no chat model is chosen for .*; nothing was downloaded/);
    assert.equal(await terminal.ended, 0);
    assert.ok(!ollama.requests.some(({ path }) => path === "/api/pull"));
  },
);
