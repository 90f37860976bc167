import type { IncomingMessage } from "node:http";
import { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import type { SecretBinding } from "../../core/network.ts";
import { spellingsOf } from "../../core/secrets.ts";
import { pairsOf, type Rewriting, valuesOf } from "./forward-request.ts";

/** Secrets are put into requests to their hosts, and taken out of the answers. */

/**
 * A box has placeholders; requests to a host that a secret is bound to carry the value in their place, and answers
 * never do: wherever an answer repeats the value, as it is or as it was written into the request, it is turned back
 * into the placeholder. A value that the host changes first (reversed, hashed, in pieces) is not recognized.
 */
export function secretSwap(secrets: readonly SecretBinding[]): Rewriting {
  const sent: Exchange[] = secrets.flatMap(spellings);
  return {
    requestHeaders: (raw) => [
      ...eachValue(forWholeAnswers(raw), (value, name) => filledHeader(value, name, secrets, sent)),
      "Accept-Encoding",
      "identity",
    ],
    requestTarget: (target) =>
      replaceEach(
        target,
        secrets.map(({ placeholder, value }) => [placeholder, encodeURIComponent(value)]),
      ),
    requestBody: (request, body) => filledBody(request, body, secrets),
    responseHeaders: (raw) =>
      eachValue(withoutLengths(raw), (value) =>
        replaceEach(
          value,
          sent.map(([placeholder, value_]) => [value_, placeholder]),
        ),
      ),
    responseBody: (response) => [...decoders(response), masking(sent)],
  };
}

/** The name of a secret whose placeholder occurs in the head of a request. */
export function placeholderIn(
  request: IncomingMessage,
  secrets: readonly SecretBinding[],
): string | undefined {
  const values = Array.from(pairsOf(request.rawHeaders), ([, value]) => value + (basicOf(value) ?? ""));
  const text = [request.url ?? "", ...values].join("\n");
  return secrets.find(({ placeholder }) => text.includes(placeholder))?.name;
}

/** A text inside the box and its counterpart outside; both as bytes in Latin-1. */
type Exchange = readonly [inside: string, outside: string];

const bytes = (text: string): string => Buffer.from(text).toString("latin1");
const escaped = (text: string): string => bytes(JSON.stringify(text).slice(1, -1));

const spellings = ({ placeholder, value }: SecretBinding): readonly Exchange[] =>
  spellingsOf(value).map((form) => [placeholder, bytes(form)]);

/** The longest first, because one may be the beginning of another. */
const replaceEach = (text: string, exchanges: readonly Exchange[]): string =>
  exchanges
    .toSorted(([one], [other]) => other.length - one.length)
    .reduce((changed, [from, to]) => changed.replaceAll(from, () => to), text);

function eachValue(raw: readonly string[], change: (value: string, name: string) => string): string[] {
  return Array.from(pairsOf(raw)).flatMap(([name, value]) => [name, change(value, name)]);
}

const withoutHeader = (raw: readonly string[], name: string): string[] =>
  Array.from(pairsOf(raw)).flatMap(([each, value]) => (each.toLowerCase() === name ? [] : [each, value]));

/** An uncompressed answer can be searched as it comes; a partial answer would lack the beginning of a value. */
const forWholeAnswers = (raw: readonly string[]): string[] =>
  withoutHeader(withoutHeader(withoutHeader(raw, "accept-encoding"), "range"), "if-range");
const withoutLengths = (raw: readonly string[]): string[] =>
  withoutHeader(withoutHeader(raw, "content-length"), "content-encoding");

const BASIC = /^(basic\s+)([\w+/=-]+)\s*$/i;

function basicOf(value: string): string | undefined {
  const match = BASIC.exec(value);
  return match === null ? undefined : Buffer.from(match[2] ?? "", "base64").toString("latin1");
}

function filledHeader(
  value: string,
  name: string,
  secrets: readonly SecretBinding[],
  sent: Exchange[],
): string {
  const direct = secrets.map(({ placeholder, value: real }): Exchange => [placeholder, bytes(real)]);
  const inside = /authorization$/i.test(name) ? basicOf(value) : undefined;
  if (inside === undefined || !secrets.some(({ placeholder }) => inside.includes(placeholder)))
    return replaceEach(value, direct);
  const credentials = Buffer.from(replaceEach(inside, direct), "latin1").toString("base64");
  sent.push([BASIC.exec(value)?.[2] ?? "", credentials]);
  return value.replace(BASIC, (_, word: string) => word + credentials);
}

/** Each kind of text has its own way to write a value. */
function filledBody(request: IncomingMessage, body: Buffer, secrets: readonly SecretBinding[]): Buffer {
  const type = request.headers["content-type"] ?? "";
  const write = /json/i.test(type) ? escaped : /urlencoded/i.test(type) ? encodeURIComponent : bytes;
  const exchanges = secrets.map(({ placeholder, value }): Exchange => [placeholder, write(value)]);
  return Buffer.from(replaceEach(body.toString("latin1"), exchanges), "latin1");
}

/** For a host that compresses an answer although it was asked not to. */
function decoders(response: IncomingMessage): readonly Transform[] {
  const codings = valuesOf(response.rawHeaders, "content-encoding").flatMap((value) =>
    value.toLowerCase().split(","),
  );
  return codings
    .map((coding) => coding.trim())
    .filter((coding) => coding !== "" && coding !== "identity")
    .toReversed()
    .map((coding) => {
      const decoder = DECODERS.get(coding);
      if (decoder === undefined) throw new Error("the answer is compressed in a way that cannot be searched");
      return decoder();
    });
}

const DECODERS: ReadonlyMap<string, () => Transform> = new Map([
  ["gzip", () => createGunzip()],
  ["x-gzip", () => createGunzip()],
  ["deflate", () => createInflate()],
  ["br", () => createBrotliDecompress()],
  ["zstd", () => createZstdDecompress()],
]);

/** Holds back only what could be the beginning of a value, or of a longer one. */
function masking(exchanges: readonly Exchange[]): Transform {
  const inside = new Map(exchanges.map(([placeholder, value]) => [value, placeholder]));
  const values = [...inside.keys()].toSorted((one, other) => other.length - one.length);
  const any = new RegExp(values.map(literally).join("|"), "g");
  let pending = "";
  const take = (more: string): string => {
    const text = pending + more;
    const open = text.length - partialMatch(text, values);
    let masked = "";
    let at = 0;
    for (any.lastIndex = 0; ;) {
      const match = any.exec(text);
      if (match === null || match.index >= open) break;
      masked += text.slice(at, match.index) + (inside.get(match[0]) ?? "");
      at = any.lastIndex;
    }
    const end = text.length - partialMatch(text.slice(at), values);
    pending = text.slice(end);
    return masked + text.slice(at, end);
  };
  return new Transform({
    transform(chunk: Buffer, _, done) {
      done(null, Buffer.from(take(chunk.toString("latin1")), "latin1"));
    },
    flush(done) {
      const rest = pending.replace(any, (value) => inside.get(value) ?? "");
      done(null, Buffer.from(rest, "latin1"));
    },
  });
}

const literally = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);

/** How many characters at the end of the text could begin one of these values. */
function partialMatch(text: string, values: readonly string[]): number {
  return values.reduce((most, value) => {
    for (let length = Math.min(value.length - 1, text.length); length > most; length -= 1)
      if (text.endsWith(value.slice(0, length))) return length;
    return most;
  }, 0);
}
