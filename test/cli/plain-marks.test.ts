import assert from "node:assert/strict";
import { test } from "node:test";
import { closingMessage, HandoffNotes, recalled } from "../../src/cli/chat/chat-screen.ts";
import { explanation } from "../../src/render/policy-lines.ts";
import type { Output } from "../../src/render/tty/output.ts";
import { itemText } from "../../src/render/repository-lines.ts";
import { fakeTerminal } from "../fakes/terminal.ts";

const MARKS = /[✗✓▸⊘≡·│›→•^~!]/u;

type Ended = Parameters<typeof closingMessage>[0];
const ended = (status: string): Ended =>
  ({
    status,
    reason: "it had no more turns.",
    tool_calls: 2,
  }) as unknown as Ended;

/** What these say in words; on a screen with marks each of them has one. */
const SAYS: Readonly<Record<string, (stream: Output) => string>> = {
  "a request that was cancelled": (stream) => closingMessage(ended("interrupted"), stream),
  "a request that has no turns left": (stream) => closingMessage(ended("budget"), stream),
  "a request that failed": (stream) => closingMessage(ended("error"), stream),
  "what to look at before anything is run": (stream) =>
    new HandoffNotes().lines([{ path: "Makefile", tier: "dangerous", reason: "it is run by make" }], stream),
  "what was said before": (stream) => recalled([{ role: "user", text: "hello" }], stream),
  "why a command is refused": (stream) =>
    explanation(
      {
        text: "ls && rm -rf /",
        decision: {
          decision: "deny",
          contained: false,
          rules: [{ id: "delete", reason: "it deletes", span: [6, 14] }],
        },
        verdicts: ["deny"],
        effects: [],
        hintFor: () => undefined,
        mode: "workspace-write",
        onAsk: "contained",
        writes: false,
      },
      stream,
    ),
  "what a project would loosen": (stream) =>
    itemText(
      {
        what: "settings",
        files: [".harness/config.json"],
        standing: "new",
        declined: false,
        does: [
          { text: "mode becomes wider", loosens: true },
          { text: "fewer pids", loosens: false },
        ],
        problem: null,
        waits: true,
        diff: [],
      } as unknown as Parameters<typeof itemText>[0],
      stream,
    ),
};

for (const [what, say] of Object.entries(SAYS))
  test(`with --plain, ${what} is shown in words without marks`, () => {
    const { stream } = fakeTerminal(80);
    assert.match(say(stream), MARKS, "on a screen it has a mark");
    stream.becomePlain();
    const told = say(stream);
    assert.doesNotMatch(told, MARKS);
    assert.match(told, /[a-z]{3}/);
  });

test("with --plain the part that a rule applies to is named instead of pointed at", () => {
  const { stream } = fakeTerminal(80);
  stream.becomePlain();
  assert.match(SAYS["why a command is refused"]?.(stream) ?? "", /^ {4}at: rm -rf \/$/m);
});
