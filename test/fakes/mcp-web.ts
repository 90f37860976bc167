import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { converse } from "../fixtures/mcp-server.ts";

export interface McpWeb extends AsyncDisposable {
  readonly url: string;
  readonly host: string;
  readonly heard: {
    readonly method: string;
    readonly authorization: string | undefined;
    readonly body: string;
  }[];
  /** Forgets every session, as after a restart of the server. */
  readonly forget: () => void;
}

/** The fixtures' server behind HTTP, with a session for each greeting; `answer` may handle a request instead. */
export async function startMcpWeb(
  answer: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
): Promise<McpWeb> {
  const heard: { method: string; authorization: string | undefined; body: string }[] = [];
  const state = { session: 1 };
  const listening = createServer((request, response) => {
    const { method = "", headers } = request;
    const told = { method, authorization: headers.authorization, body: "" };
    heard.push(told);
    if (answer(request, response)) return;
    if (method !== "POST") return void response.writeHead(405).end();
    void text(request).then((body) => {
      told.body = body;
      const { id, method: what } = JSON.parse(body) as { readonly id?: number; readonly method?: string };
      const session = `s${state.session}`;
      if (what !== "initialize" && headers["mcp-session-id"] !== session)
        return response.writeHead(404).end();
      if (id === undefined) return response.writeHead(202).end();
      const head = { "content-type": "application/json", "mcp-session-id": session };
      return converse("good", {
        say: (line) => response.writeHead(200, head).end(line),
        raw: (said) => response.write(said),
        exit: () => response.destroy(),
        note: () => undefined,
      })(body);
    });
  });
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const { port } = listening.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    host: `127.0.0.1:${port}`,
    heard,
    forget: () => void (state.session += 1),
    [Symbol.asyncDispose]: async () => {
      listening.closeAllConnections();
      await new Promise((resolve) => listening.close(resolve));
    },
  };
}
