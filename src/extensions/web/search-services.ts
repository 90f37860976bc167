import { URL } from "node:url";
import * as z from "zod";
import type { OwnRequest } from "../../core/network.ts";

export type SearchProvider = "searxng" | "tavily" | "exa" | "brave";

export interface SearchAsked {
  readonly query: string;
  readonly count: number;
  /** Only pages of these domains and their subdomains; empty: any. */
  readonly domains: readonly string[];
}

export interface SearchHit {
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
  readonly request: (asked: SearchAsked, base: string, key: string) => OwnRequest;
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
      const asked = fitsBrave(narrow) ? narrow : shortened(query);
      return {
        url: addressBelow(base, "/res/v1/web/search", {
          q: asked,
          count: String(asked === narrow ? count : 20),
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
