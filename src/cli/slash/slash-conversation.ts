import { isTyped, withoutMode } from "../../app/run/person-request.ts";
import { HarnessError } from "../../core/errors.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { visible } from "../../core/visible.ts";
import { sessionTable } from "../../render/lists/sessions-lines.ts";
import { recalled } from "../chat-view.ts";
import type { SlashCall } from "./chat-commands.ts";
import { formatCount } from "../../core/wording.ts";

const NOTHING = "Nothing has been said yet.";

/** Keeps the current session; the next message begins another one. */
export async function begin({ chat }: SlashCall): Promise<string> {
  const { conversation } = chat;
  if (conversation === undefined) return "This already is a new session: nothing has been said in it.";
  await chat.begin();
  return `The next message begins a new session. To return to this one: /resume ${conversation.session.id}`;
}

/** Keeps the system prompt and the offered tools. */
export function clear({ chat: { conversation } }: SlashCall): string {
  if (conversation === undefined) return NOTHING;
  conversation.forget();
  return "The conversation is forgotten. Files stay as they are.";
}

/** Events give further details, with figures. */
export async function compact({ chat }: SlashCall): Promise<string> {
  const { conversation } = chat;
  if (conversation === undefined || conversation.memory.history.count === 0) return NOTHING;
  return (await chat.compact(conversation)) ? "" : "The conversation was not changed.";
}

export function undo({ chat: { conversation }, argument }: SlashCall): string {
  if (argument !== "") return visible(`/undo takes no argument, or files; it cannot undo ${argument}.`);
  if (conversation === undefined) return NOTHING;
  const { memory } = conversation;
  for (;;) {
    const text = memory.history.undo();
    if (text === undefined) return "There is nothing to take back.";
    // A message that the loop added for the person goes with the person's own.
    if (!isTyped({ role: "user", text })) continue;
    conversation.takeBack(memory.history.count);
    return `Taken back, with everything after it: ${visible(withoutMode(text))}\nFiles stay as they are: /diff shows what changed, /undo files takes all of it back.`;
  }
}

const MAX_SESSIONS = 10;

export async function sessions({ chat, output }: SlashCall): Promise<string> {
  const listed = (await chat.store()).list({ workspace: chat.workspace, limit: MAX_SESSIONS });
  if (listed.length === 0) return "There are no sessions of this folder.";
  return sessionTable(listed, { now: Date.now(), all: false }, output).trimEnd();
}

/** Without an id, resumes the latest other session of this folder. */
export async function resume({ chat, argument: given, output }: SlashCall): Promise<string> {
  const store = await chat.store();
  const others = store.list({ workspace: chat.workspace, limit: 2 });
  const id = given === "" ? others.find((each) => each.id !== chat.conversation?.session.id)?.id : given;
  if (id === undefined) return "There is no other session of this folder.";
  const session = opened(store, id);
  const { workspace, id: found } = session.info();
  if (workspace !== chat.workspace)
    return `${found} is a session of ${workspace}; to continue it there: harness resume ${found}`;
  const { liesElsewhere } = await import("../../app/sessions/session-hold.ts");
  const at = await liesElsewhere(chat.host, found);
  if (at !== undefined)
    return `The changes of ${found} are at ${visible(at)}, where this chat has no box; to continue it there: harness resume ${found}`;
  const conversation = await chat.resume(session);
  return `${recalled(conversation.memory.history.messages, output)}Continues ${found}.`;
}

/** The remedy is a chat command, because the person types it here. */
function opened(store: SessionStore, id: string): Session {
  try {
    return store.open(id);
  } catch (thrown) {
    throw thrown instanceof HarnessError
      ? new HarnessError(thrown.exit, thrown.message, "/sessions", thrown)
      : thrown;
  }
}

const PATIENCE_MS = 5000;

export async function cost({ chat }: SlashCall): Promise<string> {
  const { conversation, settings } = chat;
  if (conversation === undefined) return "Nothing has been asked yet.";
  const { usage, counted } = conversation;
  const { requests, prompt_tokens, completion_tokens, cached_tokens, cost: price } = usage;
  const client = await chat.model();
  const { context } = await client.capabilities(settings.chat_model, AbortSignal.timeout(PATIENCE_MS));
  const used = conversation.sizeFor(settings.chat_model).tokens(conversation.memory.history.view());
  const cached = cached_tokens === null ? "" : ` (${figure(cached_tokens)} cached)`;
  return [
    `session   ${conversation.session.id}`,
    `requests  ${figure(requests)}`,
    `tokens    ${atLeast(prompt_tokens, counted.prompt)} in${cached}, ${atLeast(completion_tokens, counted.completion)} out`,
    `cost      ${price === null ? "unknown" : price.toLocaleString("en-US", { maximumSignificantDigits: 3 })}`,
    `window    about ${figure(used)} of ${figure(context)} tokens (${Math.round((100 * used) / context)} %)`,
  ].join("\n");
}

/** For counts that a server did not give for every request. */
const atLeast = (count: number | null, counted: number): string =>
  count === null && counted > 0 ? `at least ${figure(counted)}` : figure(count);

const figure = (count: number | null): string => (count === null ? "unknown" : formatCount(count));
