import assert from "node:assert/strict";
import test from "node:test";
import { loginIn, registryLogin } from "../../../src/docker/images/registry-login.ts";
import { scratch } from "../../fixtures/scratch.ts";

const auth = (text: string): string => Buffer.from(text).toString("base64");
const ME = { kind: "login", username: "me", password: "pass:word" } as const;
const REPOSITORY = "registry.example:5000/team/env";

const ENTRIES: readonly (readonly [string, string, string])[] = [
  ["a host and port", "registry.example:5000", REPOSITORY],
  ["an address", "https://registry.example:5000/v2/", REPOSITORY],
  ["docker's own name of its registry", "https://index.docker.io/v1/", "docker.io/team/env"],
];

for (const [what, name, repository] of ENTRIES)
  test(`a login under ${what} counts`, () => {
    assert.deepEqual(loginIn({ auths: { [name]: { auth: auth("me:pass:word") } } }, repository), ME);
  });

test("a login for another registry does not", () => {
  const auths = {
    "registry.example": { auth: auth("me:x") },
    "another.example:5000": { auth: auth("me:y") },
  };
  assert.deepEqual(loginIn({ auths }, REPOSITORY), { kind: "none" });
  assert.deepEqual(loginIn({}, REPOSITORY), { kind: "none" });
});

const UNREAD: readonly (readonly [object, RegExp])[] = [
  [
    { auths: { "registry.example:5000": {} }, credsStore: "desktop" },
    /^docker-credential-desktop keeps .* no such helper is asked$/,
  ],
  [
    { credHelpers: { "registry.example:5000": "ecr-login" }, credsStore: "x" },
    /^docker-credential-ecr-login /,
  ],
  [{ auths: { "registry.example:5000": { identitytoken: "t0ken" } } }, /^docker keeps an identity token/],
  [{ auths: { "registry.example:5000": { auth: auth("word") } } }, /not of the form NAME:PASSWORD$/],
];

for (const [config, words] of UNREAD)
  test(`what is not read is said: ${words.source}`, () => {
    const login = loginIn(config as Readonly<Record<string, unknown>>, REPOSITORY);
    assert.equal(login.kind, "none");
    assert.match((login.kind === "none" && login.instead) || "", words);
    assert.doesNotMatch(JSON.stringify(login), /t0ken|d29yZA/);
  });

test("it is read where docker keeps it, and nothing is repeated of a file that is broken", async () => {
  await using place = await scratch();
  const env = { HOME: place.path };
  assert.deepEqual(await registryLogin(env, REPOSITORY), { kind: "none" });
  const entry = { auths: { "registry.example:5000": { auth: auth("me:pass:word") } } };
  await place.write(".docker/config.json", JSON.stringify(entry));
  assert.deepEqual(await registryLogin(env, REPOSITORY), ME);
  await place.write("other/config.json", `{"auths": {"x": {"auth": "c2VjcmV0`);
  const broken = await registryLogin({ ...env, DOCKER_CONFIG: place.at("other") }, REPOSITORY);
  assert.equal(broken.kind, "none");
  assert.match(JSON.stringify(broken), /config\.json cannot be read as JSON/);
  assert.doesNotMatch(JSON.stringify(broken), /c2VjcmV0/);
});
