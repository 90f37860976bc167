import assert from "node:assert/strict";
import test from "node:test";
import { type BugReport, bugReportText, redactor } from "../../src/telemetry/bug-report.ts";
import { fc } from "../fixtures/property.ts";
import { SECRET } from "../fixtures/secrets.ts";

const VALUE = "correct horse battery";
const redact = redactor({
  homes: ["/srv/people/alice", "/srv/people/alice/", "/mnt/real/alice"],
  users: ["alice", "root", ""],
  hosts: ["build-box.corp", "localhost"],
  values: [VALUE],
});

test("home folders and names of people and of the machine are masked wherever they occur", () => {
  for (const [text, clean] of [
    ["open /srv/people/alice/x.txt", "open ~/x.txt"],
    ["/mnt/real/alice", "~"],
    ["file:///srv/people/alice/a", "file://~/a"],
    [encodeURIComponent("/srv/people/alice/a"), "~%2Fa"],
    ["by Alice, for ALICE; alice-2 and malice", "by [user], for [user]; [user]-2 and malice"],
    ["/home/bob/x and /Users/carol/y", "/home/[user]/x and /Users/[user]/y"],
    ["at build-box.corp:22", "at [host]:22"],
    ["root owns it on localhost", "root owns it on localhost"],
    ["ssh://bob:pw@db/x", "ssh://[masked]@db/x"],
    ["https://me:[secret: password]@h/?t=[secret: x y] b", "https://[masked]@h/?[masked] b"],
    ["http://h/x?key=1&b=2 next", "http://h/x?[masked] next"],
    ["mail bob.b+c@example.org now", "mail [address] now"],
  ] as const)
    assert.equal(redact(text), clean);
});

test("known secret values are masked in each of their spellings", () => {
  for (const form of [
    VALUE,
    encodeURIComponent(VALUE),
    Buffer.from(VALUE).toString("base64").replace(/=+$/, ""),
  ])
    assert.ok(!redact(`a ${form} b`).includes(form), form);
});

test("masking a masked text changes nothing", () => {
  const pieces = fc.constantFrom(
    "/srv/people/alice",
    "alice",
    "://a:b@c",
    "?k=v",
    VALUE,
    " ",
    "/",
    "x@y.z",
    "[user]",
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 8 }), (parts) => {
      const clean = redact(parts.join(""));
      for (const private_ of ["/srv/people/alice", VALUE]) assert.ok(!clean.includes(private_), clean);
    }),
  );
});

test("a report with every kind of secret in every field contains none of them", () => {
  const all = SECRET.map(([, before, secret, behind]) => before + secret + behind);
  const text = `${all.join(" \n ")} /srv/people/alice ${VALUE} alice`;
  const report: BugReport = {
    made: Date.UTC(2026, 10, 23),
    versions: { harness: text },
    checks: [{ id: "engine", state: "fail", detail: text, remedy: text }],
    settings: [
      { key: "check", value: text, origin: text },
      { key: "secrets", value: { [text]: [text] }, origin: "user" },
    ],
    variables: ["OTEL_EXPORTER_OTLP_HEADERS"],
    logs: [
      {
        name: "1",
        entries: [
          { at: 0, level: "error", what: "failed", fields: { text, deep: { list: [text] }, stack: text } },
        ],
      },
    ],
  };
  const told = bugReportText(report, redact);
  for (const [kind, , secret] of SECRET)
    for (const form of [secret, JSON.stringify(secret).slice(1, -1)]) assert.ok(!told.includes(form), kind);
  assert.doesNotMatch(told, /alice|correct horse/i);
  for (const title of ["versions", "doctor", "settings that", "environment variables", "diagnostics"])
    assert.match(told, new RegExp(`^== ${title}`, "m"));
});

test("control characters are made visible, and very long logs are cut", () => {
  const entries = Array.from({ length: 400 }, () => ({
    at: 0,
    level: "info" as const,
    what: "\u001B[2J\u202E",
    fields: { text: "x".repeat(8000) },
  }));
  const logs = [
    { name: "new", entries: entries.slice(0, 10) },
    { name: "old", entries },
  ];
  const told = bugReportText(
    { made: 0, versions: {}, checks: [], settings: [], variables: [], logs },
    (text) => text,
  );
  assert.ok(!told.includes("\u001B") && !told.includes("\u202E"));
  assert.match(told, /-- new\n/);
  assert.match(told, /older entries are left out to limit the length/);
  assert.ok(told.length < 200_000);
});
