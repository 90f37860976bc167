/** The tool web_fetch: a page of a granted host as text. */
import { Readable } from "node:stream";
import { URL } from "node:url";
import { constants, createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import * as z from "zod";
import { formatSize } from "../../core/wording.ts";
import { reasonOf } from "../../core/errors.ts";
import { hostOfUrl, type OwnAnswer, type OwnRequests } from "../../core/network.ts";
import { type AnyTool, anyTool, type Facts, NO_FACTS, type ToolResult } from "../../core/tool.ts";
import {
  cleanText,
  cleanedLine,
  headOf,
  judgeAddress,
  type JudgeText,
  passagesIn,
  quotedText,
  type ReadHtml,
  UNTRUSTED,
} from "./web-text.ts";
import type { ReadablePage } from "./readable-text.ts";
import { waitingTimeout } from "../../platform/waits.ts";

const MIN_LENGTH = 500;
const DEFAULT_LENGTH = 8000;
const MAX_LENGTH = 20_000;

export interface FetchParts {
  readonly requests: OwnRequests;
  readonly readHtml: ReadHtml;
  readonly holdsSecret: JudgeText;
  readonly now: () => Date;
}

const input = z.strictObject({
  url: z.string().min(1).max(4000),
  find: z.string().min(1).max(200).describe("words: only the passages around them").optional(),
  max: z.coerce.number().describe(`characters, ${MIN_LENGTH} to ${MAX_LENGTH}`).optional(),
});
type Input = z.infer<typeof input>;

/** Fetches a page of a granted host as text, by a plain GET: no cookie, no credential, no Referer. */
export const webFetchTool = (parts: FetchParts): AnyTool =>
  anyTool<Input>({
    name: "web_fetch",
    description: "Read a web page or text file by its URL. Only hosts that the user granted.",
    input,
    where: "session",
    concurrent: true,
    bounded: true,
    instead: { query: "use find for words in the page", limit: "use max" },
    facts: ({ url }) => factsOf(url),
    run: (input, signal) => fetchAsText(parts, input, signal),
  });

/** An invalid address reaches nothing, and is refused when the call is run. */
function factsOf(text: string): Facts {
  const url = URL.parse(text.trim());
  return url === null || url.hostname === "" ? NO_FACTS : { ...NO_FACTS, hosts: [hostOfUrl(url)] };
}

async function fetchAsText(parts: FetchParts, input: Input, signal: AbortSignal): Promise<ToolResult> {
  const address = judgeAddress(input.url, parts.holdsSecret);
  if ("refused" in address) return refused(input.url, address.refused);
  const page = await fetchPage(parts.requests, address.href, signal);
  if (signal.aborted) return { kind: "cancelled", cause: "user", text: "Cancelled." };
  if (page.kind === "refused") return refused(page.url, page.reason);
  if (page.kind === "failed") {
    const text = `${shownAddress(address.href)} was not read: ${cleanedLine(page.reason)}`;
    return page.cause === "timeout"
      ? { kind: "timed_out", cause: "timeout", text }
      : { kind: "failed", cause: "network", text };
  }
  return pageResult(parts, input, page, signal);
}

const shownAddress = (url: string): string => cleanedLine(url);

function refused(url: string, reason: string): ToolResult {
  const why = cleanedLine(reason);
  return {
    kind: "blocked",
    cause: "network",
    text: `${shownAddress(url)} was not fetched: ${why}.`,
    reason: why,
  };
}

async function pageResult(
  { readHtml, now }: FetchParts,
  input: Input,
  page: Page,
  signal: AbortSignal,
): Promise<ToolResult> {
  const content = contentOf(page);
  if (content.kind === "other") {
    const text = `${shownAddress(page.url)} is ${cleanedLine(content.what)}, which is not read as text (${formatSize(page.bytes.length)}${page.cut ? " and more" : ""}).`;
    return { kind: "failed", cause: "program", text };
  }
  try {
    const read: ReadablePage =
      content.kind === "html"
        ? await readHtml({ html: content.text, url: page.url }, signal)
        : { title: "", text: content.text, cut: false };
    const notes = [
      ...content.notes,
      ...(page.cut ? [`only its first ${formatSize(FETCH_BOUNDS.bytes)} were read`] : []),
      ...(read.cut ? ["it is too long to be read as a whole, and its end is left out"] : []),
    ];
    const text = resultText(
      input,
      page,
      { ...read, text: cleanText(read.text).trim() },
      { notes, now: now() },
    );
    return page.status < 400
      ? { kind: "ok", text }
      : { kind: "failed", cause: "network", text, reason: `the server answered ${page.status}` };
  } catch (thrown) {
    if (signal.aborted) return { kind: "cancelled", cause: "user", text: "Cancelled." };
    return {
      kind: "failed",
      cause: "program",
      text: `${shownAddress(page.url)}: ${cleanedLine(reasonOf(thrown))}`,
    };
  }
}

/** First the facts from the harness, then the text of the page. */
function resultText(
  { find, max = DEFAULT_LENGTH, url }: Input,
  page: Page,
  { title, text }: ReadablePage,
  { notes, now }: { readonly notes: readonly string[]; readonly now: Date },
): string {
  const most = Math.min(Math.max(Math.floor(max) || DEFAULT_LENGTH, MIN_LENGTH), MAX_LENGTH);
  const isOther = URL.parse(url.trim())?.href.replace(/#.*$/s, "") !== page.url;
  const about = [
    `Source: ${shownAddress(page.url)}${isOther ? ` (redirected from ${shownAddress(url)})` : ""}`,
    ...(page.status < 400 ? [] : [`The server answered ${page.status}.`]),
    `Fetched: ${now.toISOString()}`,
    ...notes.map((note) => `Note: ${cleanedLine(note)}.`),
  ];
  const body = find === undefined ? beginningOf(text, most) : passagesOf(text, find, most);
  const named = title === "" ? "" : `${cleanedLine(title)}\n\n`;
  return [...about, ...body.says, UNTRUSTED, "", quotedText(named + body.text)].join("\n");
}

interface ShownPart {
  readonly text: string;
  readonly says: readonly string[];
}

function beginningOf(text: string, most: number): ShownPart {
  if (text === "") return { text: "", says: ["There is no text in it that a reader would see."] };
  const first = headOf(text, most);
  if (first.length === text.length) return { text, says: [] };
  const left = `${text.length - first.length} of ${text.length} characters are left out`;
  return {
    text: first,
    says: [`Note: ${left}; use find for passages, or max (up to ${MAX_LENGTH}) for more of it.`],
  };
}

function passagesOf(text: string, find: string, most: number): ShownPart {
  const passages = passagesIn(text, cleanText(find), most);
  const words = JSON.stringify(cleanedLine(find));
  if (passages.count === 0) return { text: "", says: [`${words} is not in it (${text.length} characters).`] };
  return { text: passages.text, says: [`${words}: ${passages.shown} of ${passages.count} places.`] };
}

/** The response of an address, still unread. */
interface Page {
  readonly kind: "page";
  /** The final address. */
  readonly url: string;
  readonly status: number;
  /** The type given by the server; empty if it gave none. */
  readonly type: string;
  readonly bytes: Uint8Array;
  /** The response was longer. */
  readonly cut: boolean;
}

type Fetched =
  | Page
  | { readonly kind: "refused"; readonly url: string; readonly reason: string }
  | { readonly kind: "failed"; readonly cause: "network" | "timeout"; readonly reason: string };

interface FetchBounds {
  /** Bytes of the answer, both as received and decompressed. */
  readonly bytes: number;
  /** From the first request to the last byte. */
  readonly withinMs: number;
}

const FETCH_BOUNDS: FetchBounds = { bytes: 2 * 2 ** 20, withinMs: 30_000 };

const MAX_REDIRECTS = 5;
const MAX_REDIRECT_LENGTH = 4000;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

const HEADERS = {
  accept:
    "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, application/json;q=0.9, */*;q=0.1",
  "accept-encoding": "gzip, deflate, br",
  "accept-language": "en, *;q=0.5",
  "user-agent": "harness (web_fetch)",
} as const;

/** Fetches one page by GET. Every redirect is judged like the first address, and may not be less secure. */
export async function fetchPage(
  requests: OwnRequests,
  address: string,
  signal: AbortSignal,
  bounds: FetchBounds = FETCH_BOUNDS,
): Promise<Fetched> {
  const late = waitingTimeout(bounds.withinMs);
  const ending = AbortSignal.any([signal, late]);
  try {
    return await fetchFollowing(requests, address, ending, bounds);
  } catch (thrown) {
    if (late.aborted && !signal.aborted) return tooLate(bounds);
    return { kind: "failed", cause: "network", reason: reasonOf(thrown) };
  }
}

const tooLate = ({ withinMs }: FetchBounds): Fetched => ({
  kind: "failed",
  cause: "timeout",
  reason: `it did not load within ${withinMs / 1000} s`,
});

async function fetchFollowing(
  requests: OwnRequests,
  address: string,
  signal: AbortSignal,
  bounds: FetchBounds,
): Promise<Fetched> {
  let url = address;
  for (let hops = 0; ; hops += 1) {
    const answer = await requests.send({ url, method: "GET", headers: HEADERS }, signal);
    if (answer.kind === "refused") return { kind: "refused", url, reason: answer.reason };
    signal.throwIfAborted();
    if (answer.kind === "unreachable") return { kind: "failed", cause: "network", reason: answer.reason };
    const location = headerOf(answer, "location");
    if (!REDIRECTS.has(answer.status) || location === undefined) return pageOf(answer, url, bounds);
    await discardBody(answer);
    if (hops === MAX_REDIRECTS)
      return { kind: "refused", url, reason: `it redirects more than ${MAX_REDIRECTS} times` };
    const next = redirectTarget(url, location);
    if (typeof next !== "string") return { kind: "refused", url, ...next };
    url = next;
  }
}

function redirectTarget(url: string, location: string): string | { readonly reason: string } {
  if (location.length > MAX_REDIRECT_LENGTH) return { reason: "it redirects to an address that is too long" };
  const next = URL.parse(location, url);
  if (next === null || !/^https?:$/.test(next.protocol))
    return { reason: "it redirects to something other than a web address" };
  if (url.startsWith("https:") && next.protocol !== "https:")
    return { reason: `it redirects from https to http, to ${next.host}` };
  if (next.username !== "" || next.password !== "")
    return { reason: "it redirects to an address with a user name or a password in it" };
  next.hash = "";
  return next.href;
}

type AnsweredRequest = Extract<OwnAnswer, { readonly kind: "answered" }>;

const headerOf = ({ headers }: AnsweredRequest, name: string): string | undefined =>
  headers.find(([each]) => each === name)?.[1];

const discardBody = async ({ body }: AnsweredRequest): Promise<void> => {
  for await (const _ of body) return;
};

async function pageOf(answer: AnsweredRequest, url: string, bounds: FetchBounds): Promise<Fetched> {
  const packing = (headerOf(answer, "content-encoding") ?? "").trim().toLowerCase();
  const packed = limitSize(answer.body, bounds.bytes);
  const unpack = UNPACK.get(packing);
  if (unpack === undefined) {
    await discardBody(answer);
    return {
      kind: "failed",
      cause: "network",
      reason: `it is compressed with ${namedKind(packing, 40)}, which is not supported`,
    };
  }
  const { bytes, cut } = await collectBytes(unpack(packed.pieces), bounds.bytes);
  const { status } = answer;
  const type = headerOf(answer, "content-type") ?? "";
  return { kind: "page", url, status, type, bytes, cut: cut || packed.cut() };
}

type Pieces = AsyncIterable<Uint8Array>;

/** Compressed data that was cut off is decompressed as far as possible. */
const SYNC = { finishFlush: constants.Z_SYNC_FLUSH };
const UNPACK: ReadonlyMap<string, (pieces: Pieces) => Pieces> = new Map([
  ["", (pieces: Pieces) => pieces],
  ["identity", (pieces: Pieces) => pieces],
  ["gzip", (pieces: Pieces) => decompress(pieces, () => createGunzip(SYNC))],
  ["x-gzip", (pieces: Pieces) => decompress(pieces, () => createGunzip(SYNC))],
  ["deflate", (pieces: Pieces) => decompress(pieces, () => createInflate(SYNC))],
  [
    "br",
    (pieces: Pieces) =>
      decompress(pieces, () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })),
  ],
]);

