import assert from "node:assert/strict";
import test from "node:test";
import type { Capabilities } from "../../src/core/model-provider.ts";
import { providerWithCapabilities } from "../../src/models/capabilities.ts";
import type { Wire, WireRequest } from "../../src/models/model-api.ts";

const OFFER = { name: "read_file", description: "Reads a file.", schema: { type: "object" } } as const;
const BELIEVED: Capabilities = {
  context: 8192,
  tools: true,
  calls: "native",
  thinking: false,
  cache: true,
  origin: { context: "server", tools: "server", calls: "server", thinking: "server", cache: "server" },
};

/** What a wire is sent when the model is believed to call natively, or not, one request after the other. */
async function sentFor(beliefs: readonly (boolean | null)[], tools = [OFFER]): Promise<readonly string[]> {
  const sent: WireRequest[] = [];
  const wire: Wire = {
    async *send(request) {
      sent.push(request);
      yield* await Promise.resolve([
        { type: "text", text: "Hello" } as const,
        { type: "stop", stop: "end" } as const,
      ]);
    },
  };
  const waiting = [...beliefs];
  const provider = providerWithCapabilities(wire, {
    capabilities: () => {
      const believed = waiting.shift();
      if (believed === null) return Promise.reject(new Error("nobody knows"));
      const native = believed ?? true;
      return Promise.resolve({ ...BELIEVED, tools: native, calls: native ? "native" : "text" });
    },
  });
  const request = { model: "m", messages: [{ role: "user", text: "Hi" }], tools } as const;
  for (const _ of beliefs)
    for await (const { type } of provider.stream(request, new AbortController().signal))
      assert.notEqual(type, "failed");
  return sent.map(({ nativeTools, tools, messages }) => {
    const told = messages.some(({ text }) => text.includes("Reads a file."));
    return `${nativeTools ? "native" : "text"} ${tools.length}${told ? " in the prompt" : ""}`;
  });
}

test("tools go natively to a model that is believed to take them, else into its prompt", async () => {
  assert.deepEqual(await sentFor([true]), ["native 1"]);
  assert.deepEqual(await sentFor([false]), ["text 0 in the prompt"]);
});

test("a belief may change between two requests", async () => {
  assert.deepEqual(await sentFor([false, true]), ["text 0 in the prompt", "native 1"]);
});

test("a belief that cannot be had changes nothing and ends nothing", async () => {
  assert.deepEqual(await sentFor([null, false, null]), [
    "native 1",
    "text 0 in the prompt",
    "text 0 in the prompt",
  ]);
});

test("without tools nobody needs to know", async () => {
  assert.deepEqual(await sentFor([false], []), ["native 0"]);
});
