import { Readable } from "node:stream";
import { URL } from "node:url";
import { constants, createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { reasonOf } from "../../core/errors.ts";
import type { OwnAnswer, OwnRequests } from "../../core/network.ts";

/** The response of an address, still unread. */
export interface Page {
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

export type Fetched =
  | Page
  | { readonly kind: "refused"; readonly url: string; readonly reason: string }
  | { readonly kind: "failed"; readonly cause: "network" | "timeout"; readonly reason: string };

export interface FetchBounds {
  /** Bytes of the answer, both as received and decompressed. */
  readonly bytes: number;
  /** From the first request to the last byte. */
  readonly withinMs: number;
}

export const FETCH_BOUNDS: FetchBounds = { bytes: 2 * 2 ** 20, withinMs: 30_000 };

const MOST_REDIRECTS = 5;
const LONGEST_REDIRECT = 4000;
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
  const late = AbortSignal.timeout(bounds.withinMs);
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
    if (hops === MOST_REDIRECTS)
      return { kind: "refused", url, reason: `it redirects more than ${MOST_REDIRECTS} times` };
    const next = redirectTarget(url, location);
    if (typeof next !== "string") return { kind: "refused", url, ...next };
    url = next;
  }
}

function redirectTarget(url: string, location: string): string | { readonly reason: string } {
  if (location.length > LONGEST_REDIRECT) return { reason: "it redirects to an address that is too long" };
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
  const packed = limited(answer.body, bounds.bytes);
  const unpack = UNPACK.get(packing);
  if (unpack === undefined) {
    await discardBody(answer);
    return {
      kind: "failed",
      cause: "network",
      reason: `it is compressed with ${packing.slice(0, 40)}, which is not supported`,
    };
  }
  const { bytes, cut } = await gathered(unpack(packed.pieces), bounds.bytes);
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
  ["gzip", (pieces: Pieces) => through(pieces, () => createGunzip(SYNC))],
  ["x-gzip", (pieces: Pieces) => through(pieces, () => createGunzip(SYNC))],
  ["deflate", (pieces: Pieces) => through(pieces, () => createInflate(SYNC))],
  [
    "br",
    (pieces: Pieces) =>
      through(pieces, () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })),
  ],
]);

/** Decompresses only as much as is requested; stopping the iteration ends it. */
async function* through(pieces: Pieces, make: () => NodeJS.ReadWriteStream & { destroy(): unknown }): Pieces {
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

function limited(body: Pieces, most: number): { readonly pieces: Pieces; readonly cut: () => boolean } {
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

async function gathered(
  pieces: Pieces,
  most: number,
): Promise<{ readonly bytes: Uint8Array; readonly cut: boolean }> {
  const { pieces: bounded, cut } = limited(pieces, most);
  const all: Uint8Array[] = [];
  for await (const piece of bounded) all.push(piece);
  return { bytes: Buffer.concat(all), cut: cut() };
}
