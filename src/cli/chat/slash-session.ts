/** Commands of the chat for the session: its conversation, its settings, and its rules. */
import { modelClient } from "../../app/model-access.ts";
import { commandPolicy, explain, nextCommand } from "../../app/project/policy-commands.ts";
import { wordsOfRule, workspacePolicy } from "../../app/project/policy-context.ts";
import type { ChatController, DecidedCall } from "../../app/run/chat-controller.ts";
import { isTyped, typedText } from "../../app/run/person-request.ts";
import { readLayer } from "../../config/setting-rules.ts";
import { PROVIDERS } from "../../config/setting-words.ts";
import { type Mode, MODES } from "../../core/decision.ts";
import { HarnessError } from "../../core/errors.ts";
import { isPreset, readGrant, splitGrants } from "../../core/network.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { formatCount, firstLines, firstOf, nearest } from "../../core/wording.ts";
import { explanation } from "../../render/policy-lines.ts";
import { costWords, countWords } from "../../render/report-form.ts";
import { sessionTable } from "../../render/sessions-lines.ts";
import { widthOfStream, wrapped } from "../../render/tty/columns.ts";
import { type Output, styleText } from "../../render/tty/output.ts";
import type { SlashCall } from "./chat-commands.ts";
import { recalled } from "./chat-screen.ts";

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
    return `Taken back, with everything after it: ${visible(typedText(text))}\nFiles stay as they are: /diff shows what changed, /undo files takes all of it back.`;
  }
}

const MAX_SESSIONS = 10;

export async function sessions({ chat, output }: SlashCall): Promise<string> {
  const listed = (await chat.store()).list({ workspace: chat.workspace, limit: MAX_SESSIONS });
  if (listed.length === 0) return "There are no sessions of this folder.";
  return sessionTable(listed, { now: Date.now(), all: false }, output).trimEnd();
}

/** Without an id, resumes the latest other session of this folder. */
export async function resume({ chat, argument: typed, output }: SlashCall): Promise<string> {
  const store = await chat.store();
  const others = store.list({ workspace: chat.workspace, limit: 2 });
  const id = typed === "" ? others.find((each) => each.id !== chat.conversation?.session.id)?.id : typed;
  if (id === undefined) return "There is no other session of this folder.";
  const session = openSession(store, id);
  const { workspace, id: found } = session.info();
  if (workspace !== chat.workspace)
    return `${found} is a session of ${workspace}; to continue it there: harness resume ${found}`;
  const { copyElsewhere } = await import("../../app/sessions/session-hold.ts");
  const at = await copyElsewhere(chat.host, found);
  if (at !== undefined)
    return `The changes of ${found} are at ${visible(at)}, where this chat has no box; to continue it there: harness resume ${found}`;
  const conversation = await chat.resume(session);
  return `${recalled(conversation.memory.history.messages, output)}Continues ${found}.`;
}

/** The remedy is a chat command, because the person types it here. */
function openSession(store: SessionStore, id: string): Session {
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
  const used = conversation.state.sizeFor(settings.chat_model).tokens(conversation.memory.history.view());
  const cached = cached_tokens === null ? "" : ` (${countWords(cached_tokens)} cached)`;
  return [
    `session   ${conversation.session.id}`,
    `requests  ${countWords(requests)}`,
    `tokens    ${atLeast(prompt_tokens, counted.prompt)} in${cached}, ${atLeast(completion_tokens, counted.completion)} out`,
    `cost      ${costWords(price, null)}`,
    `window    about ${countWords(used)} of ${countWords(context)} tokens (${Math.round((100 * used) / context)} %)`,
  ].join("\n");
}

/** For counts that a server did not give for every request. */
const atLeast = (count: number | null, counted: number): string =>
  count === null && counted > 0 ? `at least ${countWords(counted)}` : countWords(count);

