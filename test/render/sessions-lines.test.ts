import assert from "node:assert/strict";
import test from "node:test";
import type { SessionInfo } from "../../src/core/session.ts";
import { sessionTable } from "../../src/render/sessions-lines.ts";
import { fakeTerminal } from "../fakes/terminal.ts";

const session = (title: string, model = "qwen3:8b"): SessionInfo => ({
  id: "1ngbh78rtm4e",
  workspace: "/home/ann/a/folder/far/down/in/a/tree",
  mode: "workspace-write",
  model,
  provider: "ollama",
  title,
  started: 0,
  changed: 0,
  status: "interrupted",
  messages: 16,
});

const rows = (sessions: readonly SessionInfo[], columns: number | undefined, all = false) => {
  const { stream } = fakeTerminal(columns);
  return sessionTable(sessions, { now: 7000, all }, stream).trimEnd().split("\n");
};

test("a table of sessions fits its terminal: titles, folders and models are cut, ids never", () => {
  const sessions = [
    session("fix the sum and everything that hangs on it, then run the tests"),
    session("b", "x".repeat(60)),
  ];
  for (const [columns, all] of [
    [80, false],
    [100, true],
    [72, false],
    [60, false],
  ] as const) {
    const shown = rows(sessions, columns, all);
    assert.ok(
      shown.every((row) => row.length < columns),
      shown.join("\n"),
    );
    const at = shown[0]?.replaceAll(/\u001B\[\d+m/g, "").indexOf("TITLE") ?? 0;
    assert.equal(shown[1]?.slice(at, at + 3), "fix");
    assert.equal(shown[2]?.slice(at), "b");
    assert.ok(shown.slice(1).every((row) => row.startsWith("1ngbh78rtm4e  ")));
  }
});

test("a table that is not for a terminal is not cut", () => {
  const [, first = ""] = rows([session("a title of some words", "x".repeat(60))], undefined, true);
  assert.ok(first.endsWith("a title of some words"));
  assert.ok(first.includes("x".repeat(60)) && first.includes("/home/ann/a/folder/far/down/in/a/tree"));
});
