import assert from "node:assert/strict";
import test from "node:test";
import { shownBundle } from "../../../src/app/sessions/bundle-file.ts";
import { bundleOf, openBundle } from "../../../src/sessions/session-bundle.ts";

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

/** A file of a stranger's, whose hashes are right, shown. */
function shown(lines: readonly string[], times: { readonly started?: number } = {}): unknown {
  const about = {
    harness: null,
    policy: null,
    model: { provider: "ollama", name: "m", digest: null },
    session: { ...SESSION, ...times },
  };
  const bytes = bundleOf(about, {
    "events.jsonl": Buffer.from(lines.join("\n")),
    "records.jsonl": NONE,
    "changes.patch": NONE,
    "audit.jsonl": NONE,
    "settings.json": NONE,
  });
  return shownBundle({ opened: openBundle(bytes, "x.tar"), sha256: "" }, "x.tar");
}

const started = (at: number): string =>
  `{"at":${at},"event":{"type":"run.started","run":"r","seq":1,"task":"x","session":"s","resumed":false,"workspace":"/w","mode":"workspace-write","provider":"ollama","model":"m"}}`;
const nested = (depth: number): string =>
  `{"at":2,"event":{"type":"call.proposed","run":"r","seq":2,"call":"c","tool":"bash","args":{"[[":${"[".repeat(depth)}${"]".repeat(depth)}}}}`;

test("times that are none and events that are nested without end are refused, and what is near them is shown", () => {
  assert.doesNotThrow(() => shown([started(8.64e15), nested(500)]));
  for (const make of [
    () => shown([started(1e300)]),
    () => shown([started(-1)]),
    () => shown([started(1)], { started: 9e15 }),
    () => shown([started(1), nested(100_000)]),
  ])
    assert.throws(make, { name: "HarnessError", exit: 2 });
});