export async function model({ chat, argument: name }: SlashCall): Promise<string> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const { chat_model: now, provider } = chat.settings;
  const client = await chat.model();
  const { models, reason } = await client.list(signal);
  const served = models === null ? `The server gave no list of models: ${reason}` : listOf(models);
  if (name === "") return visible(`${now} (${provider})\n${served}`);
  if (models !== null && !models.some((each) => each === name || each === `${name}:latest`)) {
    const near = nearest(name, models);
    const meant = near === undefined ? served : `Did you mean ${near}?`;
    return visible(`${client.server} has no model ${name}. ${meant}`);
  }
  await chat.change({ chat_model: name });
  if (models === null)
    return visible(
      `The model is now ${name}, but nothing is known about it: ${client.server} gave no list of models: ${reason}`,
    );
  const { context, tools } = await (await chat.model()).capabilities(name, signal);
  const calls = tools ? "calls tools natively" : "calls tools in its text";
  return visible(`The model is now ${name}: a window of ${formatCount(context)} tokens, ${calls}.`);
}

/**
 * Changes the server for later requests; the conversation stays. An address and a model may follow the provider's name.
 */
export async function provider({ chat, argument }: SlashCall): Promise<string> {
  const { provider: now, chat_model, base_url } = chat.settings;
  const others = PROVIDERS.filter((each) => each !== now).join(", ");
  if (argument === "") {
    const { server } = await chat.model();
    return visible(`${now} at ${server}, model ${chat_model}   (others: ${others})`);
  }
  const [name = "", ...words] = argument.split(/\s+/);
  const wanted = PROVIDERS.find((each) => each === name);
  if (wanted === undefined) {
    const near = nearest(name, PROVIDERS);
    return visible(
      `There is no provider ${name}. ${near === undefined ? `Providers: ${others}` : `Did you mean ${near}?`}`,
    );
  }
  const address = words.find((word) => word.includes("://"));
  const model = words.find((word) => !word.includes("://")) ?? chat_model;
  const layer = readLayer(address === undefined ? {} : { base_url: address }, () => "/provider");
  const place = layer.base_url ?? (wanted === now ? base_url : null);
  const change = { provider: wanted, base_url: place, chat_model: model };
  const client = modelClient(chat.host, { ...chat.settings, ...change });
  const { models, reason } = await client.list(AbortSignal.timeout(PATIENCE_MS));
  if (models === null)
    return visible(`Nothing was changed: ${client.server} gave no list of models: ${reason}`);
  if (!models.some((each) => each === model || each === `${model}:latest`))
    return visible(
      `Nothing was changed: ${client.server} has no model ${model}. ${listOf(models)}. Type: /provider ${argument.replace(model, "").trim()} MODEL`,
    );
  await chat.change(change);
  return visible(`The model is now ${model} at ${client.server} (${wanted}); the conversation continues.`);
}

const MAX_MODELS = 20;

const listOf = (models: readonly string[]): string =>
  models.length === 0 ? "The server has no models." : `Available: ${firstOf(models, MAX_MODELS)}`;

const isMode = (text: string): text is Mode => MODES.some((each) => each === text);

export async function mode({ chat, argument: name }: SlashCall): Promise<string> {
  const now = chat.settings.mode;
  if (name === "") return `${now}   (others: ${MODES.filter((each) => each !== now).join(", ")})`;
  if (!isMode(name)) return `There is no mode ${visible(name)}; the modes are: ${MODES.join(", ")}`;
  if (name === now) return `The mode already is ${now}.`;
  await chat.change({ mode: name });
  return `The mode is ${name} now. The next request that needs a box gets a new one.`;
}

/** Grants for this chat, and with `always` for later ones. */
export async function grant({ chat, argument }: Pick<SlashCall, "chat" | "argument">): Promise<string> {
  const { allow_domains: now, mode: box } = chat.settings;
  if (argument === "") {
    if (box === "danger-full-access") return "The box has an unfiltered network, so grants have no effect.";
    return now.length === 0 ? "Nothing is granted: the box has no network." : now.join(", ");
  }
  const words = argument.split(/\s+/);
  const lasts = words[0] === "always";
  const wanted = (lasts ? words.slice(1) : words).flatMap(splitGrants);
  if (wanted.length === 0)
    return "Name a host such as example.org:443, or a preset: npm, pip, cargo, go, maven, apt, git.";
  for (const text of wanted) {
    const read = isPreset(text) ? undefined : readGrant(text);
    if (read?.kind === "wrong")
      return visible(`Nothing was granted. ${JSON.stringify(text)}: ${read.message}\n  next: /grant ?`);
  }
  const { allow_domains: more = [] } = readLayer({ allow_domains: wanted }, () => "/grant");
  await chat.change({ allow_domains: [...new Set([...now, ...more])] });
  const file = lasts ? await chat.keep(more) : "";
  const where = file === "" ? "For this chat" : `From now on (${file})`;
  return visible(
    `${where} the box may reach ${more.join(", ")}. The next request that needs a box gets a new one.`,
  );
}

