import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:https";
import path from "node:path";
import { makeSessionAuthority } from "../../src/docker/egress/tls-ending.ts";

/** A secret of no known form: only its declaration distinguishes it from other words. */
export const VALUE = "plover-0-quartz-7-mauve";

export interface Service {
  /** The service's name and port. */
  readonly at: string;
  /** The certificate of its authority, in PEM. */
  readonly pem: string;
  /** What the service received, credentials first. */
  readonly asked: readonly string[];
}

/** An https service on loopback, like a company's: only the user's own settings trust its authority. */
export async function service(): Promise<Service> {
  const authority = makeSessionAuthority();
  const asked: string[] = [];
  const server = createServer(
    { SNICallback: (_, give) => give(null, authority.contextFor("localhost")) },
    (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const said = `${request.headers.authorization} ${Buffer.concat(chunks).toString()}`;
        asked.push(said);
        response.end(
          `you said ${said} ${Buffer.from(VALUE).toString("base64")} ${encodeURIComponent(VALUE)}\n`,
        );
      });
    },
  );
  server.listen(0, "localhost");
  await once(server, "listening");
  server.unref();
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { at: `localhost:${port}`, pem: authority.pem, asked };
}

/** Every file below the folder that contains the value in a usual encoding, or satisfies `isIn`. */
export async function holding(
  folder: string,
  isIn: (text: string) => boolean = holds,
): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
  const held = await Promise.all(files.map(async (file) => isIn((await readFile(file)).toString("latin1"))));
  return files.filter((_, at) => held[at]);
}

export const holds = (text: string): boolean =>
  text.includes(VALUE) || text.includes(Buffer.from(VALUE).toString("base64").replace(/=+$/, ""));
