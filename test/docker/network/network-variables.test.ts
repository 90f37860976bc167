import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import {
  aptSettings,
  networkVariables,
  TOOL_VARIABLES,
} from "../../../src/docker/network/network-variables.ts";

const [PROXY, BUNDLE] = ["http://127.0.0.1:3128", "/run/harness/ca.pem"];

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
  test(`${tool}: pointed at the bridge, and at whom the host trusts`, () => {
    const all = networkVariables([]);
    for (const [name, value] of Object.entries(wanted)) assert.equal(all[name], value, name);
  });

test("servers of the box's own are reached without the proxy", () => {
  const all = networkVariables([]);
  for (const name of ["NO_PROXY", "no_proxy", "npm_config_noproxy"])
    assert.equal(all[name], "localhost,127.0.0.1,::1");
});

test("java, maven and gradle: by what every JVM reads", () => {
  const words = networkVariables([])["JAVA_TOOL_OPTIONS"]?.split(" ") ?? [];
  for (const scheme of ["http", "https"])
    assert.ok(
      words.includes(`-D${scheme}.proxyHost=127.0.0.1`) && words.includes(`-D${scheme}.proxyPort=3128`),
    );
  assert.ok(words.includes("-Djavax.net.ssl.trustStore=/run/harness/ca.jks"));
  assert.ok(words.every((word) => /^-D[\w.]+=[\w./]+$/.test(word)));
});

test("what a project sets for go stays as it is", () => {
  const names = Object.keys(networkVariables([]));
  assert.deepEqual(
    names.filter((name) => name.startsWith("GO")),
    [],
  );
});

test("no variable stands in the table twice", () => {
  const names = Object.values(TOOL_VARIABLES).flatMap((each) => Object.keys(each));
  assert.deepEqual(names.toSorted(), [...new Set(names)].toSorted());
});

/** As git itself reads its environment. */
function rewritten(address: string, hosts: readonly string[]): string {
  const { PATH = "" } = process.env;
  const env = { PATH, HOME: "/nonexistent", ...networkVariables(hosts.map((host) => ({ host }))) };
  return execFileSync("git", ["ls-remote", "--get-url", address], { env, encoding: "utf8", cwd: "/" }).trim();
}

test("git: addresses of ssh are read as https, those of git@ by the names of granted hosts", () => {
  const hosts = ["code.test", "*.other.test", "::1"];
  assert.equal(rewritten("git@code.test:a/b.git", hosts), "https://code.test/a/b.git");
  assert.equal(rewritten("ssh://git@code.test/a/b.git", hosts), "https://code.test/a/b.git");
  assert.equal(rewritten("git://code.test/a/b.git", hosts), "https://code.test/a/b.git");
  assert.equal(rewritten("https://code.test/a/b.git", hosts), "https://code.test/a/b.git");
  assert.equal(rewritten("git@elsewhere.test:a/b.git", hosts), "git@elsewhere.test:a/b.git");
});

test("apt: both schemes, and whom to trust", () => {
  assert.deepEqual(aptSettings().trim().split("\n"), [
    'Acquire::http::Proxy "http://127.0.0.1:3128";',
    'Acquire::https::Proxy "http://127.0.0.1:3128";',
    'Acquire::https::CAInfo "/run/harness/ca.pem";',
  ]);
});
