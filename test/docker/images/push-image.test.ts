import assert from "node:assert/strict";
import test from "node:test";
import { EXIT } from "../../../src/core/errors.ts";
import type { Engine } from "../../../src/docker/engine.ts";
import { pushFailure, failureKindOf } from "../../../src/docker/images/push-image.ts";

const SAID: readonly (readonly [string, string])[] = [
  ["unauthorized: authentication required", "not authorised"],
  ["no basic auth credentials", "not authorised"],
  ["denied: requested access to the resource is denied", "refused"],
  ["unexpected status from PUT request to https://r/v2/: 403 Forbidden", "refused"],
  ["dial tcp 127.0.0.1:1: connect: connection refused", "no answer"],
  ["Get https://r/v2/: dial tcp: lookup r: no such host", "no answer"],
  ["received unexpected HTTP status: 503 Service Unavailable", "no answer"],
  ["EOF", "no answer"],
  ["the push made no progress for 300 s", "no answer"],
  ["http: server gave HTTP response to HTTPS client", "plain http"],
  ['Get "https://registry.test/v2/": x509: certificate signed by unknown authority', "not trusted"],
  ["error parsing HTTP 405 response body: invalid character 'M': \"Method not allowed\\n\"", "refused"],
  ["received unexpected HTTP status: 500 Internal Server Error", "a fault of the registry"],
  ["manifest invalid: manifest invalid", "failed"],
];

for (const [said, word] of SAID) test(`${said} is ${word}`, () => assert.equal(failureKindOf(said), word));

const DOCKER = { version: { name: "Docker" } } as unknown as Engine;
const about = { repository: "registry.example/team/env", why: "unauthorized: who are you" };

test("a failure says that the environment is built, why it was not pushed, and what to type", () => {
  const { exit, message, remedy } = pushFailure(DOCKER, { ...about, login: { kind: "none" } });
  assert.equal(exit, EXIT.failed);
  assert.equal(
    message,
    "the environment is built, but could not be pushed to registry.example/team/env: not authorised: unauthorized: who are you",
  );
  assert.equal(remedy, "docker login registry.example, then: harness env build, which pushes what is built");
  const instead = "docker-credential-x keeps its password, and no such helper is asked";
  const helped = pushFailure(DOCKER, { ...about, login: { kind: "none", instead } });
  assert.match(helped.remedy, /^docker login registry\.example \(docker-credential-x keeps .*\), then: /);
});

test("an authority that the engine does not know is named with where it is put", () => {
  const why = 'Get "https://registry.example/v2/": x509: certificate signed by unknown authority';
  const { message, remedy } = pushFailure(DOCKER, { ...about, why, login: { kind: "none" } });
  assert.match(message, /: not trusted: /);
  assert.match(remedy, /\/etc\/docker\/certs\.d\/registry\.example\/ca\.crt/);
});

test("a registry that repeats a token is not repeated", () => {
  const login = { kind: "token", token: "t0ken of mine" } as const;
  const { message } = pushFailure(DOCKER, { ...about, why: `unauthorized: ${login.token}`, login });
  assert.match(message, /unauthorized: …$/);
});

test("a registry that repeats a password is not repeated", () => {
  const password = "s3cr3t pass";
  const base64 = Buffer.from(`me:${password}`).toString("base64");
  const why = `unauthorized: me:${password}, Basic ${base64}, ${encodeURIComponent(password)}`;
  const failure = pushFailure(DOCKER, { ...about, why, login: { kind: "login", username: "me", password } });
  assert.match(failure.message, /unauthorized: me:…, Basic …, …$/);
});
