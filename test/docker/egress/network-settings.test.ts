import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { createHash, X509Certificate } from "node:crypto";
import { writeFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import { parse } from "smol-toml";
import {
  aptSettings,
  cargoSettings,
  javaTrustStore,
  mavenSettings,
  networkVariables,
  NO_SETTINGS,
  TOOL_VARIABLES,
} from "../../../src/docker/egress/network-settings.ts";
import { scratch } from "../../fixtures/scratch.ts";

const PROXY = "http://127.0.0.1:3128";
const BUNDLE = "/run/harness/ca.pem";

/** What each tool's own documentation says that it reads: its way out, and whom it trusts. */
const WANTED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "curl, wget and most others": {
    http_proxy: PROXY,
    https_proxy: PROXY,
    all_proxy: PROXY,
    CURL_CA_BUNDLE: BUNDLE,
  },
  "python's urllib and requests": { HTTPS_PROXY: PROXY, SSL_CERT_FILE: BUNDLE, REQUESTS_CA_BUNDLE: BUNDLE },
  "node's fetch": { NODE_USE_ENV_PROXY: "1", HTTPS_PROXY: PROXY, NODE_EXTRA_CA_CERTS: BUNDLE },
  "npm and pnpm": { npm_config_proxy: PROXY, npm_config_https_proxy: PROXY, NODE_EXTRA_CA_CERTS: BUNDLE },
  yarn: { YARN_HTTP_PROXY: PROXY, YARN_HTTPS_PROXY: PROXY, YARN_HTTPS_CA_FILE_PATH: BUNDLE },
  pip: { PIP_PROXY: PROXY, PIP_CERT: BUNDLE },
  uv: { HTTPS_PROXY: PROXY, SSL_CERT_FILE: BUNDLE },
  cargo: { CARGO_HTTP_PROXY: PROXY, CARGO_HTTP_CAINFO: BUNDLE, CARGO_NET_GIT_FETCH_WITH_CLI: "true" },
  go: { HTTPS_PROXY: PROXY, SSL_CERT_FILE: BUNDLE },
  git: { GIT_CONFIG_KEY_0: "http.proxy", GIT_CONFIG_VALUE_0: PROXY, GIT_SSL_CAINFO: BUNDLE },
  apt: { APT_CONFIG: "/run/harness/apt.conf" },
  composer: { https_proxy: PROXY, COMPOSER_CAFILE: BUNDLE },
  bundler: { https_proxy: PROXY, SSL_CERT_FILE: BUNDLE },
};

for (const [tool, wanted] of Object.entries(WANTED))
  test(`${tool}: configured for the bridge and the host's certificates`, () => {
    const all = networkVariables([]);
    for (const [name, value] of Object.entries(wanted)) assert.equal(all[name], value, name);
  });

test("the box's own servers are reached without the proxy", () => {
  const all = networkVariables([]);
  for (const name of ["NO_PROXY", "no_proxy", "npm_config_noproxy"])
    assert.equal(all[name], "localhost,127.0.0.1,::1");
});

test("java, maven and gradle use the variable that every JVM reads", () => {
  const words = networkVariables([])["JAVA_TOOL_OPTIONS"]?.split(" ") ?? [];
  for (const scheme of ["http", "https"])
    assert.ok(
      words.includes(`-D${scheme}.proxyHost=127.0.0.1`) && words.includes(`-D${scheme}.proxyPort=3128`),
    );
  assert.ok(words.includes("-Djavax.net.ssl.trustStore=/run/harness/ca.jks"));
  assert.ok(words.every((word) => /^-D[\w.]+=[\w./]+$/.test(word)));
});

test("a project's settings for go are left alone", () => {
  const names = Object.keys(networkVariables([]));
  assert.deepEqual(
    names.filter((name) => name.startsWith("GO")),
    [],
  );
});

test("no variable occurs twice in the table", () => {
  const names = Object.values(TOOL_VARIABLES).flatMap((each) => Object.keys(each));
  assert.deepEqual(names.toSorted(), [...new Set(names)].toSorted());
});

/** As git itself reads its environment. */
function rewritten(address: string, hosts: readonly string[]): string {
  const { PATH = "" } = process.env;
  const env = { PATH, HOME: "/nonexistent", ...networkVariables(hosts.map((host) => ({ host }))) };
  return execFileSync("git", ["ls-remote", "--get-url", address], { env, encoding: "utf8", cwd: "/" }).trim();
}

test("git: ssh addresses become https, and git@ addresses only for granted hosts", () => {
  const hosts = ["code.test", "*.other.test", "::1"];
  assert.equal(rewritten("git@code.test:a/b.git", hosts), "https://code.test/a/b.git");
  assert.equal(rewritten("ssh://git@code.test/a/b.git", hosts), "https://code.test/a/b.git");
  assert.equal(rewritten("git://code.test/a/b.git", hosts), "https://code.test/a/b.git");
  assert.equal(rewritten("https://code.test/a/b.git", hosts), "https://code.test/a/b.git");
  assert.equal(rewritten("git@elsewhere.test:a/b.git", hosts), "git@elsewhere.test:a/b.git");
});

test("apt: both schemes and the certificates are configured", () => {
  assert.deepEqual(aptSettings().trim().split("\n"), [
    'Acquire::http::Proxy "http://127.0.0.1:3128";',
    'Acquire::https::Proxy "http://127.0.0.1:3128";',
    'Acquire::https::CAInfo "/run/harness/ca.pem";',
  ]);
});

const sourcesOf = (...texts: readonly string[]): unknown => {
  const { "cargo.toml": text = "" } = cargoSettings(texts).files;
  // Without the parser's own kind of objects.
  return JSON.parse(JSON.stringify(parse(text)["source"] ?? {}));
};

