import assert from "node:assert/strict";
import test from "node:test";
import type { ChatController } from "../../src/app/run/chat-controller.ts";
import { grant as grantCommand } from "../../src/cli/chat/slash-session.ts";

const grant = (chat: ChatController, argument: string) => grantCommand({ chat, argument });

/** What a chat was told to change, and to keep. */
function chatWith(allow_domains: readonly string[]) {
  const told = { changed: [] as unknown[], kept: [] as unknown[] };
  const chat = {
    settings: { allow_domains },
    change: (settings: unknown) => Promise.resolve(void told.changed.push(settings)),
    keep: (grants: unknown) => {
      told.kept.push(grants);
      return Promise.resolve("/home/me/config.json");
    },
  } as unknown as ChatController;
  return { chat, told };
}

test("the current grants are shown, and new ones are added", async () => {
  const { chat, told } = chatWith([]);
  assert.match(await grant(chat, ""), /no network/);
  assert.match(
    await grant(chat, "npm Example.org:443"),
    /^For this chat the box may reach npm, example\.org:443\./,
  );
  assert.deepEqual(told, { changed: [{ allow_domains: ["npm", "example.org:443"] }], kept: [] });
  const more = chatWith(["npm"]);
  assert.equal(await grant(more.chat, ""), "npm");
  await grant(more.chat, "npm,pip");
  assert.deepEqual(more.told.changed, [{ allow_domains: ["npm", "pip"] }]);
});

test("with always the grant is also stored in the user's settings", async () => {
  const { chat, told } = chatWith(["npm"]);
  assert.match(
    await grant(chat, "always pip"),
    /^From now on \(\/home\/me\/config\.json\) the box may reach pip/,
  );
  assert.deepEqual(told, { changed: [{ allow_domains: ["npm", "pip"] }], kept: [["pip"]] });
});

test("an invalid grant changes nothing", async () => {
  const { chat, told } = chatWith([]);
  assert.match(await grant(chat, "nmp"), /^Nothing was granted\. "nmp": neither a preset \(npm/);
  assert.equal(
    await grant(chat, "npm foo..com"),
    'Nothing was granted. "foo..com": not a host name, at character 1\n  next: /grant ?',
  );
  assert.equal(
    await grant(chat, "always https://example.org/path"),
    'Nothing was granted. "https://example.org/path": this is an address; give only a host name, such as example.org, at character 1\n  next: /grant ?',
  );
  assert.match(await grant(chat, "http://bad_*"), /give only a host name, such as registry\.example\.org/);
  assert.match(await grant(chat, "always"), /^Name a host/);
  assert.deepEqual(told, { changed: [], kept: [] });
});
