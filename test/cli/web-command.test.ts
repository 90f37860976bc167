import assert from "node:assert/strict";
import test from "node:test";
import { web } from "../../src/cli/chat/slash-session.ts";
import { DEFAULTS, type Settings } from "../../src/config/settings-schema.ts";

const said = (on: Settings["web"], allow_domains: string[] = []): readonly string[] =>
  web({ chat: { settings: { ...DEFAULTS, web: on, allow_domains } } }).split("\n");

test("/web shows what is on, where, and how to turn it on", () => {
  const off = said({ fetch: false, search: null });
  assert.deepEqual(off.slice(0, 2), ["web_fetch: off", "web_search: off"]);
  assert.match(off[2] ?? "", /harness config set web/);
  assert.deepEqual(
    said({ fetch: true, search: { provider: "searxng", url: "http://127.0.0.1:8888" } }, ["example.org"]),
    ["web_fetch: on; granted: example.org", "web_search: searxng at http://127.0.0.1:8888"],
  );
  assert.match(said({ fetch: true, search: null })[0] ?? "", /on; no host is granted yet/);
});