/** Decompresses only as much as is requested; stopping the iteration ends it. */
async function* decompress(
  pieces: Pieces,
  make: () => NodeJS.ReadWriteStream & { destroy(): unknown },
): Pieces {
  const source = Readable.from(pieces);
  const unpacking = make();
  source.on("error", (thrown) => void unpacking.emit("error", thrown));
  source.pipe(unpacking);
  try {
    for await (const piece of unpacking) yield piece as unknown as Uint8Array;
  } finally {
    source.destroy();
    unpacking.destroy();
  }
}

function limitSize(body: Pieces, most: number): { readonly pieces: Pieces; readonly cut: () => boolean } {
  const state = { cut: false };
  async function* pieces(): Pieces {
    let size = 0;
    for await (const piece of body) {
      const rest = most - size;
      if (piece.length > rest) {
        state.cut = true;
        yield piece.subarray(0, rest);
        return;
      }
      size += piece.length;
      yield piece;
    }
  }
  return { pieces: pieces(), cut: () => state.cut };
}

async function collectBytes(
  pieces: Pieces,
  most: number,
): Promise<{ readonly bytes: Uint8Array; readonly cut: boolean }> {
  const { pieces: bounded, cut } = limitSize(pieces, most);
  const all: Uint8Array[] = [];
  for await (const piece of bounded) all.push(piece);
  return { bytes: Buffer.concat(all), cut: cut() };
}

