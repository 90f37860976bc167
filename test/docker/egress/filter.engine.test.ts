import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import test from "node:test";
import { parseGrant, type SecretBinding } from "../../../src/core/network.ts";
import type { NetworkRequest } from "../../../src/docker/egress/box-network.ts";
import { httpAnswer, stub } from "../../fixtures/egress.ts";
import { skip } from "../../fixtures/engine.ts";
import { httpsStub, noCertificates } from "../../fixtures/https-stub.ts";
import { realBox } from "../../fixtures/real-box.ts";

const HOST = "api.test";
const SECRET: SecretBinding = {
  name: "TOKEN",
  placeholder: "PLACEHOLDER-1",
  value: "the-real-one-7",
  hosts: [HOST],
};

type Real = Awaited<ReturnType<typeof realBox>>;

async function said({ box }: Real, line: string): Promise<string> {
  const request = { words: ["bash", "-c", line], timeoutMs: 30_000, keep: { head: 2 ** 16, tail: 0 } };
  const { stdout, stderr } = await box.exec(request, AbortSignal.timeout(60_000));
  return Buffer.concat([stdout.head, stderr.head]).toString("utf8");
}

test(
  "a box reads what it was granted, using a secret that it never has",
  { skip: skip || noCertificates },
  async () => {
    const heard: IncomingMessage[] = [];
    await using host = await httpsStub([HOST], (request, response) => {
      heard.push(request);
      response.end(`you are ${request.headers.authorization}`);
    });
    const network: NetworkRequest = {
      grants: [parseGrant(`${HOST}:read:private`)],
      secrets: [SECRET],
      trust: () => Promise.resolve(host.authority),
      roots: host.authority,
      ...host.found,
    };
    await using real = await realBox({}, { network });
    const curl = `curl -sS -H 'Authorization: Bearer PLACEHOLDER-1' https://${HOST}/`;
    assert.equal(await said(real, curl), "you are Bearer PLACEHOLDER-1");
    assert.equal(heard[0]?.headers.authorization, "Bearer the-real-one-7");
    assert.match(await said(real, `${curl} -X DELETE`), /DELETE is not granted for api\.test/);
    assert.match(
      await said(
        real,
        `curl -sS --resolve api.test:443:127.0.0.1 --connect-to ::other.test: https://${HOST}/`,
      ),
      /403/,
    );
    assert.equal(heard.length, 1);
    assert.doesNotMatch(
      await said(real, "env; cat /proc/self/environ /run/harness/* 2>/dev/null"),
      /the-real-one-7/,
    );
  },
);

test("a box uses the host's own proxy and never sees its credentials", { skip }, async () => {
  await using proxy = await stub((socket) =>
    socket.once("data", () => socket.end(httpAnswer("by proxy\n", "Connection: close\r\n"))),
  );
  const network: NetworkRequest = {
    grants: [parseGrant("example.org")],
    trust: () => Promise.resolve(""),
    env: {
      http_proxy: `http://user:pass-9@127.0.0.1:${proxy.port}`,
      https_proxy: `http://127.0.0.1:${proxy.port}`,
    },
  };
  await using real = await realBox({}, { network });
  assert.equal(await said(real, "curl -sS http://example.org/"), "by proxy\n");
  assert.match(proxy.came(), /^GET http:\/\/example\.org\/ [^]*Proxy-Authorization: Basic /);
  assert.match(await said(real, "curl -sS http://other.test/"), /other\.test is not granted/);
  assert.equal(proxy.connections(), 1);
  assert.doesNotMatch(await said(real, "env; cat /run/harness/* 2>/dev/null"), /pass-9|cGFzcy05/);
});
