import assert from "node:assert/strict";
import test from "node:test";
import { HarnessRequests } from "../../../src/app/run/session-grants.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";
import type { EventBody } from "../../../src/core/events.ts";
import { parseGrant } from "../../../src/core/network.ts";
import { type Loopback, startLoopback } from "../../fakes/loopback.ts";

const LIVE = new AbortController().signal;

function requestsOf(domains: string[], denied: string[] = []) {
  const told: EventBody[] = [];
  const requests = new HarnessRequests({
    host: hostFrom({ HOME: "/nonexistent" }),
    settings: { ...DEFAULTS, deny_domains: denied },
    workspace: "/nonexistent",
    domains: () => domains,
    emit: (event) => void told.push(event),
    warn: () => undefined,
  });
  return { requests, told, [Symbol.asyncDispose]: () => requests[Symbol.asyncDispose]() };
}

const asked = ({ url }: Pick<Loopback, "url">) => ({ url: `${url}/`, method: "GET", headers: {} });

test("requests of the harness itself are reported like a box's connections, and follow later grants", async () => {
  await using server = await startLoopback([{ body: "{}" }]);
  const place = new URL(server.url).host;
  const domains: string[] = [];
  await using own = requestsOf(domains);
  const before = await own.requests.send(asked(server), LIVE);
  assert.deepEqual([before.kind, server.heard.length], ["refused", 0]);

  const withdraw = own.requests.grant([parseGrant(place)]);
  const during = await own.requests.send(asked(server), LIVE);
  assert.ok(during.kind === "answered");
  for await (const _ of during.body);
  withdraw();
  assert.equal((await own.requests.send(asked(server), LIVE)).kind, "refused");

  domains.push(place);
  assert.equal((await own.requests.send(asked(server), LIVE)).kind, "answered");
  assert.deepEqual(
    own.told.map((event) => event.type === "connection" && [event.verdict, event.rule, event.by]).slice(0, 3),
    [
      ["denied", "address-literal", "harness"],
      ["allowed", "granted", "harness"],
      ["denied", "address-literal", "harness"],
    ],
  );
});

test("access to a service covers only that service and grants nothing else, and a denied host stays denied", async () => {
  await using server = await startLoopback([{ body: "{}" }]);
  await using other = await startLoopback([{ body: "{}" }]);
  await using own = requestsOf([]);
  const service = own.requests.serviceAt(new URL(server.url));
  assert.equal((await service.send(asked(server), LIVE)).kind, "answered");
  assert.equal((await service.send(asked(other), LIVE)).kind, "refused");
  assert.equal((await own.requests.send(asked(server), LIVE)).kind, "refused");
  await using denied = requestsOf([], ["127.0.0.1"]);
  const refused = await denied.requests.serviceAt(new URL(server.url)).send(asked(server), LIVE);
  assert.deepEqual([refused.kind, refused.kind === "refused" && refused.rule], ["refused", "denied-host"]);
  assert.equal(other.heard.length, 0);
});
