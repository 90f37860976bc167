import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import test from "node:test";
import {
  bundledSessions,
  type ReadBundle,
  recordsOfBundle,
  shownBundle,
} from "../../../src/app/sessions/read-bundle.ts";
import { bundleOf, openBundle } from "../../../src/sessions/session-bundle.ts";
import { RECORDS } from "../../contract/store-words.ts";
import { scratch } from "../../fixtures/scratch.ts";

const SESSION = {
  id: "s",
  workspace: "/w",
  mode: "workspace-write",
  provider: "ollama",
  model: "m",
  title: "t",
  started: 1,
  changed: 2,
  messages: 1,
  status: "done",
} as const;
const NONE = Buffer.alloc(0);

interface Holds {
  readonly events?: readonly string[];
  readonly records?: readonly string[];
  readonly started?: number;
  readonly title?: string;
}

/** A file of a stranger's, whose hashes are right. */
function bytesOf({ events = [], records = [], ...of }: Holds): Buffer {
  const about = {
    harness: null,
    policy: null,
    model: { provider: "ollama", name: "m", digest: null },
    session: { ...SESSION, ...of },
  };
  return bundleOf(about, {
    "events.jsonl": Buffer.from(events.join("\n")),
    "records.jsonl": Buffer.from(records.join("\n")),
    "changes.patch": NONE,
    "audit.jsonl": NONE,
    "settings.json": NONE,
  });
}

const read = (of: Holds): ReadBundle => ({
  file: "x.tar",
  opened: openBundle(bytesOf(of), "x.tar"),
  sha256: "5",
});

const shown = (events: readonly string[], of: Holds = {}): unknown => shownBundle(read({ ...of, events }));

const started = (at: number): string =>
  `{"at":${at},"event":{"type":"run.started","run":"r","seq":1,"task":"x","session":"s","resumed":false,"workspace":"/w","mode":"workspace-write","provider":"ollama","model":"m"}}`;
const nested = (depth: number): string =>
  `{"at":2,"event":{"type":"call.proposed","run":"r","seq":2,"call":"c","tool":"bash","args":{"[[":${"[".repeat(depth)}${"]".repeat(depth)}}}}`;

test("invalid times and endlessly nested events are refused, and values just within the limits are shown", () => {
  assert.doesNotThrow(() => shown([started(8.64e15), nested(500)]));
  for (const make of [
    () => shown([started(1e300)]),
    () => shown([started(-1)]),
    () => shown([started(1)], { started: 9e15 }),
    () => shown([started(1), nested(100_000)]),
  ])
    assert.throws(make, { name: "HarnessError", exit: 2 });
});

test("a manifest too large for a listing is refused", () => {
  assert.equal(read({ title: "t".repeat(1000) }).opened.manifest.session.title.length, 1000);
  assert.throws(() => read({ title: "t".repeat(2 ** 20) }), /manifest\.json is larger than 1 MiB/);
});

test("every valid record is read, and one that would break the display is refused by its line", () => {
  const lines = RECORDS.map((record) => JSON.stringify(record));
  assert.deepEqual(recordsOfBundle(read({ records: lines })), RECORDS);
  const [first = ""] = lines;
  for (const bad of [
    "{",
    "null",
    '{"kind":"unheard"}',
    '{"kind":"message","message":{"role":"user","text":7}}',
    '{"kind":"message","message":{"role":"assistant","text":"x"}}',
    '{"kind":"tasks","open":[null]}',
    '{"kind":"plan","plan":[{"text":"x","status":"nearly"}]}',
    '{"kind":"turn","result":{"status":"done","reason":7,"turns":1,"toolCalls":1}}',
    '{"kind":"answered","word":"\\u001b[2J"}',
    '{"kind":"parked","parked":{"question":{"tool":"x"}}}',
    `{"kind":"cleared","x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
  ])
    assert.throws(() => recordsOfBundle(read({ records: [first, bad] })), {
      name: "HarnessError",
      exit: 2,
      message: /x\.tar: line 2 of records\.jsonl is not a record/,
    });
});

test("a folder and a file whose names are not UTF-8 do not hide a session", async () => {
  await using place = await scratch({});
  const odd = Buffer.from("/\xff", "latin1");
  const folder = Buffer.concat([Buffer.from(place.path), odd]);
  await mkdir(folder);
  await writeFile(Buffer.concat([folder, odd]), bytesOf({ title: "in it" }));
  await writeFile(Buffer.concat([Buffer.from(place.path), odd, Buffer.from(".tar")]), "none");
  const { sessions, faults } = await bundledSessions({ env: {} }, place.path, { limit: 9 });
  assert.deepEqual(
    sessions.map(({ title, bundle }) => [title, bundle]),
    [["in it", `${place.path}/\udcff/\udcff`]],
  );
  assert.match(faults.join(), /^[^,]*\.tar is not a session bundle[^,]*$/);
});

test("a bundle lists what it does not contain", () => {
  const held = shownBundle(read({ events: [started(1)], records: ['{"kind":"cleared"}'] })).report.bundle;
  assert.equal(held?.sha256, "5");
  assert.deepEqual(
    held.not_held.map((each) => each.split(":")[0]),
    [
      "full outputs that the model was shown in pages",
      "values that were recognised as secrets",
      "the states of the files",
      "changes",
      "the audit",
    ],
  );
  const none = shownBundle(read({})).report.bundle?.not_held.join(";") ?? "";
  for (const said of [/the events: none/, /the conversation: no records/]) assert.match(none, said);
});
