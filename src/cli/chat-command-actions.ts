import { isTyped, withoutMode } from "../app/run/mode-note.ts";
import { readLayer } from "../config/config-layers.ts";
import { type Mode, MODES } from "../core/decision.ts";
import { nearest } from "../core/spelling.ts";
import { visible } from "../core/visible.ts";
import { widthOfStream, wrapped } from "../render/tty/columns.ts";
import type { Output } from "../render/tty/output.ts";
import { sessionTable } from "../render/tty/sessions-lines.ts";
import type { ChatController } from "../app/run/chat-controller.ts";
import { recalled } from "./chat-view.ts";

const NOTHING = "Nothing has been said yet.";

/** The system prompt stays, and the tools that are offered. */
export function clear({ conversation }: ChatController): string {
  if (conversation === undefined) return NOTHING;
  conversation.memory.clear();
  return "The conversation is forgotten. Files are as they are.";
}

/** Events say more of it, with the figures. */
export async function compact(chat: ChatController): Promise<string> {
  const { conversation } = chat;
  if (conversation === undefined || conversation.memory.history.count === 0) return NOTHING;
  return (await chat.compact(conversation)) ? "" : "The conversation is as it was.";
}

export function undo({ conversation }: ChatController): string {
  if (conversation === undefined) return NOTHING;
  const { memory } = conversation;
  for (;;) {
    const text = memory.history.undo();
    if (text === undefined) return "There is nothing to take back.";
    // What the loop has said for the person goes with what they said.
    if (!isTyped({ role: "user", text })) continue;
    memory.rollBack(memory.history.count);
    return `Taken back, with all behind it: ${visible(withoutMode(text))}\nFiles are NOT changed back.`;
  }
}

const MAX_SESSIONS = 10;

export async function sessions(chat: ChatController, screen: Output): Promise<string> {
  const listed = (await chat.store()).list({ workspace: chat.workspace, limit: MAX_SESSIONS });
  if (listed.length === 0) return "There is none of this folder.";
  return sessionTable(listed, { now: Date.now(), all: false }, screen).trimEnd();
}

/** Without an id the last one of this folder that is not this one. */
export async function resume(chat: ChatController, given: string, screen: Output): Promise<string> {
  const store = await chat.store();
  const others = store.list({ workspace: chat.workspace, limit: 2 });
  const id = given === "" ? others.find((each) => each.id !== chat.conversation?.session.id)?.id : given;
  if (id === undefined) return "There is no other session of this folder.";
  const session = store.open(id);
  const { workspace, id: found } = session.info();
  if (workspace !== chat.workspace)
    return `${found} is a session of ${workspace}; there: harness resume ${found}`;
  const conversation = await chat.resume(session);
  return `${recalled(conversation.memory.history.messages, screen)}Goes on with ${found}.`;
}

/** How long a server may take to say what it has. */
const PATIENCE_MS = 5000;

export async function model(chat: ChatController, name: string): Promise<string> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const { chat_model: now, provider } = chat.settings;
  const client = await chat.model();
  const { models, reason } = await client.list(signal);
  const served = models === null ? `The server gives no list: ${reason}` : listOf(models);
  if (name === "") return visible(`${now} (${provider})\n${served}`);
  if (models !== null && !models.some((each) => each === name || each === `${name}:latest`)) {
    const near = nearest(name, models);
    const meant = near === undefined ? served : `Did you mean ${near}?`;
    return visible(`${client.server} has no model ${name}. ${meant}`);
  }
  await chat.change({ chat_model: name });
  const { context, tools } = await (await chat.model()).capabilities(name, signal);
  const calls = tools ? "calls tools natively" : "calls tools in its text";
  return visible(`From now on ${name} is asked: a window of ${figure(context)} tokens, ${calls}.`);
}

const MAX_MODELS = 20;

function listOf(models: readonly string[]): string {
  const more = models.length - MAX_MODELS;
  const rest = more > 0 ? ` and ${more} more` : "";
  return models.length === 0
    ? "The server has none."
    : `There are: ${models.slice(0, MAX_MODELS).join(", ")}${rest}`;
}

const isMode = (text: string): text is Mode => MODES.some((each) => each === text);

