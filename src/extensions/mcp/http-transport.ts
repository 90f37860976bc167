import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { formatSize } from "../../core/text/bounds.ts";
import type { OwnRequests } from "../../core/network.ts";

/** Bytes of one answer; a longer event stream is broken off and reopened. */
const MOST_BODY = 16 * 2 ** 20;

/**
 * MCP over HTTP. Requests are judged like those of a box: only granted hosts are contacted, and no redirect is
 * followed, so headers go only where they were meant to.
 */
export function httpTransport(
  url: string,
  headers: Readonly<Record<string, string>>,
  requests: OwnRequests,
): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(url), {
    fetch: fetchBy(withBoundedBody(requests)),
    requestInit: { headers: { ...headers, "accept-encoding": "identity" } },
  });
}

const withBoundedBody = ({ send }: OwnRequests): OwnRequests => ({
  send: async (request, signal) => {
    const answer = await send(request, signal);
    return answer.kind === "answered" ? { ...answer, body: within(answer.body) } : answer;
  },
});

async function* within(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let came = 0;
  for await (const bytes of body) {
    came += bytes.length;
    if (came > MOST_BODY) throw new Error(`the server's answer is larger than ${formatSize(MOST_BODY)}`);
    yield bytes;
  }
}

/** The options that a third-party client may pass to `fetch`. */
interface FetchInit {
  readonly method?: string;
  readonly headers?: ConstructorParameters<typeof Headers>[0];
  readonly body?: unknown;
  readonly signal?: AbortSignal | null;
}

/**
 * A `fetch` for such a client, over the harness's own network access. It follows no redirect and decompresses nothing.
 * If a host is not granted or not reachable, it rejects with the words of the gate.
 */
export const fetchBy =
  ({ send }: OwnRequests) =>
  async (url: string | URL, init: FetchInit = {}): Promise<Response> => {
    const { method = "GET", body = null, signal } = init;
    if (body !== null && typeof body !== "string" && !(body instanceof Uint8Array))
      throw new TypeError("only text or bytes can be sent as a body");
    const headers = Object.fromEntries(new Headers(init.headers).entries());
    const request = {
      url: String(url),
      method: method.toUpperCase(),
      headers,
      ...(body === null ? {} : { body }),
    };
    const answer = await send(request, signal ?? new AbortController().signal);
    signal?.throwIfAborted();
    if (answer.kind !== "answered") throw new Error(answer.reason);
    const { status } = answer;
    const told = new Headers(answer.headers.map(([name, value]): [string, string] => [name, value]));
    if (!BODILESS.has(status)) return new Response(streamOf(answer.body), { status, headers: told });
    for await (const _ of answer.body) break;
    return new Response(null, { status, headers: told });
  };

const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

function streamOf(body: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const pieces = body[Symbol.asyncIterator]();
  return new ReadableStream({
    pull: async (controller) => {
      const next: IteratorResult<Uint8Array, unknown> = await pieces.next();
      if (next.done === true) controller.close();
      else controller.enqueue(next.value);
    },
    cancel: async () => {
      await pieces.return?.();
    },
  });
}
