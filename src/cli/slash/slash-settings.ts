import { modelClient } from "../../app/model-access.ts";
import type { ChatController } from "../../app/run/chat-controller.ts";
import { readLayer } from "../../config/config-layers.ts";
import { PROVIDERS } from "../../config/setting-words.ts";
import { type Mode, MODES } from "../../core/decision.ts";
import { firstOf, formatCount, nearest } from "../../core/wording.ts";
import { visible } from "../../core/visible.ts";
import { widthOfStream, wrapped } from "../../render/tty/columns.ts";
import type { SlashCall } from "./chat-commands.ts";

/** How long a server may take to list its models. */
const PATIENCE_MS = 5000;

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
  const given = readLayer(address === undefined ? {} : { base_url: address }, () => "/provider");
  const place = given.base_url ?? (wanted === now ? base_url : null);
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
  const { allow_domains: more = [] } = readLayer(
    { allow_domains: lasts ? words.slice(1) : words },
    () => "/grant",
  );
  if (more.length === 0)
    return "Name a host such as example.org:443, or a preset: npm, pip, cargo, go, maven, apt, git.";
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
  const space = Math.max(MIN_WIDTH, widthOfStream(output) - column - 3);
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
