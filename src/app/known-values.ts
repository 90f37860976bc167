import { realpathSync } from "node:fs";
import { parseConfigDocument, readConfigText } from "../config/load-config.ts";
import { DEFAULTS } from "../config/settings-schema.ts";
import { type CompletionCandidate, candidate } from "../core/wording.ts";
import { knownNotes, type KnownSession, knownSessions } from "../sessions/known-sessions.ts";
import type { Host } from "./host.ts";

const MAX_SESSIONS = 100;

/** Values for completion from the state on this disk: no network, no engine, nothing of a project, nothing written. */
export const sessionWords = (host: Host, folder: string): readonly CompletionCandidate[] =>
  recent(host, folder).map(({ id, title }) => candidate(id, title));

export const noteWords = ({ places }: Host, folder: string): readonly CompletionCandidate[] =>
  knownNotes(places.state, realOf(folder), MAX_SESSIONS).map(({ number, title }) =>
    candidate(String(number), title),
  );

/** Models that sessions used, and those of the user's settings or the defaults. */
export async function modelWords(host: Host, folder: string): Promise<readonly CompletionCandidate[]> {
  const { chat_model: chat, embed_model: embed } = ownSettings(host);
  const used = recent(host, folder).map(({ model }) => candidate(model, "of a session"));
  const set = [
    candidate(textOr(embed, DEFAULTS.embed_model), "the model for search"),
    candidate(textOr(chat, DEFAULTS.chat_model), "the model for chats and runs"),
  ];
  return [...new Map([...used, ...set].map((each) => [each.value, each])).values()];
}

const textOr = (value: unknown, otherwise: string): string => (typeof value === "string" ? value : otherwise);

export async function serverWords(host: Host): Promise<readonly CompletionCandidate[]> {
  const { mcp } = ownSettings(host);
  return typeof mcp === "object" && mcp !== null ? Object.keys(mcp).map((name) => candidate(name)) : [];
}

const recent = ({ places }: Host, folder: string): readonly KnownSession[] =>
  knownSessions(places.state, realOf(folder), MAX_SESSIONS);

function realOf(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}

function readableText(file: string): string | undefined {
  try {
    return readConfigText(file);
  } catch {
    return undefined;
  }
}

/** The user's settings as written in the first file that exists. The command itself reports a broken file. */
function ownSettings({ places }: Host): Readonly<Record<string, unknown>> {
  for (const file of places.configFiles) {
    const text = readableText(file);
    if (text === undefined) continue;
    try {
      return parseConfigDocument(file, text).value as Readonly<Record<string, unknown>>;
    } catch {
      return {};
    }
  }
  return {};
}