/** How to read the bytes of a page. */
type PageContent =
  | { readonly kind: "html" | "text"; readonly text: string; readonly notes: readonly string[] }
  | { readonly kind: "other"; readonly what: string };

const HTML = /^(?:text\/html|application\/xhtml\+xml)$/;
const TEXT =
  /^(?:text\/[\w.+-]+|application\/(?:[\w.-]+\+(?:json|xml)|json|ld\+json|x-ndjson|xml|javascript|ecmascript|x-javascript|x-sh|yaml|x-yaml|toml|sql|graphql|rtf)|message\/rfc822)$/;
/** Sent by servers that do not know the type. */
const UNKNOWN_TYPES = /^(?:|application\/octet-stream|binary\/octet-stream)$/;

/** The type as given by the server unless the bytes contradict it; the text decoded from its charset. */
export function contentOf({ type, bytes, cut }: Pick<Page, "type" | "bytes" | "cut">): PageContent {
  const [essence = "", ...parameters] = type.split(";");
  const named = essence.trim().toLowerCase();
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 2048)).toString("latin1");
  if (head.startsWith("%PDF-") || named === "application/pdf") return { kind: "other", what: "a PDF" };
  if (!HTML.test(named) && !TEXT.test(named) && !UNKNOWN_TYPES.test(named))
    return { kind: "other", what: `of the type ${namedKind(named, 80)}` };
  const charset = charsetIn(parameters) ?? (HTML.test(named) ? metaCharset(head) : undefined);
  const { text, notes } = decoded(bytes, charset, cut);
  if (/\0/.test(text.slice(0, 4096))) return { kind: "other", what: "binary data" };
  const isHtml =
    HTML.test(named) ||
    (UNKNOWN_TYPES.test(named) && /^\s*(?:<!doctype html|<html|<head|<body)/i.test(text.slice(0, 1024)));
  return { kind: isHtml ? "html" : "text", text, notes };
}

