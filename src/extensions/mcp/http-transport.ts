import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { formatSize } from "../../core/text/bounds.ts";
import type { OwnRequests } from "../../core/network.ts";
import { fetchBy } from "../../core/own-fetch.ts";

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
