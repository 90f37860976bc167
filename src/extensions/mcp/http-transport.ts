import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { formatSize } from "../../core/text/bounds.ts";
import type { OwnRequests } from "../../core/network.ts";

/** Of one answer; a stream of events that is longer breaks off, and is begun anew. */
const MOST_BODY = 16 * 2 ** 20;

/**
 * MCP over HTTP, by requests that are judged as those of a box: what is not granted is not asked for, no redirect is
 * followed, and so no header goes anywhere but where it was meant to.
 */
export function httpTransport(
  url: string,
  headers: Readonly<Record<string, string>>,
  requests: OwnRequests,
): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(url), {
    fetch: fetchBy(bounded(requests)),
    requestInit: { headers: { ...headers, "accept-encoding": "identity" } },
  });
}

const bounded = ({ send }: OwnRequests): OwnRequests => ({
  send: async (request, signal) => {
    const answer = await send(request, signal);
    return answer.kind === "answered" ? { ...answer, body: within(answer.body) } : answer;
  },
});

async function* within(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let came = 0;
  for await (const bytes of body) {
    came += bytes.length;
    if (came > MOST_BODY) throw new Error(`the server's answer has more than ${formatSize(MOST_BODY)}`);
    yield bytes;
  }
}

/** What a client that somebody else wrote may ask of `fetch`. */
interface FetchInit {
  readonly method?: string;
  readonly headers?: ConstructorParameters<typeof Headers>[0];
  readonly body?: unknown;
  readonly signal?: AbortSignal | null;
}

/**
 * `fetch` for such a client, over the harness's own way out: it follows no redirect and unpacks nothing; what is not granted
 * and what cannot be reached rejects, in the words of the gate.
 */
export const fetchBy =
  ({ send }: OwnRequests) =>
  async (url: string | URL, init: FetchInit = {}): Promise<Response> => {
    const { method = "GET", body = null, signal } = init;
    if (body !== null && typeof body !== "string" && !(body instanceof Uint8Array))
      throw new TypeError("a body that is neither text nor bytes is not sent");
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