/** A header's name of a kind. Harness says it in its own words, so it must not be a sentence. */
const namedKind = (text: string, most: number): string =>
  text.length <= most && /^[a-z0-9!#$&^_.+-]+(?:\/[a-z0-9!#$&^_.+-]+)?$/.test(text)
    ? text
    : "something without a valid name";

const charsetIn = (parameters: readonly string[]): string | undefined =>
  parameters
    .map((each) => /^\s*charset\s*=\s*["']?([\w:.-]{1,40})/i.exec(each)?.[1])
    .find((each) => each !== undefined);

/** From the first bytes of a page, where the standard requires it. */
const metaCharset = (head: string): string | undefined =>
  /<meta\s[^>]{0,200}?charset\s*=\s*["']?([\w:.-]{1,40})/i.exec(head.slice(0, 1024))?.[1];

/** A byte order mark wins over the declared charset; without either, UTF-8 if the bytes are valid. */
function decoded(
  bytes: Uint8Array,
  charset: string | undefined,
  cut: boolean,
): { readonly text: string; readonly notes: readonly string[] } {
  const marked = markOf(bytes);
  const label = marked ?? charset;
  if (label !== undefined) {
    const decoder = decoderFor(label);
    if (decoder !== undefined) return { text: decoder.decode(bytes), notes: [] };
  }
  const notes = label === undefined ? [] : [`its charset ${JSON.stringify(label)} is not known`];
  try {
    // A cut text may end in the middle of a character.
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: cut }), notes };
  } catch {
    return { text: new TextDecoder("windows-1252").decode(bytes), notes };
  }
}

function decoderFor(label: string): InstanceType<typeof TextDecoder> | undefined {
  try {
    return new TextDecoder(label);
  } catch {
    return undefined;
  }
}

function markOf([first, second, third]: Uint8Array): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return first === 0xff && second === 0xfe ? "utf-16le" : undefined;
}
