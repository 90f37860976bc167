import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test, { describe } from "node:test";
import { startFakeOllama } from "../fakes/ollama-server.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { noTerminal, onTerminal, type Terminal } from "./terminal.ts";

const PROMPT = /harness> $/;
const models = [{ name: "gemma3:4b", size: 5000, capabilities: ["completion", "tools"] }];

/** Nobody has named a model, and no engine answers. */
const chat = (place: Scratch, server: string, words: readonly string[] = []): Terminal =>
  onTerminal(place, words, {
    HARNESS_CHAT_MODEL: "",
    OLLAMA_HOST: server,
    DOCKER_HOST: `unix://${place.at("none.sock")}`,
  });

async function leave(terminal: Terminal): Promise<void> {
  terminal.type("exit\r");
  assert.equal(await terminal.ended, 0);
}

describe("the first chat", { skip: noTerminal }, () => {
  test("looks at the machine, offers the available models, and becomes a chat", async () => {
    await using place = await household();
    await using fake = await startFakeOllama({ models });
    await using terminal = chat(place, fake.url);
    const shown = await terminal.until(/n for none\] $/);
    assert.match(
      shown,
      /Welcome to harness\.[\s\S]*^fail +engine [\s\S]*^ok +model\.server [\s\S]*^ {2}1 {2}gemma3:4b/m,
    );
    terminal.type("1\r");
    assert.match(await terminal.until(/Write this\? \[y\/N\] $/), /chat_model = gemma3:4b/);
    terminal.type("y\r");
    assert.match(await terminal.until(PROMPT), /^gemma3:4b/m);
    await leave(terminal);
    await using again = chat(place, fake.url);
    assert.doesNotMatch(await again.until(PROMPT), /Welcome/);
    await leave(again);
  });

  test("asks nothing if no model is found, and starts anyway", async () => {
    await using place = await household();
    const gone = await startFakeOllama();
    await gone[Symbol.asyncDispose]();
    for (const time of ["the first", "the second"]) {
      await using terminal = chat(place, gone.url);
      const shown = await terminal.until(/harness> $|n for none\] $/);
      if (shown.endsWith("none] ")) {
        // Another server of this machine has models.
        terminal.type("n\r");
        await terminal.until(PROMPT);
      }
      assert.match(shown, /Welcome to harness\.[\s\S]*^fail +model\.server/m, time);
      await leave(terminal);
    }
    assert.equal(existsSync(place.at(".config/harness/config.json")), false);
  });

  test("shows no welcome if a model is named", async () => {
    await using place = await household();
    await place.write("model.jsonl", "");
    for (const words of [
      ["--provider", "scripted", "--model", place.at("model.jsonl")],
      ["--model", "gemma3:4b"],
      ["--quiet"],
    ]) {
      await using terminal = chat(place, "127.0.0.1:1", words);
      assert.doesNotMatch(await terminal.until(PROMPT), /Welcome/, words.join(" "));
      await leave(terminal);
    }
  });
});