test("only the sources of cargo's settings are copied, without names, passwords, paths and programs", () => {
  const text = `
[build]
rustc-wrapper = "/opt/evil"
[source.crates-io]
replace-with = "near"
[source.near]
replace-with = "mirror"
[source."mirror"]
registry = "sparse+https://me:word@mirror.example.org:8443/index/"
[source.vendored]
directory = "/home/user/vendor"
[source.git]
git = "https://code.example.org/a.git"
branch = "x"
replace-with = "vendored"
[registries.own-team]
index = "sparse+https://me:word@own.example.org/"
token = "secret"
credential-provider = ["/opt/program"]
[registries."odd name"]
index = "https://odd.example.org/"
[registry]
default = "own-team"
`;
  assert.deepEqual(sourcesOf(text), {
    "crates-io": { "replace-with": "near" },
    near: { "replace-with": "mirror" },
    mirror: { registry: "sparse+https://mirror.example.org:8443/index/" },
  });
  const { variables, files } = cargoSettings([text]);
  assert.deepEqual(variables, {
    CARGO_REGISTRIES_OWN_TEAM_INDEX: "sparse+https://own.example.org/",
    CARGO_REGISTRY_DEFAULT: "own-team",
  });
  assert.doesNotMatch(JSON.stringify(files), /word|secret|\/opt|\/home|code\.example/);
});

test("sources that lead nowhere or in a circle replace nothing", () => {
  assert.deepEqual(sourcesOf('[source.a]\nreplace-with = "b"\n[source.b]\nreplace-with = "a"\n'), {});
  assert.deepEqual(sourcesOf('[source.a]\nreplace-with = "constructor"\n'), {});
  assert.deepEqual(sourcesOf('[source.crates-io]\nreplace-with = "v"\n[source.v]\ndirectory = "/v"\n'), {});
  const itself = '[source.a]\nreplace-with = "a"\nregistry = "https://a.example.org/"\n';
  assert.deepEqual(sourcesOf(itself), { a: { registry: "https://a.example.org/" } });
});

test("missing or broken cargo settings yield nothing", () => {
  for (const texts of [[], [""], ["[source"], ["source = 3"], ['[source.x]\nregistry = "file:///srv"\n']])
    assert.deepEqual(cargoSettings(texts), NO_SETTINGS, texts[0]);
  const quoted = '[source."a\\"]\\nx"]\nregistry = "https://a.example.org/"\n';
  assert.deepEqual(sourcesOf(quoted), { 'a"]\nx': { registry: "https://a.example.org/" } });
});

test("if two files name the same source, the first one is used", () => {
  const [near, far] = ["near", "far"].map(
    (host) => `[source.m]\nregistry = "https://${host}.example.org/"\n`,
  );
  assert.deepEqual(sourcesOf(near ?? "", far ?? ""), { m: { registry: "https://near.example.org/" } });
});

const mirror = (id: string, of: string, url: string): string =>
  `<mirror><id>${id}</id><name>x</name>\n<url> ${url} </url><mirrorOf>${of}</mirrorOf></mirror>`;

test("maven's mirrors are copied in order, before the one that blocks plain http", () => {
  const texts = [
    `<settings><servers><server><password>word</password></server></servers><mirrors>${mirror("one", "central", "https://me:word@one.example.org/m?a=1&amp;b=2")}</mirrors></settings>`,
    mirror("two", "*,!own", "http://two.example.org:8081/"),
    mirror("file", "*", "file:///srv/m2"),
    "<mirror><url>https://none.example.org/</url></mirror>",
  ];
  const { files, variables } = mavenSettings(texts, "-Dx=y");
  const text = files["maven/settings.xml"] ?? "";
  const found = [...text.matchAll(/<mirrorOf>(.*)<\/mirrorOf>\s*<url>(.*)<\/url>/g)];
  assert.deepEqual(
    found.map(([, of, url]) => [of, url]),
    [
      ["central", "https://one.example.org/m?a=1&amp;b=2"],
      ["*,!own", "http://two.example.org:8081/"],
      ["external:http:*", "http://0.0.0.0/"],
    ],
  );
  assert.doesNotMatch(text, /word|srv/);
  assert.deepEqual(variables, { JAVA_TOOL_OPTIONS: "-Dx=y" });
  assert.deepEqual(mavenSettings(["<settings/>"], "-Dx=y"), NO_SETTINGS);
});

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

test("every certificate is stored once, as DER", () => {
  const found = aliasesIn(javaTrustStore(`${PEM}\n# a comment\n${PEM}`));
  assert.deepEqual(
    [...found.values()].map((der) => new X509Certificate(der).fingerprint256),
    rootCertificates.slice(0, 3).map((pem) => new X509Certificate(pem).fingerprint256),
  );
});

test("truncated or invalid certificates are left out, and an empty store is valid", () => {
  const [first = ""] = rootCertificates;
  const broken = first.replace(/\n[^\n]+\n-----END/, "\n-----END");
  assert.equal(aliasesIn(javaTrustStore(`${broken}\n${first}`)).size, 1);
  assert.equal(aliasesIn(javaTrustStore("")).size, 0);
});

test("the trailer is the one that Java computes over password, salt and body", () => {
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

test("a JDK can read the store", { skip: noKeytool() }, async () => {
  await using place = await scratch();
  const file = place.at("ca.jks");
  writeFileSync(file, javaTrustStore(PEM));
  const listed = keytool("-list", "-keystore", file, "-storepass", "changeit");
  assert.equal(listed.match(/trustedCertEntry/g)?.length, 3);
  assert.throws(() => keytool("-list", "-keystore", file, "-storepass", "otherwise"));
});