/** Shows what is on. It is changed in the user's settings, and takes effect in chats that begin afterwards. */
export function web({ chat: { settings } }: { readonly chat: Pick<ChatController, "settings"> }): string {
  const { web: on, allow_domains: granted } = settings;
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

export function tools({ chat: { conversation }, output }: SlashCall): string {
  const offered = conversation?.state.tools ?? [];
  if (offered.length === 0) return "No tools are offered yet: they come with the first request.";
  const column = Math.max(...offered.map(({ name }) => name.length)) + 2;
  const space = Math.max(MIN_TOOL_WIDTH, widthOfStream(output) - column - 3);
  return offered
    .map(({ name, description }) => `${name.padEnd(column)}${inOneLine(firstSentence(description), space)}`)
    .join("\n");
}

const MIN_TOOL_WIDTH = 20;

function inOneLine(text: string, width: number): string {
  const [first = "", ...rest] = wrapped(text, width);
  return rest.length === 0 ? first : `${first} …`;
}

const firstSentence = (text: string): string => /^.*?[.:](?=\s|$)/s.exec(text)?.[0].slice(0, -1) ?? text;

const MAX_RULES = 20;

/** The rules that decide here; with a command, its verdict and the reasons. */
export async function policy({ chat, argument, output }: SlashCall): Promise<string> {
  const { mode, on_ask: onAsk, allow_domains: granted, deny_domains: denied } = chat.settings;
  const context = { ...(await workspacePolicy(chat.host, chat.workspace)), mode, onAsk, granted, denied };
  if (argument !== "") {
    const { allowable, ...explained } = await explain(argument, commandPolicy(), context);
    const remedy = allowable ? { remedy: nextCommand("allow", argument, {}) } : {};
    return explanation({ text: argument, ...explained, ...remedy }, output).trimEnd();
  }
  const { rules } = context;
  return [
    `mode     ${mode}`,
    `network  ${granted.length === 0 ? "none" : visibleLine(granted.join(", "))}`,
    rules.length === 0
      ? "rules    none from you or the project (docs/policy-rules.md)"
      : `rules    ${rules.length} from you and the project, in addition to those of harness:`,
    ...firstLines(
      rules,
      MAX_RULES,
      (rule) => `${rule.decision.padEnd(5)}  ${visibleLine(`${wordsOfRule(rule)}: ${rule.reason}`)}`,
    ).map((line) => `  ${line}`),
    ...recentLines(chat.decided.last, output),
  ].join("\n");
}

function recentLines(last: readonly DecidedCall[], output: Output): readonly string[] {
  if (last.length === 0) return ["", "Nothing has been asked or denied in this chat so far."];
  const width = Math.max(MIN_RULE_WIDTH, widthOfStream(output) - 2);
  const lines = last.flatMap((call) => {
    const { tool, what, rule, reason } = call;
    const head = `${outcome(call).padEnd(22)}  ${tool} ${what}`;
    return [clipLine(head, width), clipLine(`    ${reason} (${rule})`, width)];
  });
  return [
    "",
    styleText("bold", "Asked or denied in this chat, the latest last:", { stream: output }),
    ...lines,
  ];
}

const MIN_RULE_WIDTH = 30;

function clipLine(text: string, width: number): string {
  const line = visibleLine(text);
  return line.length <= width ? line : `${line.slice(0, width - 1).toWellFormed()}…`;
}

const outcome = ({ decision, runs, by }: DecidedCall): string =>
  decision === "deny" ? "denied" : `${decision}: ${runs ? "ran" : "refused"}, ${BY[by]}`;

const BY: Readonly<Record<DecidedCall["by"], string>> = {
  policy: "by the policy",
  mode: "by the mode",
  contained: "contained",
  person: "by you",
  nobody: "nobody to ask",
  hook: "by a hook",
};
