/** The tool web_search, and the services that it can ask. */
import { URL } from "node:url";
import * as z from "zod";
import { reasonOf } from "../../core/errors.ts";
import type { OwnAnswer, OwnRequest, OwnRequests } from "../../core/network.ts";
import { type AnyTool, anyTool, NO_FACTS, type ToolResult } from "../../core/tool.ts";
import { cleanedLine, type JudgeText, quotedText, UNTRUSTED } from "./web-text.ts";
import { waitingTimeout } from "../../platform/waits.ts";

const MAX_QUERY_LENGTH = 500;
const DEFAULT_RESULTS = 5;
const MAX_RESULTS = 10;
const MAX_DOMAINS = 20;
const MAX_BYTES = 2 * 2 ** 20;
const WITHIN_MS = 30_000;
const MAX_LENGTHS = { title: 200, url: 500, snippet: 500 } as const;

export interface SearchParts {
  /** Allows requests to the service and to nothing else. */
  readonly requests: OwnRequests;
  readonly provider: SearchProvider;
  readonly base: string;
  /** Empty if the service needs none. */
  readonly key: string;
  readonly holdsSecret: JudgeText;
}

const DOMAIN = /^(?!-)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+$/i;

const input = z.strictObject({
  query: z.string().min(1).max(MAX_QUERY_LENGTH),
  count: z.coerce.number().describe(`1 to ${MAX_RESULTS}`).optional(),
  domains: z
    .array(z.string().regex(DOMAIN, "expected a name such as docs.example.org"))
    .max(MAX_DOMAINS)
    .describe("only pages of these")
    .optional(),
});
type Input = z.infer<typeof input>;

/** Queries the service named in the user's settings. A hit does not grant access to its address. */
export const webSearchTool = (parts: SearchParts): AnyTool =>
  anyTool<Input>({
    name: "web_search",
    description: "Search the web: titles, addresses and what the pages say of it.",
    input,
    where: "session",
    concurrent: true,
    bounded: true,
    instead: { limit: "use count", max_results: "use count" },
    facts: () => ({ ...NO_FACTS, services: [new URL(parts.base).host] }),
    run: (input, signal) => searchWeb(parts, input, signal),
  });

async function searchWeb(parts: SearchParts, input: Input, signal: AbortSignal): Promise<ToolResult> {
  const { query, count = DEFAULT_RESULTS, domains = [] } = input;
  const secret = parts.holdsSecret([query, ...domains].join(" "));
  if (secret !== undefined)
    return {
      kind: "blocked",
      cause: "network",
      text: `The search was not sent: ${secret}, which is never sent to anyone.`,
      reason: secret,
    };
  const question = {
    query,
    count: Math.min(Math.max(Math.floor(count) || DEFAULT_RESULTS, 1), MAX_RESULTS),
    domains,
  };
  const late = waitingTimeout(WITHIN_MS);
  try {
    const hits = await hitsOf(parts, question, AbortSignal.any([signal, late]));
    return {
      kind: "ok",
      text: resultText(
        parts.provider,
        question,
        hits.filter((hit) => isOnDomain(hit, domains)),
      ),
    };
  } catch (thrown) {
    if (signal.aborted) return { kind: "cancelled", cause: "user", text: "Cancelled." };
    if (late.aborted)
      return {
        kind: "timed_out",
        cause: "timeout",
        text: `${parts.provider} did not answer within ${WITHIN_MS / 1000} s.`,
      };
    const why = cleanedLine(reasonOf(thrown).replaceAll(parts.key === "" ? "\0" : parts.key, "…"));
    return { kind: "failed", cause: "network", text: `${parts.provider} gave no results: ${why}` };
  }
}

async function hitsOf(
  { requests, provider, base, key }: SearchParts,
  question: WebSearchRequest,
  signal: AbortSignal,
): Promise<readonly SearchHit[]> {
  const service = SERVICES[provider];
  const answer = await requests.send(service.request(question, base, key), signal);
  if (answer.kind !== "answered") throw new Error(answer.reason);
  const text = await textOf(answer);
  if (answer.status !== 200) throw new Error(`it answered ${answer.status}${HINTS.get(answer.status) ?? ""}`);
  try {
    return service.hits(JSON.parse(text));
  } catch (thrown) {
    throw new Error("its answer is not in the documented form", { cause: thrown });
  }
}

const HINTS: ReadonlyMap<number, string> = new Map([
  [401, ": it does not accept the key"],
  [403, ": it does not accept the key, or does not serve JSON (SearXNG: search.formats in its settings)"],
  [429, ": too many requests"],
]);

