import type { Page } from "./fetch-page.ts";

/** How to read the bytes of a page. */
export type PageContent =
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
    return { kind: "other", what: `of the type ${named.slice(0, 80)}` };
  const charset = charsetIn(parameters) ?? (HTML.test(named) ? metaCharset(head) : undefined);
  const { text, notes } = decoded(bytes, charset, cut);
  if (/\0/.test(text.slice(0, 4096))) return { kind: "other", what: "binary data" };
  const isHtml =
    HTML.test(named) ||
    (UNKNOWN_TYPES.test(named) && /^\s*(?:<!doctype html|<html|<head|<body)/i.test(text.slice(0, 1024)));
  return { kind: isHtml ? "html" : "text", text, notes };
}

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
