import assert from "node:assert/strict";
import test from "node:test";
import { existsSync } from "node:fs";
import { readFile, symlink } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { EXIT } from "../../src/core/errors.ts";
import type { Engine } from "../../src/docker/engine.ts";
import {
  failureKindOf,
  helperIn,
  loginIn,
  pushFailure,
  type RegistryLogin,
  registryLogin,
} from "../../src/docker/push-image.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

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

test("the failure says that the environment is built, why it was not pushed, and what to type", () => {
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

test("an authority unknown to the engine is reported with the place for its certificate", () => {
  const why = 'Get "https://registry.example/v2/": x509: certificate signed by unknown authority';
  const { message, remedy } = pushFailure(DOCKER, { ...about, why, login: { kind: "none" } });
  assert.match(message, /: not trusted: /);
  assert.match(remedy, /\/etc\/docker\/certs\.d\/registry\.example\/ca\.crt/);
});

test("a token repeated by the registry is masked", () => {
  const login = { kind: "token", token: "t0ken of mine" } as const;
  const { message } = pushFailure(DOCKER, { ...about, why: `unauthorized: ${login.token}`, login });
  assert.match(message, /unauthorized: …$/);
});

test("a password repeated by the registry is masked", () => {
  const password = "s3cr3t pass";
  const base64 = Buffer.from(`me:${password}`).toString("base64");
  const why = `unauthorized: me:${password}, Basic ${base64}, ${encodeURIComponent(password)}`;
  const failure = pushFailure(DOCKER, { ...about, why, login: { kind: "login", username: "me", password } });
  assert.match(failure.message, /unauthorized: me:…, Basic …, …$/);
});

const auth = (text: string): string => Buffer.from(text).toString("base64");
const ME = { kind: "login", username: "me", password: "pass:word" } as const;
const REPOSITORY = "registry.example:5000/team/env";

const ENTRIES: readonly (readonly [string, string, string])[] = [
  ["a host and port", "registry.example:5000", REPOSITORY],
  ["an address", "https://registry.example:5000/v2/", REPOSITORY],
  ["docker's own name for its registry", "https://index.docker.io/v1/", "docker.io/team/env"],
];

for (const [what, name, repository] of ENTRIES)
  test(`a login under ${what} is used`, () => {
    assert.deepEqual(loginIn({ auths: { [name]: { auth: auth("me:pass:word") } } }, repository), ME);
  });

test("a login for another registry is not used", () => {
  const auths = {
    "registry.example": { auth: auth("me:x") },
    "another.example:5000": { auth: auth("me:y") },
  };
  assert.deepEqual(loginIn({ auths }, REPOSITORY), { kind: "none" });
  assert.deepEqual(loginIn({}, REPOSITORY), { kind: "none" });
});

test("a token in place of a password is used, also next to a name without one", () => {
  const entry = { auth: auth("00000000-0000:"), identitytoken: "t0ken" };
  assert.deepEqual(loginIn({ auths: { "registry.example:5000": entry } }, REPOSITORY), {
    kind: "token",
    token: "t0ken",
  });
});

test("an invalid entry is reported without its content", () => {
  const login = loginIn({ auths: { "registry.example:5000": { auth: auth("word") } } }, REPOSITORY);
  assert.match((login.kind === "none" && login.instead) || "", /not of the form NAME:PASSWORD$/);
  assert.doesNotMatch(JSON.stringify(login), /word|d29yZA/);
});

const HELPERS: readonly (readonly [string, object, string, object | undefined])[] = [
  ["for all", { credsStore: "pass" }, REPOSITORY, { helper: "pass", server: "registry.example:5000" }],
  [
    "for this registry before it",
    { credsStore: "pass", credHelpers: { "registry.example:5000": "ecr-login" } },
    REPOSITORY,
    { helper: "ecr-login", server: "registry.example:5000" },
  ],
  [
    "under the name that docker login left",
    { credsStore: "pass", auths: { "https://registry.example:5000/v2/": {} } },
    REPOSITORY,
    { helper: "pass", server: "https://registry.example:5000/v2/" },
  ],
  [
    "for docker's own registry",
    { credsStore: "pass" },
    "docker.io/team/env",
    { helper: "pass", server: "https://index.docker.io/v1/" },
  ],
  ["for another registry", { credHelpers: { "registry.example": "pass" } }, REPOSITORY, undefined],
  ["with an empty name", { credsStore: "" }, REPOSITORY, undefined],
];

for (const [what, config, repository, asked] of HELPERS)
  test(`the helper to ask: one ${what}`, () => {
    assert.deepEqual(helperIn(config as Readonly<Record<string, unknown>>, repository), asked);
  });

interface User extends AsyncDisposable {
  readonly place: Scratch;
  /** What is pushed with, where this is docker's config; what else there is may be said, too. */
  readonly login: (
    config: object | string,
    more?: Readonly<Record<string, string>>,
    ms?: number,
  ) => Promise<RegistryLogin>;
  /** A helper of this name does this. */
  readonly helper: (name: string, line: string) => Promise<string>;
}

async function user(): Promise<User> {
  const place = await scratch({ "work/x": "", "bin/x": "" });
  return {
    place,
    login: async (config, more = {}, ms) => {
      await place.write(".docker/config.json", typeof config === "string" ? config : JSON.stringify(config));
      const env = { HOME: place.path, PATH: `${place.at("bin")}:/usr/bin:/bin`, ...more };
      const { signal } = new AbortController();
      const asked = { env, repository: REPOSITORY, apart: place.at("work"), signal };
      return registryLogin({ ...asked, ...(ms === undefined ? {} : { ms }) });
    },
    helper: (name, line) => place.write(`bin/docker-credential-${name}`, `#!/bin/sh\n${line}\n`, 0o755),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

const insteadOf = (login: RegistryLogin): string =>
  login.kind === "none" ? (login.instead ?? "") : login.kind;
const WRITTEN = { auths: { "registry.example:5000": { auth: auth("me:pass:word") } } };

test("the login is read where docker keeps it, and nothing of a broken file is repeated", async () => {
  await using me = await user();
  assert.deepEqual(await me.login({}), { kind: "none" });
  assert.deepEqual(await me.login(WRITTEN), ME);
  await me.place.write("other/config.json", `{"auths": {"x": {"auth": "c2VjcmV0`);
  const broken = await me.login(WRITTEN, { DOCKER_CONFIG: me.place.at("other") });
  assert.match(insteadOf(broken), /config\.json cannot be read as JSON/);
  assert.doesNotMatch(JSON.stringify(broken), /c2VjcmV0/);
});

test("a helper in docker's config is called as docker does, and takes precedence over the file", async () => {
  await using me = await user();
  const { place } = me;
  const told = '{"ServerURL":"x","Username":"me","Secret":"of the helper"}';
  await me.helper("store", `echo "$@" >${place.at("asked")}; cat >>${place.at("asked")}; echo '${told}'`);
  const login = await me.login({ ...WRITTEN, credsStore: "store" });
  assert.deepEqual(login, { kind: "login", username: "me", password: "of the helper" });
  assert.equal(await place.read("asked"), "get\nregistry.example:5000\n");
  await me.helper("token", `echo '{"Username":"<token>","Secret":"t0ken"}'`);
  const credHelpers = { "registry.example:5000": "token" };
  assert.deepEqual(await me.login({ credHelpers, credsStore: "store" }), { kind: "token", token: "t0ken" });
});

async function gone(pid: number): Promise<void> {
  const patience = AbortSignal.timeout(20_000);
  for (;;) {
    // Who ended and was not yet buried has a status, and nothing else.
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "State:\tZ");
    if (/^State:\s+[ZX]/m.test(status)) return;
    assert.ok(!patience.aborted, `${pid} still runs`);
    await sleep(20);
  }
}

/** What a helper does, what is said of it, and the milliseconds that it has. */
const TROUBLES: Readonly<Record<string, readonly [string, RegExp, number?]>> = {
  "has no login": [
    "echo 'credentials not found in native keychain'; exit 1",
    /^docker-credential-odd has no login for it$/,
  ],
  "has no login and reports an empty one": [
    `echo '{"ServerURL":"x","Username":"","Secret":""}'`,
    /^docker-credential-odd has no login for it$/,
  ],
  "fails with a message": [
    "printf 'the keychain is \\033[2Jlocked\\n'; exit 3",
    /^docker-credential-odd ended with 3: the keychain is [^\u001b]*locked$/,
  ],
  "fails without a message": ["exit 4", /^docker-credential-odd ended with 4, without a message$/],
  "answers with something invalid": [
    "echo 's3cr3t of somebody'",
    /^the answer of docker-credential-odd is not a login$/,
  ],
  "answers without a password": [`echo '{"Username":"me"}'`, /is not a login$/],
  "never stops answering": ["yes s3cr3t", /answers with more than 65536 bytes$/],
  "hangs together with a process it started": [
    "trap '' TERM; sleep 1000 & echo $! >pids; sleep 1000",
    /gave no answer in 0\.5 s$/,
    500,
  ],
};

for (const [what, [line, says, ms]] of Object.entries(TROUBLES))
  test(`a helper that ${what} is reported, and the file's login is used`, async () => {
    await using me = await user();
    await me.helper("odd", `cd ${me.place.path}\n${line}`);
    const login = await me.login({ credsStore: "odd" }, {}, ms);
    assert.match(insteadOf(login), says);
    assert.doesNotMatch(JSON.stringify(login), /s3cr3t/);
    assert.deepEqual(await me.login({ ...WRITTEN, credsStore: "odd" }, {}, ms), ME);
    if (ms === undefined) return;
    const left = Number(await me.place.read("pids"));
    await gone(left);
  });

test("a missing helper or one with an invalid name is reported", async () => {
  await using me = await user();
  assert.match(
    insteadOf(await me.login({ credsStore: "gone" })),
    /there is no program docker-credential-gone/,
  );
  await me.place.write("evil", "#!/bin/sh\ntouch ran\n", 0o755);
  for (const credsStore of ["../evil", "x/../../evil", "-x", "a b"])
    assert.match(insteadOf(await me.login({ credsStore })), /has an invalid name$/);
});

test("no file of the workspace can name a helper or be one", async () => {
  await using me = await user();
  const { place } = me;
  const evil = `#!/bin/sh\ntouch ${place.at("ran")}\necho '{"Username":"me","Secret":"x"}'\n`;
  await place.write("work/bin/docker-credential-evil", evil, 0o755);
  const path = { PATH: `${place.at("work/bin")}:/usr/bin:/bin` };
  assert.match(insteadOf(await me.login({ credsStore: "evil" }, path)), /no program docker-credential-evil/);
  await me.helper("evil", `touch ${place.at("ran")}`);
  await place.write("work/.docker/config.json", JSON.stringify({ credsStore: "evil" }));
  await symlink(place.at("work/.docker"), place.at("link"));
  for (const DOCKER_CONFIG of [place.at("work/.docker"), place.at("link")])
    assert.match(insteadOf(await me.login({}, { DOCKER_CONFIG })), /is in this folder, so the helpers/);
  assert.ok(!existsSync(place.at("ran")));
});

test("an interruption does not wait for a helper", async () => {
  await using me = await user();
  await me.helper("slow", "sleep 1000");
  await me.login({ credsStore: "slow" }, {}, 1);
  const env = { HOME: me.place.path, PATH: `${me.place.at("bin")}:/usr/bin:/bin` };
  const signal = AbortSignal.abort(new Error("left"));
  const asked = { env, repository: REPOSITORY, apart: me.place.at("work"), signal };
  await assert.rejects(registryLogin(asked), { message: "left" });
});
