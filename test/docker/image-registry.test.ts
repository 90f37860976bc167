import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { startImageRegistry } from "../fakes/image-registry.ts";
import { scratch } from "../fixtures/scratch.ts";

const BYTES = Buffer.from("one layer's bytes");
const DIGEST = `sha256:${createHash("sha256").update(BYTES).digest("hex")}`;

/** The stand-in for registries takes a blob in each way that the specification has. */
const WAYS: Readonly<Record<string, (base: string) => Promise<Response>>> = {
  "one POST": (base) => fetch(`${base}/?digest=${DIGEST}`, { method: "POST", body: BYTES }),
  "POST and PUT": async (base) => {
    const { headers } = await fetch(`${base}/`, { method: "POST" });
    const at = new URL(headers.get("location") ?? "", base);
    return fetch(`${at.href}?digest=${DIGEST}`, { method: "PUT", body: BYTES });
  },
  "pieces by PATCH": async (base) => {
    let { headers } = await fetch(`${base}/`, { method: "POST" });
    for (const piece of [BYTES.subarray(0, 5), BYTES.subarray(5)]) {
      const at = new URL(headers.get("location") ?? "", base);
      const taken = await fetch(at, { method: "PATCH", body: piece });
      assert.equal(taken.status, 202);
      ({ headers } = taken);
    }
    assert.equal(headers.get("range"), `0-${BYTES.length - 1}`);
    return fetch(`${new URL(headers.get("location") ?? "", base).href}?digest=${DIGEST}`, { method: "PUT" });
  },
};

for (const [way, send] of Object.entries(WAYS))
  test(`a blob by ${way} is stored and matches its digest`, async () => {
    await using place = await scratch();
    await using registry = await startImageRegistry(place.at("registry"));
    const blobs = `http://${registry.host}/v2/team/env/blobs`;
    assert.equal((await fetch(`${blobs}/${DIGEST}`, { method: "HEAD" })).status, 404);
    assert.equal((await send(`${blobs}/uploads`)).status, 201);
    assert.deepEqual(Buffer.from(await (await fetch(`${blobs}/${DIGEST}`)).arrayBuffer()), BYTES);
    const wrong = await fetch(`${blobs}/uploads/?digest=${DIGEST}`, { method: "POST", body: "others" });
    assert.equal(wrong.status, 400);
  });
