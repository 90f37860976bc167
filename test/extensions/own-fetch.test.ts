import assert from "node:assert/strict";
import test from "node:test";
import type { OwnAnswer, OwnRequest } from "../../src/core/network.ts";
import { fetchBy } from "../../src/extensions/mcp-transports.ts";

async function* pieces(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield await Promise.resolve(Buffer.from(text));
}

const answered = (
  status: number,
  body: AsyncIterable<Uint8Array>,
  headers: readonly (readonly [string, string])[] = [],
): OwnAnswer => ({
  kind: "answered",
  status,
  headers,
  body,
});

test("what a client asks of fetch is sent as it is, and the answer comes as it is read", async () => {
  const asked: OwnRequest[] = [];
  const fetch = fetchBy({
    send: (request) => {
      asked.push(request);
      return Promise.resolve(answered(200, pieces("{", "}"), [["content-type", "application/json"]]));
    },
  });
  const response = await fetch(new URL("http://example.org/a"), {
    method: "post",
    headers: new Headers({ "X-A": "b" }),
    body: "{}",
  });
  assert.deepEqual(asked, [
    { url: "http://example.org/a", method: "POST", headers: { "x-a": "b" }, body: "{}" },
  ]);
  assert.deepEqual([response.status, response.headers.get("content-type")], [200, "application/json"]);
  assert.deepEqual(await response.json(), {});
});

test("a redirect is given, not followed; one without a body has none; leaving a body ends it", async () => {
  const left: string[] = [];
  async function* endless(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) yield await Promise.resolve(Buffer.from("x"));
    } finally {
      left.push("left");
    }
  }
  const answers = [
    answered(302, pieces(), [["location", "/b"]]),
    answered(204, endless()),
    answered(200, endless()),
  ];
  const fetch = fetchBy({ send: () => Promise.resolve(answers.shift() ?? answered(500, pieces())) });
  assert.equal((await fetch("http://example.org/")).headers.get("location"), "/b");
  assert.deepEqual([(await fetch("http://example.org/")).body, left], [null, ["left"]]);
  await (await fetch("http://example.org/")).body?.cancel();
  assert.deepEqual(left, ["left", "left"]);
});

test("what is refused or unreachable rejects in its own words, and so does what is not text or bytes", async () => {
  const refused = fetchBy({
    send: () => Promise.resolve({ kind: "refused", rule: "not-granted", reason: "not granted" }),
  });
  await assert.rejects(refused("http://example.org/"), /^Error: not granted$/);
  await assert.rejects(refused("http://example.org/", { method: "POST", body: new FormData() }), TypeError);
});
