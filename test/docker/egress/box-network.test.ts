import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { type Connection, parseGrant } from "../../../src/core/network.ts";
import type { Engine } from "../../../src/docker/engine.ts";
import {
  networkFolder,
  networkPlace,
  type NetworkRequest,
  openNetwork,
  reopenNetwork,
} from "../../../src/docker/egress/box-network.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { thisProcess } from "../../../src/boxes/box-record.ts";
import { blockedSince } from "../../../src/boxes/box.ts";

const OWNER = { pid: process.pid, start: "1", boot: "b" };
const REQUEST: NetworkRequest = {
  grants: [parseGrant("registry.test")],
  trust: () => Promise.resolve("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
};

const at = (host: string): Engine => ({ endpoint: { host } }) as unknown as Engine;

test("the folder of a network is mounted only for an engine reached by a socket", async () => {
  await using place = await scratch();
  const mounted = await networkPlace(at("unix:///run/docker.sock"), place.path, "0123456789abcdef");
  assert.deepEqual(mounted, { folder: networkFolder(place.path, "0123456789abcdef") });
  for (const host of ["tcp://127.0.0.1:2375", "ssh://me@build.test", "https://10.0.0.1:2376"]) {
    const { folder, relayed } = await networkPlace(at(host), place.path, "0123456789abcdef");
    assert.deepEqual([relayed, folder === mounted.folder], [true, false]);
  }
});

test("what a dead run left of an unmounted network is removed by the next one", async () => {
  await using place = await scratch();
  const far = await networkPlace(at("ssh://me@build.test"), place.path, "0123456789abcdef");
  const { opened } = await openNetwork({ ...REQUEST, grants: [] }, { folder: far.folder, owner: OWNER });
  await opened;
  await networkPlace(at("ssh://me@build.test"), place.path, "fedcba9876543210");
  assert.equal(existsSync(far.folder), false);
  const own = await openNetwork(
    { ...REQUEST, grants: [] },
    { folder: far.folder, owner: await thisProcess() },
  );
  await own.opened;
  await networkPlace(at("ssh://me@build.test"), place.path, "fedcba9876543210");
  assert.equal(existsSync(far.folder), true, "the twin: its run lives");
});

// As strict as a user's may be: what a box is to read is readable all the same.
process.umask(0o077);

const modeOf = (file: string): string => (statSync(file).mode & 0o777).toString(8);

test("its folder has the socket and the files of tools, passable for others and writable for nobody", async () => {
  await using place = await scratch();
  const folder = networkFolder(place.path, "0123456789abcdef");
  const { opened } = await openNetwork(REQUEST, { folder, owner: OWNER });
  const network = await opened;
  assert.deepEqual(readdirSync(folder).toSorted(), ["apt.conf", "ca.jks", "ca.pem", "egress.sock"]);
  assert.equal(readFileSync(path.join(folder, "ca.pem"), "utf8"), await REQUEST.trust());
  assert.deepEqual(
    ["", "ca.pem", "ca.jks"].map((name) => modeOf(path.join(folder, name))),
    ["711", "644", "644"],
  );
  assert.equal(modeOf(path.dirname(folder)), "700", "no other user of the host comes that far");
  assert.equal(network.env()["HTTPS_PROXY"], "http://127.0.0.1:3128");
  await network.leave();
  assert.equal(existsSync(path.join(folder, "egress.sock")), false);
  const again = await reopenNetwork(folder, REQUEST);
  assert.ok(existsSync(path.join(folder, "egress.sock")));
  await again?.remove();
  assert.equal(existsSync(path.dirname(folder)), false);
  assert.equal(await reopenNetwork(folder, REQUEST), undefined);
});

test("without a grant there is no proxy until one is added, and it goes with its last grant", async () => {
  await using place = await scratch();
  const folder = networkFolder(place.path, "0123456789abcdef");
  const { opened } = await openNetwork({ ...REQUEST, grants: [] }, { folder, owner: OWNER });
  const network = await opened;
  assert.deepEqual([readdirSync(folder), network.env(), network.connections()], [[], {}, []]);
  const withdraw = await network.grant([parseGrant("registry.test")], { REGISTRY: "there" });
  assert.ok(existsSync(path.join(folder, "egress.sock")));
  const { HTTPS_PROXY, REGISTRY } = network.env();
  assert.deepEqual([HTTPS_PROXY, REGISTRY], ["http://127.0.0.1:3128", "there"]);
  withdraw();
  assert.deepEqual(network.env(), {});
  await network.remove();
  assert.equal(existsSync(path.dirname(folder)), false);
});

test("trust that cannot be loaded leaves nothing behind", async () => {
  await using place = await scratch();
  const folder = networkFolder(place.path, "0123456789abcdef");
  const broken = { ...REQUEST, trust: () => Promise.reject(new Error("no such file")) };
  const { opened } = await openNetwork(broken, { folder, owner: OWNER });
  await assert.rejects(opened, /no such file/);
  assert.equal(existsSync(path.dirname(folder)), false);
});

const LINE: Connection = {
  at: 100,
  host: "a.test",
  port: 443,
  method: null,
  verdict: "denied",
  rule: "not-granted",
  reason: "the host a.test is not granted",
  up: 0,
  down: 0,
};

test("each host is listed once, and at most fifty of them", () => {
  const many = Array.from({ length: 300 }, (_, each) => ({ ...LINE, host: `h${each % 100}.test` }));
  const lines = [{ ...LINE, at: 99 }, { ...LINE, verdict: "allowed" as const }, ...many, LINE, LINE];
  const found = blockedSince({ connections: () => lines }, 100);
  assert.equal(found.length, 50);
  assert.ok(found.every(({ times }) => times === 3));
  assert.deepEqual(blockedSince({ connections: () => [{ ...LINE, at: 99 }, LINE, LINE] }, 100), [
    { host: "a.test", port: 443, method: null, rule: LINE.rule, reason: LINE.reason, times: 2 },
  ]);
});

test("settings of tools are written to its folder, including those of a later grant", async () => {
  await using place = await scratch();
  const folder = networkFolder(place.path, "0123456789abcdef");
  const files = { "maven/logging/x.properties": "a" };
  const { opened } = await openNetwork({ ...REQUEST, files }, { folder, owner: OWNER });
  const network = await opened;
  await network.grant([parseGrant("index.test")], {}, { "cargo.toml": "b" });
  const texts = ["maven/logging/x.properties", "cargo.toml"].map((name) =>
    readFileSync(path.join(folder, name), "utf8"),
  );
  assert.deepEqual(texts, ["a", "b"]);
  assert.deepEqual(
    ["maven", "maven/logging", "cargo.toml"].map((name) => modeOf(path.join(folder, name))),
    ["755", "755", "644"],
  );
  await network.remove();
});
