// alone: it publishes the port of Ollama's sidecar on this machine
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { once } from "node:events";
import test, { after } from "node:test";
import { SIDECARS } from "../../src/docker/sidecars.ts";
import { fakeOllamaImage } from "../docker/sidecar-image.ts";
import { runProgram } from "../fixtures/cli.ts";
import { engine } from "../fixtures/engine-api.ts";
import { skip as noEngine } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";

const CONTAINER = "harness-ollama-1";
const VOLUME = "harness_ollama_models";
const { image } = SIDECARS.services.ollama;
const pieces = new AsyncDisposableStack();
after(() => pieces.disposeAsync());

const isThere = (looked: Promise<unknown>): Promise<boolean> =>
  looked.then(
    () => true,
    () => false,
  );

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  const free = await isThere(once(server, "listening"));
  server.close();
  return free;
}

/** Nothing of a real sidecar of this machine's user is touched. */
async function unusable(): Promise<string | false> {
  if (noEngine !== false) return noEngine;
  const { api } = engine;
  if (await isThere(api.getImage(image).inspect())) return `${image} is on this engine: it would be replaced`;
  if (await isThere(api.getVolume(VOLUME).inspect())) return `the volume ${VOLUME} is there`;
  if (!(await isFree(11_434))) return "something listens on 127.0.0.1:11434";
  pieces.use(await fakeOllamaImage(api, image));
  pieces.defer(async () => {
    await api
      .getContainer(CONTAINER)
      .remove({ force: true, v: true })
      .catch(() => undefined);
    await api
      .getVolume(VOLUME)
      .remove()
      .catch(() => undefined);
  });
  return false;
}

const skip = await unusable();

test("one command from scratch yields the sidecar, a model and the task's answer", { skip }, async () => {
  await using place = await household({ "notes.txt": "four\n" });
  const words = ["--no-install", "--yes", "run", "--json", "what is two plus two?"];
  const { code, stdout, stderr } = await runProgram("start.sh", words, {
    home: place.path,
    cwd: place.at("work"),
  });
  assert.equal(code, 0, stderr + stdout);
  assert.match(stderr, /✓ model .*Ollama 0\.32\.15 at http:\/\/127\.0\.0\.1:11434, .*; in a container/);
  const events = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const { chat_model: model } = JSON.parse(await place.read(".config/harness/config.json")) as {
    readonly chat_model: string;
  };
  assert.equal(events.find(({ type }) => type === "run.started")?.["model"], model);
  assert.deepEqual(
    [events.at(-1)?.["type"], events.at(-1)?.["status"], events.at(-1)?.["answer"]],
    ["run.finished", "done", "It is four."],
  );

  const mounts = await runProgram("bin/harness", ["sandbox", "exec", "--", "cat", "/proc/mounts"], {
    home: place.path,
    cwd: place.at("work"),
  });
  assert.equal(mounts.code, 0, mounts.stderr);
  assert.doesNotMatch(mounts.stdout, /ollama/);

  const again = await runProgram("start.sh", ["--no-install"], { home: place.path, cwd: place.at("work") });
  assert.match(again.stderr, /✓ model .*Ollama 0\.32\.15/);
});
