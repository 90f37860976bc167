import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { hostFrom } from "../../src/app/host.ts";
import { modelClient } from "../../src/app/model-access.ts";
import { DEFAULTS, type Settings } from "../../src/config/settings-schema.ts";
import type { ModelRequest, Provider } from "../../src/core/model-provider.ts";
import { modelHealth } from "../../src/models/model-server.ts";
import { type KeyedProvider, PROVIDER_SERVERS } from "../../src/models/provider-servers.ts";
import { end, messages, start, textBlock } from "../fakes/anthropic-server.ts";
import { type Heard, JSON_TYPE, type Served, startLoopback } from "../fakes/loopback.ts";
import { chat, chunk } from "../fakes/openai-server.ts";

const NAMES = Object.keys(PROVIDER_SERVERS) as readonly KeyedProvider[];

/** Of every provider at once, as somebody has who uses them all. */
const KEYS = Object.fromEntries(NAMES.map((name) => [PROVIDER_SERVERS[name].variable, `key-of-${name}`]));
const KEYLESS = { HOME: "/nowhere" };

const REQUEST: ModelRequest = {
  model: "m",
  messages: [{ role: "user", text: "hello" }],
  tools: [],
};

const settingsOf = (provider: KeyedProvider, base_url: string | null): Settings => ({
  ...DEFAULTS,
  provider,
  base_url,
  chat_model: "m",
});

const LIST: Served = { headers: JSON_TYPE, body: JSON.stringify({ object: "list", data: [{ id: "m" }] }) };

const replyOf = (name: KeyedProvider): Served =>
  name === "anthropic"
    ? messages(start(), ...textBlock(0, "hi"), ...end("end_turn"))
    : chat(chunk({ role: "assistant", content: "hi" }), chunk({}, "stop"));

/** The path after the address in the settings. */
const TAILS = { anthropic: ["/v1/models", "/v1/messages"], other: ["/models", "/chat/completions"] } as const;

const tailsOf = (name: KeyedProvider): readonly [string, string] =>
  name === "anthropic" ? TAILS.anthropic : TAILS.other;

/** The headers that hold any key. */
const keysIn = ({ headers, text, path }: Heard): Readonly<Record<string, unknown>> => {
  assert.ok(!/key-of-/.test(text) && !/key-of-/.test(path));
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => String(value).includes("key-of-")));
};

const holdsOf = (name: KeyedProvider): Readonly<Record<string, string>> =>
  name === "anthropic" ? { "x-api-key": `key-of-${name}` } : { authorization: `Bearer key-of-${name}` };

async function endOf(provider: Provider, signal: AbortSignal): Promise<string> {
  let last = "";
  for await (const { type } of provider.stream(REQUEST, signal)) last = type;
  return last;
}

for (const name of NAMES)
  describe(name, () => {
    test("is called at its own paths with its own key, and never with another provider's", async () => {
      await using server = await startLoopback([LIST, replyOf(name)]);
      const host = hostFrom({ ...KEYLESS, ...KEYS });
      const client = modelClient(host, settingsOf(name, `${server.url}/base`));
      const { signal } = new AbortController();
      assert.deepEqual((await client.list(signal)).models, ["m"]);
      assert.equal(await endOf(client.provider(), signal), "finished");
      const [list, asked] = tailsOf(name);
      assert.deepEqual(
        server.heard.map(({ method, path }) => [method, path.split("?")[0]]),
        [
          ["GET", `/base${list}`],
          ["POST", `/base${asked}`],
        ],
      );
      for (const heard of server.heard) assert.deepEqual(keysIn(heard), holdsOf(name));
    });

    test("sends its key nowhere else: a redirect is not followed", async () => {
      await using other = await startLoopback([LIST]);
      await using server = await startLoopback([{ status: 307, headers: { location: `${other.url}/x` } }]);
      const client = modelClient(hostFrom({ ...KEYLESS, ...KEYS }), settingsOf(name, server.url));
      const signal = AbortSignal.timeout(20_000);
      assert.equal((await client.list(signal)).models, null);
      assert.equal(await endOf(client.provider(), signal), "failed");
      assert.ok(server.heard.length > 0);
      assert.deepEqual(other.heard, []);
    });

    test("without its key, reports the missing variable before anything is sent, or needs none", async () => {
      const { variable, local, title } = PROVIDER_SERVERS[name];
      const { [variable]: _, ...others } = KEYS;
      const host = hostFrom({ ...KEYLESS, ...others });
      await using server = await startLoopback([LIST]);
      const client = modelClient(host, settingsOf(name, null));
      if (local) assert.doesNotThrow(() => client.provider());
      else
        assert.throws(() => client.provider(), { exit: 2, message: new RegExp(`^${variable} is not set`) });
      const about = { provider: name, model: "m", env: host.env, keysFile: host.keysFile, maxContext: null };
      const { signal } = new AbortController();
      const told = await modelHealth({ ...about, signal, baseUrl: local ? server.url : null });
      if (local) {
        assert.match(told[0]?.detail ?? "", new RegExp(`^${title} API at`));
        assert.deepEqual(server.heard.map(keysIn), [{}]);
      } else assert.match(told.map(({ detail }) => detail).join(), new RegExp(`${variable} is not set`));
    });
  });
