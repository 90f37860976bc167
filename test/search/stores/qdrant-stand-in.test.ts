/** The stand-in is only useful if it refuses everything outside the published schema. */
import assert from "node:assert/strict";
import test from "node:test";
import { Collection } from "../../fakes/qdrant/collection.ts";
import { startQdrant } from "../../fakes/qdrant-server.ts";

const JSON_BODY = { "content-type": "application/json" };
const shape = {
  vectors: { dense: { size: 2, distance: "Cosine" } },
  sparse_vectors: { words: { modifier: "idf" } },
};
const points = (body: unknown): readonly [string, string, unknown] => [
  "PUT",
  "/collections/c/points?wait=true",
  body,
];

const breaches: Readonly<Record<string, readonly [method: string, path: string, body?: unknown]>> = {
  "an unknown address": ["GET", "/collections/c/nothing"],
  "an unknown method": ["PATCH", "/collections/c/points/scroll", {}],
  "an unknown parameter": ["PUT", "/collections/c/points?await=true", { points: [] }],
  "a parameter of another type": ["PUT", "/collections/c/points?wait=yes", { points: [] }],
  "an unknown field": ["POST", "/collections/c/points/scroll", { fliter: {} }],
  "an unknown condition": [
    "POST",
    "/collections/c/points/count",
    { filter: { must: [{ key: "a", matches: 1 }] } },
  ],
  "a limit of zero": ["POST", "/collections/c/points/scroll", { limit: 0 }],
  "an invalid id": points({ points: [{ id: "one", vector: {} }] }),
  "a point without a vector field": points({ points: [{ id: 1 }] }),
  "a term beyond 32 bits": points({
    points: [{ id: 1, vector: { words: { indices: [2 ** 32], values: [1] } } }],
  }),
  "an unknown fusion": [
    "POST",
    "/collections/c/points/query/batch",
    { searches: [{ query: { fusion: "sum" } }] },
  ],
  "an unknown distance": ["PUT", "/collections/d", { vectors: { dense: { size: 2, distance: "cosine" } } }],
};
for (const [what, [method, path, body]] of Object.entries(breaches))
  test(`${what} makes closing fail`, async () => {
    const server = await startQdrant({ collections: new Map([["c", new Collection(shape)]]) });
    const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: JSON_BODY };
    const answer = await fetch(`${server.url}${path}`, { method, ...sent });
    assert.ok(answer.status >= 400, `${answer.status}`);
    await answer.text();
    await assert.rejects(server.close(), /published schema/);
  });

test("an answer outside the schema makes closing fail too", async () => {
  const server = await startQdrant({ version: 1 as unknown as string });
  await (await fetch(server.url)).text();
  await assert.rejects(server.close(), /answer to root/);
});

test("a valid request that cannot be carried out is refused, and is no breach of the schema", async () => {
  await using server = await startQdrant({ collections: new Map([["c", new Collection(shape)]]) });
  const statuses: number[] = [];
  for (const [method, path, body] of [
    ["PUT", "/collections/c", shape],
    ["POST", "/collections/d/points/scroll", {}],
    points({ points: [{ id: 1, vector: { dense: [1, 2, 3] } }] }),
    points({ points: [{ id: 1, vector: { other: [1, 2] } }] }),
    points({ points: [{ id: 1, vector: { words: { indices: [1, 1], values: [1, 1] } } }] }),
    ["PUT", "/collections/c/points/vectors?wait=true", { points: [{ id: 7, vector: { dense: [1, 0] } }] }],
    ["POST", "/collections/c/facet", { key: "path" }],
    ["POST", "/collections/c/points/count", { filter: { must: [{ key: "path", match: { value: "a" } }] } }],
    [
      "POST",
      "/collections/c/points/delete?wait=true",
      { filter: { must: [{ key: "at", range: { lt: 1 } }] } },
    ],
  ] as const) {
    const answer = await fetch(`${server.url}${path}`, {
      method,
      body: JSON.stringify(body),
      headers: JSON_BODY,
    });
    await answer.text();
    statuses.push(answer.status);
  }
  assert.deepEqual(statuses, [409, 404, 400, 400, 422, 404, 400, 400, 400]);
});

test("a change that is not waited for is acknowledged, and made later", async () => {
  await using server = await startQdrant({ collections: new Map([["c", new Collection(shape)]]) });
  const ask = async (path: string, method: string, body: unknown): Promise<unknown> => {
    const answer = await fetch(`${server.url}/collections/c/points${path}`, {
      method,
      body: JSON.stringify(body),
      headers: JSON_BODY,
    });
    return ((await answer.json()) as { readonly result: unknown }).result;
  };
  const put = await ask("", "PUT", { points: [{ id: 1, vector: { dense: [3, 4] } }] });
  assert.equal((put as { status: string }).status, "acknowledged");
  while (JSON.stringify(await ask("/count", "POST", {})) === '{"count":0}');
  const [stored] = (await ask("", "POST", { ids: [1], with_vector: true })) as {
    vector: { dense: number[] };
  }[];
  assert.deepEqual(
    stored?.vector.dense.map((value) => Math.fround(value)),
    [0.6, 0.8].map(Math.fround),
  );
});

test("only the version is public without a key; vectors for a missing point lose a part", async () => {
  const collections = new Map([["c", new Collection(shape)]]);
  await using server = await startQdrant({ apiKey: "write", readOnlyKey: "read", collections });
  const ids = Array.from({ length: 40 }, (_, at) => at + 1);
  const sent = async (method: string, path: string, key: string | null, body?: unknown): Promise<number> => {
    const headers = { ...JSON_BODY, ...(key === null ? {} : { "api-key": key }) };
    const more = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${server.url}${path}`, { method, headers, ...more });
    await answer.text();
    return answer.status;
  };
  const put = { points: ids.slice(1).map((id) => ({ id, vector: {} })) };
  const vectors = { points: ids.map((id) => ({ id, vector: { dense: [1, 0] } })) };
  assert.deepEqual(
    [
      await sent("GET", "/", null),
      await sent("GET", "/collections", null),
      await sent("GET", "/collections", "guess"),
      await sent("GET", "/collections", "read"),
      await sent("PUT", "/collections/c/points?wait=true", "read", put),
      await sent("PUT", "/collections/c/points?wait=true", "write", put),
      await sent("PUT", "/collections/c/points/vectors?wait=true", "write", vectors),
    ],
    [200, 401, 401, 200, 403, 200, 404],
  );
  const having = [...collections.values()].flatMap(({ points }) =>
    points.filter((one) => one.vectors.size > 0),
  );
  assert.equal(having.length, 31, "only the part with the missing point is affected, and none after it");
});
