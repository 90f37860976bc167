import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import type { VetComparison } from "../../src/core/behaviour.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { harness, type Ran } from "./run-command.ts";

const npm = (packages: Readonly<Record<string, object>>): string =>
  JSON.stringify({
    lockfileVersion: 3,
    packages: Object.fromEntries(
      Object.entries(packages).map(([name, each]) => [`node_modules/${name}`, each]),
    ),
  });
const at = (name: string, version: string, more: object = {}): object => ({
  version,
  resolved: `https://gitlab.com/${name}/-/${name}-${version}.tgz`,
  integrity: `sha512-${name}`,
  ...more,
});

const OLD = npm({ ms: at("ms", "2.1.3"), chalk: at("chalk", "5.0.0"), gone: at("gone", "1.0.0") });
const BUMPED = npm({
  ms: at("ms", "2.1.4"),
  chalk: at("chalk", "5.0.0"),
  "left-pad": at("left-pad", "1.3.0"),
});
const NOISY = npm({ ms: at("ms", "2.1.3", { hasInstallScript: true }), chalk: at("chalk", "5.0.0") });
const HOSTILE = npm({ ms: at("ms", "2.1.3", { integrity: "sha512-<b>" }), chalk: at("chalk", "5.0.0") });

async function placeWith(files: Readonly<Record<string, string>>): Promise<Scratch> {
  const place = await scratch();
  for (const [name, text] of Object.entries(files)) await place.write(`work/${name}`, text);
  return place;
}

/** No engine answers: nothing of it is needed. */
const compare = (place: Scratch, ...words: readonly string[]): Promise<Ran> =>
  harness(place, ["vet", "--compare", ...words], {
    env: { DOCKER_HOST: `unix://${place.at("none.sock")}`, COLUMNS: "60" },
  });

test("two lock files are compared without an engine, and new findings decide, in each output form", async () => {
  await using place = await placeWith({
    "old/package-lock.json": OLD,
    "bumped/package-lock.json": BUMPED,
    "noisy/package-lock.json": NOISY,
    before: OLD,
    after: HOSTILE,
  });
  const compared = async (one: string, other: string): Promise<readonly unknown[]> => {
    const ran = await compare(place, "--json", one, other);
    assert.match(ran.stdout, /^\{/, ran.stderr);
    const told = JSON.parse(ran.stdout) as VetComparison;
    assert.deepEqual([told.before.repository.kind, told.exit_code], ["lock", ran.code]);
    return [ran.code, told.verdict, told.findings.map(({ rule, text }) => `${rule} ${text}`)];
  };
  assert.deepEqual(await compared("old/package-lock.json", "bumped/package-lock.json"), [
    0,
    "quiet",
    [
      "change.dependency ms 2.1.3 becomes 2.1.4",
      "change.dependency left-pad 1.3.0 is new",
      "change.dependency gone 1.0.0 is removed",
    ],
  ]);
  const [code, verdict] = await compared("old/package-lock.json", "noisy/package-lock.json");
  assert.deepEqual([code, verdict], [30, "noisy"]);
  assert.deepEqual(await compared("old/package-lock.json", "before"), [0, "quiet", []]);
  const text = await compare(place, "--html", "page.html", "before", "after");
  assert.equal(text.code, 40, text.stderr);
  assert.match(text.stdout, /^HOSTILE {2}what is new\nbefore \(quiet\) → after \(quiet\)/);
  assert.match(text.stdout, /ms 2\.1\.3 has a different integrity hash/);
  assert.match(text.stdout, /nothing was run/);
  const page = await place.read("work/page.html");
  assert.match(page, /^<!doctype html>/);
  assert.match(page, /change\.integrity/);
  assert.doesNotMatch(page, /<script/);
});

test("what cannot be compared ends with 2 and the reason", async () => {
  await using place = await placeWith({
    "package-lock.json": OLD,
    "cut/package-lock.json": OLD.slice(0, -3),
    "binary/package-lock.json": "a\0b",
    "yarn.lock": '# yarn lockfile v1\n\nms@2:\n  version "2.1.3"\n',
    "words.md": "# Words\n",
    "other.json": "{}",
  });
  execFileSync("mkfifo", [place.at("work/go.sum")]);
  const cases: readonly (readonly [one: string, other: string, why: RegExp])[] = [
    ["package-lock.json", "yarn.lock", /different kinds: package-lock\.json and yarn\.lock/],
    ["package-lock.json", "cut", /cut is a folder: a lock file can only be compared with another/],
    ["words.md", "yarn.lock", /words\.md is not a known lock file/],
    ["yarn.lock", "not-there", /not-there does not exist/],
    ["yarn.lock", "https://example.test/a", /is an address/],
    [
      "package-lock.json",
      "cut/package-lock.json",
      /cut\/package-lock\.json is not a complete package-lock\.json/,
    ],
    ["binary/package-lock.json", "package-lock.json", /it is not text/],
    ["go.sum", "go.sum", /go\.sum is not a file/],
    ["other.json", "other.json", /neither a report of harness vet --json nor a known lock file/],
  ];
  for (const [one, other, why] of cases) {
    const ran = await compare(place, one, other);
    assert.equal(ran.code, 2, `${one} ${other}: ${ran.stdout}${ran.stderr}`);
    assert.match(ran.stderr, why);
  }
});
