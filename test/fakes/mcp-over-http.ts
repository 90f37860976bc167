import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { converse } from "../fixtures/mcp-server.ts";

interface McpOverHttp extends AsyncDisposable {
  readonly url: string;
  /** Tools that were called. */
  readonly called: readonly string[];
}

const ignore = (): void => undefined;

/** The fixtures' server behind streamable HTTP: each message is answered at once. */
export async function startMcpOverHttp(): Promise<McpOverHttp> {
  const called: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (request.method !== "POST") return void response.writeHead(405).end();
      const text = Buffer.concat(chunks).toString("utf8");
      const { id, method, params } = JSON.parse(text) as {
        readonly id?: unknown;
        readonly method?: string;
        readonly params?: { readonly name?: string };
      };
      if (method === "tools/call") called.push(params?.name ?? "");
      if (id === undefined) return void response.writeHead(202).end();
      const say = (line: string): void => {
        if (!response.headersSent) response.writeHead(200, { "content-type": "application/json" }).end(line);
      };
      converse("good", { say, raw: ignore, exit: ignore, note: ignore })(text);
      return undefined;
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    called,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
