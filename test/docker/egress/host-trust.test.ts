import assert from "node:assert/strict";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import test from "node:test";
import { rootCertificates } from "node:tls";
import { readHostTrust } from "../../../src/docker/egress/host-trust.ts";
import { makeSessionAuthority } from "../../../src/docker/egress/tls-ending.ts";
import { scratch } from "../../fixtures/scratch.ts";

const A = makeSessionAuthority().pem;
const B = makeSessionAuthority().pem;
const C = makeSessionAuthority().pem;
const KEY = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });

const same = (pem: string, ...expected: readonly string[]): void =>
  assert.deepEqual(
    (pem.match(/-----BEGIN[^]*?-----END CERTIFICATE-----\n/g) ?? []).map(
      (each) => new X509Certificate(each).fingerprint256,
    ),
    expected.map((each) => new X509Certificate(each).fingerprint256),
  );

test("everything the host's tools trust becomes one bundle, each certificate once and without keys", async () => {
  await using place = await scratch({
    "system.crt": `# a comment\n${A}`,
    "company.pem": `${String(KEY)}${A}${B}`,
    "certs/1a2b3c4d.0": C,
    "certs/README": A,
  });
  const trust = await readHostTrust(
    {
      NODE_EXTRA_CA_CERTS: place.at("company.pem"),
      PIP_CERT: place.at("company.pem"),
      SSL_CERT_DIR: place.at("certs"),
    },
    [place.at("none.crt"), place.at("system.crt")],
  );
  same(trust.pem, A, B, C);
  assert.deepEqual(
    trust.sources.map(({ added }) => added),
    [1, 1, 1],
  );
  assert.match(trust.sources[1]?.from ?? "", /^NODE_EXTRA_CA_CERTS \(.*company\.pem\)$/);
  assert.deepEqual(trust.troubles, []);
  assert.ok(!trust.pem.includes("PRIVATE"));
});

test("a named certificate file that is unusable is reported, and the rest is used", async () => {
  await using place = await scratch({
    "system.crt": A,
    "empty.pem": "",
    "bad.pem": B.replaceAll(/^M.*$/gm, "AAAA"),
  });
  const trust = await readHostTrust(
    {
      SSL_CERT_FILE: place.at("gone.pem"),
      PIP_CERT: place.at("empty.pem"),
      GIT_SSL_CAINFO: place.at("bad.pem"),
      CURL_CA_BUNDLE: place.path,
      SSL_CERT_DIR: place.at("nowhere"),
    },
    [place.at("system.crt")],
  );
  same(trust.pem, A);
  assert.deepEqual(
    trust.troubles.map((trouble) => /^\w+/.exec(trouble)?.[0]),
    ["SSL_CERT_FILE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "SSL_CERT_DIR"],
  );
});

test("a host without a store uses Node's certificates", async () => {
  const trust = await readHostTrust({}, []);
  assert.ok((trust.pem.match(/BEGIN CERTIFICATE/g)?.length ?? 0) >= Math.min(rootCertificates.length, 20));
});
