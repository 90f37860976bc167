import * as z from "zod";
import { type Intent, INTENTS } from "../../core/events.ts";
import type { Message } from "../../core/messages.ts";
import type { JsonSchema } from "../../core/model-provider.ts";
import { guessIntent } from "./guess.ts";

export interface IntentQuestion {
  readonly messages: readonly Message[];
  readonly schema: JsonSchema;
}

/** One request without tools; the text of the reply. It may reject. */
export type AskIntent = (question: IntentQuestion, signal: AbortSignal) => Promise<string>;

interface DecidedIntent {
  readonly intent: Intent;
  readonly by: "words" | "model";
}

/** A model that has to be loaded first is not waited for: the task itself will. */
const LONGEST_MS = 20_000;
const form = z.object({ intent: z.enum(INTENTS) });
const SCHEMA: JsonSchema = {
  type: "object",
  properties: { intent: { type: "string", enum: INTENTS } },
  required: ["intent"],
};
const INSTRUCTION = `Sort the user's request to a coding agent. Do not answer it. Reply with JSON only: {"intent": "..."}.
direct: a greeting or general knowledge; no look at the project is needed.
repo: a question about the user's project; reading its files is enough.
web: needs pages of the web.
change: asks to do, run or change something, or is unclear.`;

/** The words decide where they can; else one small request. No answer, or none that can be read, makes it a change. */
export async function decideIntent(
  text: string,
  ask: AskIntent,
  signal: AbortSignal,
): Promise<DecidedIntent> {
  const guess = guessIntent(text);
  if (guess !== "unsure") return { intent: guess, by: "words" };
  const messages: readonly Message[] = [
    { role: "system", text: INSTRUCTION },
    { role: "user", text },
  ];
  const reply = await inTime((limit) => ask({ messages, schema: SCHEMA }, limit), signal);
  const intent = intentIn(reply);
  return intent === undefined ? { intent: "change", by: "words" } : { intent, by: "model" };
}

/** Empty when it fails, when it takes too long, and when the signal aborts, whether the answer heeds it or not. */
async function inTime(ask: (signal: AbortSignal) => Promise<string>, signal: AbortSignal): Promise<string> {
  const over = new AbortController();
  const late = Promise.withResolvers<string>();
  const end = (): void => (over.abort(), late.resolve(""));
  const timer = setTimeout(end, LONGEST_MS);
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  try {
    return await Promise.race([late.promise, ask(over.signal)]);
  } catch {
    return "";
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}

/** Small models wrap their JSON in words and fences. */
function intentIn(reply: string): Intent | undefined {
  for (const [json] of reply.matchAll(/\{[^{}]*\}/g)) {
    const read = form.safeParse(parsed(json));
    if (read.success) return read.data.intent;
  }
  return undefined;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/**
 * What can only read. `task` is none of them: a subagent would have to be held to reading too, and for a question one
 * reader is enough.
 */
const READING: ReadonlySet<string> = new Set([
  "read_file",
  "list_dir",
  "glob",
  "grep",
  "show_full",
  "semantic_search",
  "notes",
]);

interface Named {
  readonly name: string;
}

/** The tools that are offered with an intent, in the order given. No tool reads the web, so web questions get what repo ones do. */
export function toolsOf<T extends Named>(intent: Intent, tools: readonly T[]): readonly T[] {
  switch (intent) {
    case "direct":
      return [];
    case "repo":
    case "web":
      return tools.filter(({ name }) => READING.has(name));
    case "change":
      return tools;
  }
}

/**
 * Whether the call of a tool that was not offered shows that the intent was guessed too small: the run goes on as
 * `change`, which happens once as nothing is larger.
 */
export function mayEscalate(intent: Intent, called: string, all: readonly Named[]): boolean {
  const isCalled = ({ name }: Named): boolean => name === called;
  return all.some(isCalled) && !toolsOf(intent, all).some(isCalled);
}