async function textOf({ body }: Extract<OwnAnswer, { readonly kind: "answered" }>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body) {
    size += piece.length;
    if (size > MAX_BYTES) throw new Error("its answer is too large");
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function isOnDomain({ url }: SearchHit, domains: readonly string[]): boolean {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return false;
  const names = domains.map((domain) => domain.toLowerCase());
  return (
    names.length === 0 ||
    names.some((name) => parsed.hostname === name || parsed.hostname.endsWith(`.${name}`))
  );
}

function resultText(
  provider: SearchProvider,
  { query, count }: WebSearchRequest,
  hits: readonly SearchHit[],
): string {
  const head = `${provider}: ${JSON.stringify(cleanedLine(query))}`;
  if (hits.length === 0) return `${head}: nothing was found.`;
  const list = hits.slice(0, count).map((hit, at) => `${at + 1}. ${hitText(hit)}`);
  return [head, UNTRUSTED, "", quotedText(list.join("\n\n"))].join("\n");
}

const hitText = ({ title, url, snippet }: SearchHit): string =>
  [clip(title, MAX_LENGTHS.title), clip(url, MAX_LENGTHS.url), clip(snippet, MAX_LENGTHS.snippet)]
    .filter((line) => line !== "")
    .join("\n");

function clip(text: string, most: number): string {
  const line = cleanedLine(text.slice(0, 4 * most));
  return line.length <= most ? line : `${line.slice(0, most - 1).toWellFormed()}…`;
}

export type SearchProvider = "searxng" | "tavily" | "exa" | "brave";

interface WebSearchRequest {
  readonly query: string;
  readonly count: number;
  /** Only pages of these domains and their subdomains; empty: any. */
  readonly domains: readonly string[];
}

interface SearchHit {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

/** How to query one service, and how to read its answer. */
export interface SearchService {
  /** The default address; undefined if the settings have to give it. */
  readonly url: string | undefined;
  /** The variable that holds the key; undefined if the service needs none. */
  readonly key: string | undefined;
  readonly request: (request: WebSearchRequest, base: string, key: string) => OwnRequest;
  /** Throws if this is not an answer of the service. */
  readonly hits: (answer: unknown) => readonly SearchHit[];
}

/** Texts may be missing or null; a result without an address makes the answer invalid. */
const text = z.string().nullish();
const firstText = (...texts: readonly (string | null | undefined)[]): string =>
  texts.find((each) => each !== null && each !== undefined && each.trim() !== "") ?? "";

const searxngAnswer = z.object({
  results: z.array(z.object({ url: z.string(), title: text, content: text })),
});
const tavilyAnswer = z.object({
  results: z.array(z.object({ url: z.string(), title: text, content: text })),
});
const exaAnswer = z.object({
  results: z.array(
    z.object({ url: z.string(), title: text, text, highlights: z.array(z.string()).nullish() }),
  ),
});
/** Without results, `web` is missing. */
const braveAnswer = z.object({
  web: z
    .object({ results: z.array(z.object({ url: z.string(), title: text, description: text })) })
    .nullish(),
});

const JSON_HEADERS = { accept: "application/json", "content-type": "application/json" } as const;

/** An address below the base, which may have a path of its own. */
function addressBelow(base: string, path: string, query: Readonly<Record<string, string>> = {}): string {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, "")}${path}`;
  url.search = new URLSearchParams(query).toString();
  return url.href;
}

/** For services that accept domains only as words of the query. */
const withSites = (query: string, domains: readonly string[]): string =>
  domains.length === 0 ? query : `${query} ${domains.map((domain) => `site:${domain}`).join(" OR ")}`;

/** From https://api-dashboard.search.brave.com: at most 400 characters and 50 words. */
const fitsBrave = (query: string): boolean => query.length <= 400 && query.trim().split(/\s+/).length <= 50;

export const SERVICES: Readonly<Record<SearchProvider, SearchService>> = {
  searxng: {
    url: undefined,
    key: undefined,
    request: ({ query, domains }, base) => ({
      url: addressBelow(base, "/search", { q: withSites(query, domains), format: "json" }),
      method: "GET",
      headers: { accept: "application/json" },
    }),
    hits: (answer) =>
      searxngAnswer.parse(answer).results.map(({ url, title, content }) => ({
        url,
        title: firstText(title),
        snippet: firstText(content),
      })),
  },
  tavily: {
    url: "https://api.tavily.com",
    key: "TAVILY_API_KEY",
    request: ({ query, count, domains }, base, key) => ({
      url: addressBelow(base, "/search"),
      method: "POST",
      headers: { ...JSON_HEADERS, authorization: `Bearer ${key}` },
      body: JSON.stringify({
        query,
        max_results: count,
        search_depth: "basic",
        ...(domains.length === 0 ? {} : { include_domains: domains }),
      }),
    }),
    hits: (answer) =>
      tavilyAnswer.parse(answer).results.map(({ url, title, content }) => ({
        url,
        title: firstText(title),
        snippet: firstText(content),
      })),
  },
  exa: {
    url: "https://api.exa.ai",
    key: "EXA_API_KEY",
    request: ({ query, count, domains }, base, key) => ({
      url: addressBelow(base, "/search"),
      method: "POST",
      headers: { ...JSON_HEADERS, "x-api-key": key },
      body: JSON.stringify({
        query,
        numResults: count,
        ...(domains.length === 0 ? {} : { includeDomains: domains }),
        contents: { text: { maxCharacters: 500 } },
      }),
    }),
    hits: (answer) =>
      exaAnswer.parse(answer).results.map(({ url, title, text: whole, highlights }) => ({
        url,
        title: firstText(title),
        snippet: firstText(highlights?.join(" … "), whole),
      })),
  },
  brave: {
    url: "https://api.search.brave.com",
    key: "BRAVE_API_KEY",
    request: ({ query, count, domains }, base, key) => {
      const narrow = withSites(query, domains);
      // A query that is too long with its domains is sent without them: results elsewhere are filtered out anyway.
      const sent = fitsBrave(narrow) ? narrow : shortened(query);
      return {
        url: addressBelow(base, "/res/v1/web/search", {
          q: sent,
          count: String(sent === narrow ? count : 20),
        }),
        method: "GET",
        headers: { accept: "application/json", "x-subscription-token": key },
      };
    },
    hits: (answer) =>
      (braveAnswer.parse(answer).web?.results ?? []).map(({ url, title, description }) => ({
        url,
        title: withoutMarks(firstText(title)),
        snippet: withoutMarks(firstText(description)),
      })),
  },
};

/** As many words of the query as Brave accepts. */
function shortened(query: string): string {
  const words = query.trim().split(/\s+/).slice(0, 50);
  while (words.length > 1 && words.join(" ").length > 400) words.pop();
  return words.join(" ").slice(0, 400);
}

/** Removes the marks around the words that were found. */
const withoutMarks = (marked: string): string => marked.replaceAll(/<\/?strong>/g, "");
