import assert from "node:assert/strict";
import type { AskedChat, AskedMessage } from "./run-command.ts";

/** How the requests of a run look to the model. */

/** The results of tools in a request, in order. */
export const resultsIn = (chat: AskedChat | undefined): readonly string[] =>
  (chat?.messages ?? []).filter(({ role }) => role === "tool").map(({ content }) => content);

/** The last tool result in the last request. */
export const lastResult = (chats: readonly AskedChat[]): string => resultsIn(chats.at(-1)).at(-1) ?? "";

export const toolsIn = (chat: AskedChat | undefined): readonly string[] =>
  (chat?.tools ?? []).map(({ function: { name } }) => name);

export const bytesOfChat = (chat: AskedChat): number => Buffer.byteLength(JSON.stringify(chat));

/**
 * Checks every request: the system prompt comes first and once, and after each reply as many results as it has calls.
 */
export function assertValid(chats: readonly AskedChat[]): void {
  assert.notEqual(chats.length, 0, "nothing was asked");
  for (const { messages } of chats) {
    assert.deepEqual(
      messages.flatMap(({ role }, at) => (role === "system" ? [at] : [])),
      [0],
    );
    assert.deepEqual(callsIn(messages), resultsBehind(messages));
  }
}

const callsIn = (messages: readonly AskedMessage[]): readonly number[] =>
  messages.map(({ tool_calls: calls = [] }) => calls.length);

/** For each message, the results that follow it directly. */
const resultsBehind = (messages: readonly AskedMessage[]): readonly number[] =>
  messages.map(({ role }, at) => {
    if (role === "tool") return 0;
    const behind = messages.slice(at + 1);
    const end = behind.findIndex((next) => next.role !== "tool");
    return end === -1 ? behind.length : end;
  });
