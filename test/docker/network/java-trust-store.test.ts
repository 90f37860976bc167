import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { writeFileSync } from "node:fs";
import test from "node:test";
import { rootCertificates } from "node:tls";
import { javaTrustStore } from "../../../src/docker/network/java-trust-store.ts";
import { scratch } from "../../fixtures/scratch.ts";

const PEM = rootCertificates.slice(0, 3).join("\n");

/** Read as the format is described: a reader of its own. */
function aliasesIn(store: Buffer): ReadonlyMap<string, Buffer> {
  assert.deepEqual([store.readUInt32BE(0), store.readUInt32BE(4)], [0xfeedfeed, 2]);
  const found = new Map<string, Buffer>();
  let at = 12;
  const text = (): string => {
    const length = store.readUInt16BE(at);
    at += 2 + length;
    return store.toString("latin1", at - length, at);
  };
  for (let left = store.readUInt32BE(8); left > 0; left -= 1) {
    assert.equal(store.readUInt32BE(at), 2, "a trusted certificate");
    at += 4;
    const alias = text();
    at += 8;
    assert.equal(text(), "X.509");
    const length = store.readUInt32BE(at);
    found.set(alias, store.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  assert.equal(store.length - at, 20);
  return found;
}

test("every certificate once, as DER", () => {
  const found = aliasesIn(javaTrustStore(`${PEM}\n# a comment\n${PEM}`));
  assert.deepEqual(
    [...found.values()].map((der) => new X509Certificate(der).fingerprint256),
    rootCertificates.slice(0, 3).map((pem) => new X509Certificate(pem).fingerprint256),
  );
});

test("what is cut off or no certificate is left out; an empty store is one, too", () => {
  const [first = ""] = rootCertificates;
  const broken = first.replace(/\n[^\n]+\n-----END/, "\n-----END");
  assert.equal(aliasesIn(javaTrustStore(`${broken}\n${first}`)).size, 1);
  assert.equal(aliasesIn(javaTrustStore("")).size, 0);
});

test("the trailer is the one that Java computes over password, words and body", () => {
  const store = javaTrustStore(PEM);
  const [body, seal] = [store.subarray(0, -20), store.subarray(-20)];
  const key = Buffer.from("\0c\0h\0a\0n\0g\0e\0i\0t", "latin1");
  const hash = createHash("sha1").update(key).update("Mighty Aphrodite").update(body).digest();
  assert.deepEqual(hash, seal);
});

const keytool = (...words: readonly string[]): string =>
  execFileSync("keytool", words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

function noKeytool(): string | false {
  try {
    keytool("-help");
    return false;
  } catch {
    return "keytool (a JDK) is not here";
  }
}

test("a JDK reads it", { skip: noKeytool() }, async () => {
  await using place = await scratch();
  const file = place.at("ca.jks");
  writeFileSync(file, javaTrustStore(PEM));
  const listed = keytool("-list", "-keystore", file, "-storepass", "changeit");
  assert.equal(listed.match(/trustedCertEntry/g)?.length, 3);
  assert.throws(() => keytool("-list", "-keystore", file, "-storepass", "otherwise"));
});
