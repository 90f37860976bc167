import assert from "node:assert/strict";
import test from "node:test";
import { signedHeaders, type UnsignedRequest, uriEncoded } from "../../src/s3/bucket-access.ts";
import { KEY_ID, SECRET_KEY } from "../fakes/bucket-server.ts";

const HOST = "https://examplebucket.s3.amazonaws.com";
const CREDENTIALS = {
  accessKeyId: KEY_ID,
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  sessionToken: undefined,
};
const WHEN = { region: "us-east-1", at: new Date("2013-05-24T00:00:00Z") };

/** "Examples: Signature Calculations" in the reference of S3's API. */
const PUBLISHED: Readonly<Record<string, Omit<UnsignedRequest, "payload"> & { readonly payload?: string }>> =
  {
    f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41: {
      method: "GET",
      url: new URL(`${HOST}/test.txt`),
      headers: { range: "bytes=0-9" },
    },
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd": {
      method: "PUT",
      url: new URL(`${HOST}/${uriEncoded("test$file.text")}`),
      headers: { date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
      payload: "Welcome to Amazon S3.",
    },
    fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543: {
      method: "GET",
      url: new URL(`${HOST}/?lifecycle`),
    },
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7": {
      method: "GET",
      url: new URL(`${HOST}/?prefix=J&max-keys=2`),
    },
  };

for (const [signature, { payload = "", ...request }] of Object.entries(PUBLISHED))
  test(`the published example ${request.method} ${request.url.pathname}${request.url.search} has the published signature`, () => {
    const sent = signedHeaders({ ...request, payload: Buffer.from(payload) }, CREDENTIALS, WHEN);
    assert.equal(/Signature=(.*)$/.exec(sent["authorization"] ?? "")?.[1], signature);
    assert.match(
      sent["authorization"] ?? "",
      /^AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE\/20130524\/us-east-1\/s3\/aws4_request,SignedHeaders=[a-z0-9;-]+,/,
    );
  });

const signatureOf = (...given: Parameters<typeof signedHeaders>): string =>
  signedHeaders(...given)["authorization"] ?? "";

test("a different key, time or payload gives a different signature, and a token is signed too", () => {
  const request = { method: "PUT", url: new URL(`${HOST}/a`), payload: Buffer.from("x") };
  const all = [
    signatureOf(request, CREDENTIALS, WHEN),
    signatureOf({ ...request, payload: Buffer.from("y") }, CREDENTIALS, WHEN),
    signatureOf(request, { ...CREDENTIALS, secretAccessKey: SECRET_KEY }, WHEN),
    signatureOf(request, CREDENTIALS, { ...WHEN, at: new Date("2013-05-24T00:00:01Z") }),
    signatureOf(request, { ...CREDENTIALS, sessionToken: "t" }, WHEN),
  ];
  assert.equal(new Set(all).size, all.length);
  assert.match(all.at(-1) ?? "", /SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,/);
});
