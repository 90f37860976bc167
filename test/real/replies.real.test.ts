import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { answered, DIALECTS, finished, providerOf, request, user, WINDOW } from "./asking.ts";
import { realServer } from "./real-ollama.ts";

const { url, model, computed } = realServer();

const LONG = user(
  "Count from one to one thousand in words. Do not stop before the end, and leave no number out.",
);
/** The maximum length of the abandoned reply in tokens. */
const ABANDONED = 1000;
/** Tokens that a server may still compute for a client that is gone, before it notices. */
const GRACE = 40;

interface Times {
  readonly total_duration: number;
  readonly load_duration: number;
  readonly prompt_eval_duration: number;
  readonly eval_duration: number;
  readonly eval_count: number;
}

/** One short reply, with the server's own timing. */
async function short(): Promise<Times> {
  const body = {
    model,
    stream: false,
    keep_alive: "30m",
    truncate: false,
    shift: false,
    messages: [{ role: "user", content: "Say hello." }],
    options: { num_ctx: WINDOW, num_predict: 8, temperature: 0 },
  };
  const answer = await fetch(`${url}/api/chat`, { method: "POST", body: JSON.stringify(body) });
  assert.equal(answer.status, 200);
  return (await answer.json()) as Times;
}

/** The time spent neither loading, reading nor writing, expressed as tokens that could have been written in it. */
const waited = (times: Times): number => {
  const own = times.load_duration + times.prompt_eval_duration + times.eval_duration;
  return (times.total_duration - own) / (times.eval_duration / times.eval_count);
};

const words = (count: number): string => Array.from({ length: count }, (_, at) => `word${at}`).join(" ");

/** The windows of the models in memory. */
const loaded = async (): Promise<readonly (number | undefined)[]> => {
  const answer = await fetch(`${url}/api/ps`);
  const { models } = (await answer.json()) as {
    readonly models: readonly { readonly context_length?: number }[];
  };
  return models.map(({ context_length: window }) => window);
};

for (const dialect of DIALECTS)
  describe(`a real model by ${dialect}`, () => {
    test("a reply comes in pieces that join to its text, and its tokens are counted", async () => {
      const reply = await answered(providerOf(dialect), request({ messages: LONG }));
      const { message, usage, stop } = finished(reply);
      const texts = reply.events.flatMap((event) => (event.type === "text" ? [event.text] : []));
      assert.ok(texts.length > 3, `${texts.length} pieces`);
      assert.equal(texts.join(""), message.text);
      assert.equal(stop, "length");
      assert.equal(usage.completion_tokens, 24);
      assert.ok((usage.prompt_tokens ?? 0) > 10);
    });

    test("a reply follows the given schema", async () => {
      const format = {
        type: "object",
        properties: { city: { type: "string", enum: ["Rome", "Oslo"] }, sure: { type: "boolean" } },
        required: ["city", "sure"],
        additionalProperties: false,
      };
      const asked = request({ messages: user("Which city is the capital of Italy?"), format, maxTokens: 40 });
      const { message } = finished(await answered(providerOf(dialect), asked));
      const value = JSON.parse(message.text) as Readonly<Record<string, unknown>>;
      assert.deepEqual(Object.keys(value).toSorted(), ["city", "sure"]);
      assert.ok(["Rome", "Oslo"].includes(String(value["city"])));
      assert.equal(typeof value["sure"], "boolean");
    });

    test("a server whose reply is abandoned is free for the next request", async (t) => {
      await short();
      const asked = request({ messages: LONG, maxTokens: ABANDONED });
      const left = await answered(
        providerOf(dialect),
        asked,
        (events) => events.filter(({ type }) => type === "text").length === 3,
      );
      assert.equal(left.last.type === "failed" && left.last.failure.kind, "cancelled");
      const before = await computed();
      const next = await short();
      const after = await computed();
      // The next request needs its eight tokens, and possibly its prompt to be read again.
      if (before !== undefined && after !== undefined)
        assert.ok(after - before < GRACE + 60, `${after - before}`);
      t.diagnostic(`the next one waited for ${waited(next).toFixed(1)} tokens`);
      assert.ok(waited(next) < GRACE, `${waited(next)} tokens of ${ABANDONED}`);
    });
  });

describe("the window", () => {
  test("a prompt that is too long is an error with Ollama's API, and nothing is cut", async () => {
    const asked = request({ messages: user(`${words(1500)}\nHow many words were that?`) });
    const { last } = await answered(providerOf("ollama", { window: 1024 }), asked);
    assert.equal(last.type === "failed" && last.failure.kind, "too_long");
    assert.match(last.type === "failed" ? last.failure.remedy : "", /max_context_tokens/);
  });

  test("a reply that fills the window ends as cut", async () => {
    const asked = request({ messages: LONG, maxTokens: 1000 });
    const { stop, usage } = finished(await answered(providerOf("ollama", { window: 64 }), asked));
    assert.equal(stop, "length");
    const tokens = (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0);
    assert.ok(tokens <= 65, `${tokens} tokens`);
  });

  test("a prompt that is too long is an error with OpenAI's API, or noted", async (t) => {
    // A server not started by these tests has an unknown window, and may read for minutes.
    if ((await computed()) === undefined) return t.skip("Ollama's /v1 takes no window from its client");
    const { last } = await answered(providerOf("openai"), request({ messages: user(words(4000)) }));
    assert.equal(last.type === "failed" && last.failure.kind, "too_long");
  });
});

describe("loading", () => {
  test("every request of a session has the same window, and an unloaded model is loaded again", async () => {
    const provider = providerOf("ollama");
    finished(await answered(provider, request({ maxTokens: 4 })));
    assert.deepEqual(await loaded(), [WINDOW]);
    finished(await answered(provider, request({ messages: LONG, maxTokens: 4 })));
    assert.deepEqual(await loaded(), [WINDOW]);
    await fetch(`${url}/api/generate`, {
      method: "POST",
      body: JSON.stringify({ model, keep_alive: 0, stream: false }),
    });
    const until = Date.now() + 30_000;
    while ((await loaded()).length > 0) assert.ok(Date.now() < until, "still loaded");
    finished(await answered(provider, request({ maxTokens: 4 })));
    assert.deepEqual(await loaded(), [WINDOW]);
  });
});
