import { MODES, type Mode } from "../../core/decision.ts";
import { nearest } from "../../core/spelling.ts";
import { visible } from "../../core/visible.ts";
import { widthOfStream, wrapped } from "../../render/tty/fitted.ts";
import type { Room } from "./room.ts";
import { type Output } from "../../render/tty/output.ts";

/** How long a server may take to say what it has. */
const PATIENCE_MS = 5000;

export async function model(room: Room, name: string): Promise<string> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const { chat_model: now, provider } = room.settings;
  const seat = await room.model();
  const { models, reason } = await seat.list(signal);
  const served = models === null ? `The server gives no list: ${reason}` : listOf(models);
  if (name === "") return visible(`${now} (${provider})\n${served}`);
  if (models !== null && !models.some((each) => each === name || each === `${name}:latest`)) {
    const near = nearest(name, models);
    const meant = near === undefined ? served : `Did you mean ${near}?`;
    return visible(`${seat.server} has no model ${name}. ${meant}`);
  }
  await room.change({ chat_model: name });
  const { context, tools } = await (await room.model()).capabilities(name, signal);
  const calls = tools ? "calls tools natively" : "calls tools in its text";
  return visible(`From now on ${name} is asked: a window of ${figure(context)} tokens, ${calls}.`);
}

const MOST_MODELS = 20;

function listOf(models: readonly string[]): string {
  const more = models.length - MOST_MODELS;
  const rest = more > 0 ? ` and ${more} more` : "";
  return models.length === 0
    ? "The server has none."
    : `There are: ${models.slice(0, MOST_MODELS).join(", ")}${rest}`;
}

const isMode = (text: string): text is Mode => MODES.some((each) => each === text);

export async function mode(room: Room, name: string): Promise<string> {
  const now = room.settings.mode;
  if (name === "") return `${now}   (others: ${MODES.filter((each) => each !== now).join(", ")})`;
  if (!isMode(name)) return `There is no mode ${visible(name)}; there are: ${MODES.join(", ")}`;
  if (name === now) return `The mode is ${now} already.`;
  await room.change({ mode: name });
  return `The mode is ${name} now. The next request that needs a box gets a new one.`;
}

export function tools({ talk }: Room, screen: Output): string {
  const offered = talk?.lasting.offer.tools ?? [];
  if (offered.length === 0) return "None is offered yet: each request gets what it needs.";
  const column = Math.max(...offered.map(({ name }) => name.length)) + 2;
  const room = Math.max(NARROWEST, widthOfStream(screen) - column - 2);
  return offered
    .map(({ name, description }) => `${name.padEnd(column)}${inOneLine(firstSentence(description), room)}`)
    .join("\n");
}

const NARROWEST = 20;

function inOneLine(text: string, width: number): string {
  const [first = "", ...rest] = wrapped(text, width);
  return rest.length === 0 ? first : `${first} …`;
}

const firstSentence = (text: string): string => /^.*?[.:](?=\s|$)/s.exec(text)?.[0].slice(0, -1) ?? text;

export async function cost(room: Room): Promise<string> {
  const { talk, settings } = room;
  if (talk === undefined) return "Nothing has been asked yet.";
  const { requests, prompt_tokens, completion_tokens, cached_tokens, cost: price } = talk.usage;
  const seat = await room.model();
  const { context } = await seat.capabilities(settings.chat_model, AbortSignal.timeout(PATIENCE_MS));
  const used = talk.sizeFor(settings.chat_model).tokens(talk.memory.history.view());
  const cached = cached_tokens === null ? "" : ` (${figure(cached_tokens)} cached)`;
  return [
    `session   ${talk.session.id}`,
    `requests  ${figure(requests)}`,
    `tokens    ${figure(prompt_tokens)} in${cached}, ${figure(completion_tokens)} out`,
    `cost      ${price === null ? "unknown" : price.toLocaleString("en-US", { maximumSignificantDigits: 3 })}`,
    `window    about ${figure(used)} of ${figure(context)} tokens (${Math.round((100 * used) / context)} %)`,
  ].join("\n");
}

const figure = (count: number | null): string => count?.toLocaleString("en-US") ?? "unknown";
