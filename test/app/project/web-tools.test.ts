import assert from "node:assert/strict";
import test from "node:test";
import { openWebTools } from "../../../src/app/project/open-extensions.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { readLayer } from "../../../src/config/setting-rules.ts";
import { DEFAULTS, type Settings } from "../../../src/config/settings-schema.ts";
import type { OwnRequests } from "../../../src/core/network.ts";

async function opened(web: Settings["web"], env: Readonly<Record<string, string>> = {}) {
  const [said, asked]: [string[], string[]] = [[], []];
  const nobody: OwnRequests = { send: () => Promise.resolve({ kind: "unreachable", reason: "a test" }) };
  const extensions = await openWebTools({
    host: hostFrom({ HOME: "/nonexistent", ...env }),
    settings: { ...DEFAULTS, web },
    requests: {
      ...nobody,
      serviceAt: (url) => {
        asked.push(url.href);
        return nobody;
      },
    },
    warn: (text) => void said.push(text),
  });
  return { tools: extensions?.tools().map(({ name }) => name), said, asked };
}

test("the web tools exist only if the user's settings enable them", async () => {
  assert.deepEqual(await opened(DEFAULTS.web), { tools: undefined, said: [], asked: [] });
  assert.deepEqual((await opened({ fetch: true, search: null })).tools, ["web_fetch"]);
  const search = { provider: "exa" } as const;
  assert.deepEqual(await opened({ fetch: true, search }, { EXA_API_KEY: "abc" }), {
    tools: ["web_search", "web_fetch"],
    said: [],
    asked: ["https://api.exa.ai/"],
  });
  const own = { provider: "searxng", url: "http://127.0.0.1:8888/" } as const;
  assert.deepEqual((await opened({ fetch: false, search: own })).asked, ["http://127.0.0.1:8888/"]);
});

test("a service without its key is left out, with a notice", async () => {
  for (const [provider, variable] of [
    ["tavily", "TAVILY_API_KEY"],
    ["exa", "EXA_API_KEY"],
    ["brave", "BRAVE_API_KEY"],
  ] as const) {
    const none = await opened({ fetch: true, search: { provider } });
    assert.deepEqual(none.tools, ["web_fetch"]);
    assert.deepEqual(none.said, [
      `web_search is left out: ${provider} needs a key, and ${variable} is not set`,
    ]);
    const odd = await opened({ fetch: false, search: { provider } }, { [variable]: "a\nb" });
    assert.match(odd.said[0] ?? "", /contains characters that a request cannot carry/);
  }
});

const read = (web: unknown) => readLayer({ web }, () => "here").web;

test("the web settings are validated strictly", () => {
  assert.deepEqual(read({}), { fetch: false, search: null });
  assert.deepEqual(read({ fetch: true }), { fetch: true, search: null });
  for (const web of [
    true,
    { fetch: "yes" },
    { search: { provider: "google" } },
    { search: { provider: "searxng" } },
    { search: { provider: "exa", url: "file:///etc" } },
    { fetch: true, hosts: ["*"] },
  ])
    assert.throws(() => read(web), JSON.stringify(web));
});