export async function mode(chat: ChatController, name: string): Promise<string> {
  const now = chat.settings.mode;
  if (name === "") return `${now}   (others: ${MODES.filter((each) => each !== now).join(", ")})`;
  if (!isMode(name)) return `There is no mode ${visible(name)}; there are: ${MODES.join(", ")}`;
  if (name === now) return `The mode is ${now} already.`;
  await chat.change({ mode: name });
  return `The mode is ${name} now. The next request that needs a box gets a new one.`;
}

/** For this chat, and with `always` for those that come. */
export async function grant(chat: ChatController, argument: string): Promise<string> {
  const { allow_domains: now } = chat.settings;
  if (argument === "")
    return now.length === 0 ? "Nothing is granted: the box has no network." : now.join(", ");
  const words = argument.split(/\s+/);
  const lasts = words[0] === "always";
  const { allow_domains: more = [] } = readLayer(
    { allow_domains: lasts ? words.slice(1) : words },
    () => "/grant",
  );
  if (more.length === 0)
    return "Say what: a host such as example.org:443, or npm, pip, cargo, go, maven, apt, git.";
  await chat.change({ allow_domains: [...new Set([...now, ...more])] });
  const file = lasts ? await chat.keep(more) : "";
  const where = file === "" ? "For this chat" : `From now on (${file})`;
  return visible(
    `${where} the box may reach ${more.join(", ")}. The next request that needs a box gets a new one.`,
  );
}

/** What is on; it is changed in the user's settings, and counts for chats that begin then. */
export function web({
  settings: { web: on, allow_domains: granted },
}: Pick<ChatController, "settings">): string {
  const place = on.search?.url === undefined ? "" : ` at ${on.search.url}`;
  const hosts = granted.length === 0 ? "no host is granted yet" : `granted: ${granted.join(", ")}`;
  return visible(
    [
      `web_fetch: ${on.fetch ? `on; ${hosts}` : "off"}`,
      `web_search: ${on.search === null ? "off" : `${on.search.provider}${place}`}`,
      ...(on.fetch && on.search !== null
        ? []
        : [
            `To turn them on: harness config set web '{"fetch": true, "search": {"provider": "exa"}}' (docs/web.md)`,
          ]),
    ].join("\n"),
  );
}

export function tools({ conversation }: ChatController, screen: Output): string {
  const offered = conversation?.state.tools ?? [];
  if (offered.length === 0) return "None is offered yet: they are there with the first request.";
  const column = Math.max(...offered.map(({ name }) => name.length)) + 2;
  const space = Math.max(MIN_WIDTH, widthOfStream(screen) - column - 2);
  return offered
    .map(({ name, description }) => `${name.padEnd(column)}${inOneLine(firstSentence(description), space)}`)
    .join("\n");
}

const MIN_WIDTH = 20;

function inOneLine(text: string, width: number): string {
  const [first = "", ...rest] = wrapped(text, width);
  return rest.length === 0 ? first : `${first} …`;
}

const firstSentence = (text: string): string => /^.*?[.:](?=\s|$)/s.exec(text)?.[0].slice(0, -1) ?? text;

export async function cost(chat: ChatController): Promise<string> {
  const { conversation, settings } = chat;
  if (conversation === undefined) return "Nothing has been asked yet.";
  const { requests, prompt_tokens, completion_tokens, cached_tokens, cost: price } = conversation.usage;
  const client = await chat.model();
  const { context } = await client.capabilities(settings.chat_model, AbortSignal.timeout(PATIENCE_MS));
  const used = conversation.sizeFor(settings.chat_model).tokens(conversation.memory.history.view());
  const cached = cached_tokens === null ? "" : ` (${figure(cached_tokens)} cached)`;
  return [
    `session   ${conversation.session.id}`,
    `requests  ${figure(requests)}`,
    `tokens    ${figure(prompt_tokens)} in${cached}, ${figure(completion_tokens)} out`,
    `cost      ${price === null ? "unknown" : price.toLocaleString("en-US", { maximumSignificantDigits: 3 })}`,
    `window    about ${figure(used)} of ${figure(context)} tokens (${Math.round((100 * used) / context)} %)`,
  ].join("\n");
}

const figure = (count: number | null): string => count?.toLocaleString("en-US") ?? "unknown";
