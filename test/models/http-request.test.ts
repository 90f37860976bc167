import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import { releaseConnection, send } from "../../src/models/http-request.ts";
import { startFakeOllama } from "../fakes/ollama-server.ts";

test("a signal that fires while a complete response is being released ends only its connection", async () => {
  await using server = await startFakeOllama();
  const controller = new AbortController();
  const response = await send({ url: `${server.url}/api/version`, signal: controller.signal });
  while (!response.complete) await setImmediate();
  const closed = new Promise<void>((resolve) => void response.socket.once("close", () => resolve()));
  // Nothing is left to read: the end of the response is next.
  while (response.read() !== null);
  releaseConnection(response, 60_000);
  controller.abort();
  await closed;
  assert.equal(response.complete, true);
});
