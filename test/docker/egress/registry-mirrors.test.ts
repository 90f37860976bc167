import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "smol-toml";
import { cargoSettings, mavenSettings, NO_SETTINGS } from "../../../src/docker/egress/registry-mirrors.ts";

const sourcesOf = (...texts: readonly string[]): unknown => {
  const { "cargo.toml": text = "" } = cargoSettings(texts).files;
  // Without the parser's own kind of objects.
  return JSON.parse(JSON.stringify(parse(text)["source"] ?? {}));
};

test("of cargo's settings the sources go into the box, without names, passwords, paths and programs", () => {
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

test("sources that lead nowhere, or in a circle, replace nothing", () => {
  assert.deepEqual(sourcesOf('[source.a]\nreplace-with = "b"\n[source.b]\nreplace-with = "a"\n'), {});
  assert.deepEqual(sourcesOf('[source.a]\nreplace-with = "constructor"\n'), {});
  assert.deepEqual(sourcesOf('[source.crates-io]\nreplace-with = "v"\n[source.v]\ndirectory = "/v"\n'), {});
  const itself = '[source.a]\nreplace-with = "a"\nregistry = "https://a.example.org/"\n';
  assert.deepEqual(sourcesOf(itself), { a: { registry: "https://a.example.org/" } });
});

test("settings of cargo that are none, or are broken, give nothing", () => {
  for (const texts of [[], [""], ["[source"], ["source = 3"], ['[source.x]\nregistry = "file:///srv"\n']])
    assert.deepEqual(cargoSettings(texts), NO_SETTINGS, texts[0]);
  const quoted = '[source."a\\"]\\nx"]\nregistry = "https://a.example.org/"\n';
  assert.deepEqual(sourcesOf(quoted), { 'a"]\nx': { registry: "https://a.example.org/" } });
});

test("the first of two files counts for a source that both name", () => {
  const [near, far] = ["near", "far"].map(
    (host) => `[source.m]\nregistry = "https://${host}.example.org/"\n`,
  );
  assert.deepEqual(sourcesOf(near ?? "", far ?? ""), { m: { registry: "https://near.example.org/" } });
});

const mirror = (id: string, of: string, url: string): string =>
  `<mirror><id>${id}</id><name>x</name>\n<url> ${url} </url><mirrorOf>${of}</mirrorOf></mirror>`;

test("maven's mirrors go into the box in their order, before the one that blocks plain http", () => {
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
