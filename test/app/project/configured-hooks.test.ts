import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { type ExtensionParts, openExtensions } from "../../../src/app/project/open-extensions.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { DEFAULTS, type Settings } from "../../../src/config/settings-schema.ts";
import type { EventBody } from "../../../src/core/events.ts";
import type { HookDefinition } from "../../../src/core/added-programs.ts";
import { NO_HOOKS } from "../../../src/core/tool.ts";
import { fakeBox } from "../../fakes/box.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { trustAll } from "../../fixtures/trust-all.ts";

const signal = new AbortController().signal;
const call = { id: "c1", name: "bash", args: { command: "ls" } };

async function opened(place: Scratch, settings: Partial<Settings> = {}) {
  const host = hostFrom({ HOME: place.at("home"), PATH: process.env["PATH"] });
  const box = fakeBox({ workspace: place.at("work") });
  const events: EventBody[] = [];
  const emit = (event: EventBody): void => void events.push(event);
  const parts: ExtensionParts = {
    host,
    settings: { ...DEFAULTS, ...settings },
    origins: {},
    workspace: place.at("work"),
    session: "s1",
    requests: {
      send: () => Promise.reject(new Error("no requests here")),
      serviceAt: () => assert.fail("no requests here"),
    },
    box: () => Promise.resolve(box),
    emit,
    warn: () => undefined,
    signal,
  };
  const extensions = await openExtensions(parts);
  return { extensions, hooks: extensions.hooks ?? NO_HOOKS, box, events, asker: { emit, signal } };
}

const pre = (command: string | string[]): HookDefinition => ({ event: "PreToolUse", command });

test("without configured hooks nothing is loaded", async () => {
  await using place = await scratch({ "work/a.txt": "a" });
  assert.equal((await opened(place)).extensions.hooks, undefined);
});

test("a user's hook runs on the host next to their settings, and a file of the same name in the workspace never does", async () => {
  await using place = await scratch({ "work/a.txt": "a", "home/.config/harness/config.json": "{}" });
  await place.write("home/.config/harness/guard", "#!/bin/sh\npwd > here\necho no >&2; exit 2\n", 0o755);
  await place.write("work/guard", "#!/bin/sh\ntouch ran\n", 0o755);
  const { hooks, asker, box } = await opened(place, { hooks: [pre(["./guard"])] });
  assert.deepEqual(await hooks.before(call, asker), {
    kind: "vetoed",
    by: "./guard",
    owner: "user",
    reason: "no",
  });
  assert.equal((await place.read("home/.config/harness/here")).trim(), place.at("home/.config/harness"));
  assert.deepEqual([box.asked.length, existsSync(place.at("work/ran"))], [0, false]);
});

const written = (command: string): string => JSON.stringify([pre(command)]);

test("a project's hook is active only while it is trusted and unchanged, and runs only in the box", async () => {
  await using place = await scratch({ "work/.harness/hooks.json": written("touch ran") });
  assert.equal((await opened(place)).extensions.hooks, undefined);
  await trustAll(hostFrom({ HOME: place.at("home") }), place.at("work"));
  const trusted = await opened(place);
  await trusted.hooks.before(call, trusted.asker);
  assert.deepEqual(
    trusted.box.asked.map(({ words, folder }) => [words, folder]),
    [[["sh", "-c", "touch ran"], place.at("work")]],
  );
  assert.ok(!existsSync(place.at("work/ran")));
  await place.write("work/.harness/hooks.json", written("touch other"));
  assert.equal((await opened(place)).extensions.hooks, undefined);
});

test("the policy judges a project's hook, a denial holds, and both hooks are reported", async () => {
  await using place = await scratch({
    "work/.harness/hooks.json": JSON.stringify([pre("rm -rf /"), { ...pre("true"), name: "later" }]),
  });
  await trustAll(hostFrom({ HOME: place.at("home") }), place.at("work"));
  const { hooks, box, events, asker } = await opened(place);
  const said = await hooks.before(call, asker);
  assert.ok(
    said.kind === "vetoed" && /the policy denies its command/.test(said.reason),
    JSON.stringify(said),
  );
  assert.deepEqual(box.asked, []);
  const [event] = events;
  assert.deepEqual(event?.type === "hook" && [event.owner, event.did, event.decision], [
    "project",
    "failed",
    "deny",
  ]);
  const allowed = await opened(place);
  await allowed.hooks.stop("done", allowed.asker);
  assert.deepEqual(allowed.events, []);
});

test("a trusted hook file that can no longer be parsed ends the run", async () => {
  await using place = await scratch({ "work/.harness/hooks.json": '[{"event": "Halt", "command": "true"}]' });
  await trustAll(hostFrom({ HOME: place.at("home") }), place.at("work"));
  await assert.rejects(opened(place), /0\.event: expected one of PreToolUse/);
});
