import type { IncomingMessage } from "node:http";
import { reasonOf } from "../../core/errors.ts";
import { parsedJson } from "./fields.ts";
import { endless, LONGEST_BODY } from "../wire.ts";
import { brokenOff, stranger } from "./garbled.ts";
import { type Asked, type Refusal, refusalIn } from "./refusals.ts";

/** Bytes that are read of a refusal; what it says stands at its beginning. */
const LONGEST_REFUSAL = 2 ** 20;
const MAX_WAIT_MS = 24 * 3_600_000;

/** The body, and what came of one that broke off; one that is longer than any answer throws. */
export async function wholeText(response: IncomingMessage): Promise<string> {
  const { text, whole } = await textWithin(response, LONGEST_BODY);
  if (!whole) throw endless("the server's answer has no end: it was ended at its bound");
  return text;
}

async function textWithin(
  response: IncomingMessage,
  most: number,
): Promise<{ readonly text: string; readonly whole: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > most) break;
    }
  } catch (thrown) {
    if (chunks.length === 0) throw brokenOff(reasonOf(thrown));
  }
  return { text: Buffer.concat(chunks).toString("utf8"), whole: length <= most };
}

/** What the server said instead of an answer; undefined when it answers. Throws when it is no model server. */
export async function refusalTo(response: IncomingMessage, asked: Asked): Promise<Refusal | undefined> {
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return undefined;
  if (status < 400) {
    response.destroy();
    throw stranger(asked, `it redirects to ${targetOf(response, asked)}`);
  }
  const { text } = await textWithin(response, LONGEST_REFUSAL);
  const said = refusalIn(parsedJson(text), status, retryAfter(response));
  if (said !== undefined) return said;
  const page = isPage(response, text);
  // Of a page only what a proxy says for the server behind it means anything.
  if (page && status < 500 && status !== 401 && status !== 429)
    throw stranger(asked, `it answers with a web page (HTTP ${status})`);
  return {
    status,
    late: false,
    code: "",
    text: page ? titleIn(text) : text,
    retryAfterMs: retryAfter(response),
    raw: null,
  };
}

/** The origin only: a login page's address may hold what was asked. */
function targetOf({ headers: { location = "" } }: IncomingMessage, { url }: Asked): string {
  return URL.canParse(location, url) ? new URL(location, url).origin : "another page";
}

const isPage = (response: IncomingMessage, text: string): boolean =>
  /\bhtml\b/i.test(response.headers["content-type"] ?? "") || /^\s*<(?:!doctype|html)/i.test(text);

const titleIn = (page: string): string =>
  /<title>([^<]{0,200})/i.exec(page.slice(0, 4000))?.[1]?.trim() ?? "a web page";

/** Seconds or a date; OpenAI says it in milliseconds too. */
function retryAfter({ headers }: IncomingMessage): number | null {
  const exact = headers["retry-after-ms"];
  const said = headers["retry-after"] ?? "";
  const ms = /^\d+(?:\.\d+)?$/.test(said) ? Number(said) * 1000 : Date.parse(said) - Date.now();
  const wait = typeof exact === "string" && /^\d+(?:\.\d+)?$/.test(exact) ? Number(exact) : ms;
  return Number.isNaN(wait) ? null : Math.min(Math.max(Math.ceil(wait), 0), MAX_WAIT_MS);
}
