import assert from "node:assert/strict";
import test from "node:test";
import { SessionGrants } from "../../../src/app/run/session-grants.ts";
import { hostFrom } from "../../../src/app/host.ts";
import type { GrantedNetwork } from "../../../src/core/ports.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";

const granting =
  (of: string[]) =>
  (grants: readonly { readonly host: string }[]): (() => void) => {
    const hosts = grants.map(({ host }) => host);
    of.push(...hosts);
    return () => void of.splice(0, of.length, ...of.filter((host) => !hosts.includes(host)));
  };

test("a person's grant applies to the box and to the harness's own requests, and is withdrawn from both", async () => {
  const open = { box: [] as string[], harness: [] as string[] };
  const network: GrantedNetwork = {
    connections: () => [],
    grant: (more) => Promise.resolve(granting(open.box)(more)),
  };
  const grants = new SessionGrants({
    host: hostFrom({ HOME: "/nonexistent" }),
    settings: DEFAULTS,
    workspace: "/nonexistent",
    box: { network: () => Promise.resolve(network), countPackages: () => Promise.resolve() },
    requests: { grant: granting(open.harness) },
    warn: () => undefined,
    keepGrant: () => Promise.resolve(),
  });
  const { signal } = new AbortController();
  const withdraw = await grants.grant({ domains: ["example.org"], for: "call" }, signal);
  assert.deepEqual([open, grants.domains()], [{ box: ["example.org"], harness: ["example.org"] }, []]);
  withdraw();
  assert.deepEqual(open, { box: [], harness: [] });
  await grants.grant({ domains: ["docs.example.org"], for: "session" }, signal);
  assert.deepEqual([open.harness, grants.domains()], [["docs.example.org"], ["docs.example.org"]]);
});

test("packages are counted only before a registry is granted to a running box", async () => {
  const done: string[] = [];
  const network: GrantedNetwork = {
    connections: () => [],
    grant: () => Promise.resolve(() => void done.push("granted")),
  };
  const grants = new SessionGrants({
    host: hostFrom({ HOME: "/nonexistent" }),
    settings: DEFAULTS,
    workspace: "/nonexistent",
    box: { network: () => Promise.resolve(network), countPackages: async () => void done.push("counted") },
    requests: { grant: () => () => undefined },
    warn: () => undefined,
    keepGrant: () => Promise.resolve(),
  });
  const { signal } = new AbortController();
  await grants.grant({ domains: ["example.org"], for: "session" }, signal);
  assert.deepEqual(done, []);
  await grants.grant({ domains: ["npm=npm.example.org:443"], for: "session" }, signal);
  assert.deepEqual(done, ["counted"]);
});
