import * as z from "zod";
import { formatSize } from "../../core/text/bounds.ts";
import { reasonOf } from "../../core/errors.ts";
import { hostOfUrl } from "../../core/grant.ts";
import type { OwnRequests } from "../../core/network.ts";
import { type AnyTool, anyTool, type Facts, NO_FACTS, type ToolResult } from "../../core/tool.ts";
import { FETCH_BOUNDS, fetchPage, type Page } from "./fetch-page.ts";
import { judgeAddress, type JudgeText } from "./outgoing-text.ts";
import { contentOf } from "./page-content.ts";
import type { ReadHtml } from "./page-reader.ts";
import { cleaned, cleanedLine, headOf, passagesIn, quotedText, UNTRUSTED } from "./page-text.ts";
import type { Readable } from "./readable-text.ts";

const LEAST = 500;
const USUAL = 8000;
const MOST = 20_000;

export interface FetchParts {
  readonly requests: OwnRequests;
  readonly readHtml: ReadHtml;
  readonly holdsSecret: JudgeText;
  readonly now: () => Date;
}

const input = z.strictObject({
  url: z.string().min(1).max(4000),
  find: z.string().min(1).max(200).describe("words: only the passages around them").optional(),
  max: z.coerce.number().describe(`characters, ${LEAST} to ${MOST}`).optional(),
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
    run: (given, signal) => fetchAsText(parts, given, signal),
  });

/** An invalid address reaches nothing, and is refused when the call is run. */
function factsOf(text: string): Facts {
  const url = URL.parse(text.trim());
  return url === null || url.hostname === "" ? NO_FACTS : { ...NO_FACTS, hosts: [hostOfUrl(url)] };
}

async function fetchAsText(parts: FetchParts, given: Input, signal: AbortSignal): Promise<ToolResult> {
  const address = judgeAddress(given.url, parts.holdsSecret);
  if ("refused" in address) return refused(given.url, address.refused);
  const page = await fetchPage(parts.requests, address.href, signal);
  if (signal.aborted) return { kind: "cancelled", cause: "user", text: "Cancelled." };
  if (page.kind === "refused") return refused(page.url, page.reason);
  if (page.kind === "failed") {
    const text = `${shownAddress(address.href)} was not read: ${cleanedLine(page.reason)}`;
    return page.cause === "timeout"
      ? { kind: "timed_out", cause: "timeout", text }
      : { kind: "failed", cause: "network", text };
  }
  return pageResult(parts, given, page, signal);
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
  given: Input,
  page: Page,
  signal: AbortSignal,
): Promise<ToolResult> {
  const content = contentOf(page);
  if (content.kind === "other") {
    const text = `${shownAddress(page.url)} is ${cleanedLine(content.what)}, which is not read as text (${formatSize(page.bytes.length)}${page.cut ? " and more" : ""}).`;
    return { kind: "failed", cause: "program", text };
  }
  try {
    const read: Readable =
      content.kind === "html"
        ? await readHtml({ html: content.text, url: page.url }, signal)
        : { title: "", text: content.text, cut: false };
    const notes = [
      ...content.notes,
      ...(page.cut ? [`only its first ${formatSize(FETCH_BOUNDS.bytes)} were read`] : []),
      ...(read.cut ? ["it is too long to be read as a whole, and its end is left out"] : []),
    ];
    const text = resultText(given, page, { ...read, text: cleaned(read.text).trim() }, { notes, now: now() });
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
  { find, max = USUAL, url }: Input,
  page: Page,
  { title, text }: Readable,
  { notes, now }: { readonly notes: readonly string[]; readonly now: Date },
): string {
  const most = Math.min(Math.max(Math.floor(max) || USUAL, LEAST), MOST);
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
    says: [`Note: ${left}; use find for passages, or max (up to ${MOST}) for more of it.`],
  };
}

function passagesOf(text: string, find: string, most: number): ShownPart {
  const passages = passagesIn(text, cleaned(find), most);
  const words = JSON.stringify(cleanedLine(find));
  if (passages.count === 0) return { text: "", says: [`${words} is not in it (${text.length} characters).`] };
  return { text: passages.text, says: [`${words}: ${passages.shown} of ${passages.count} places.`] };
}
