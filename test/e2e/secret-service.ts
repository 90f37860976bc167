import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:https";
import path from "node:path";
import { makeSessionAuthority } from "../../src/docker/egress/session-authority.ts";

/** Of no known kind: only that it was named as a secret tells it from other words. */
export const VALUE = "plover-0-quartz-7-mauve";

export interface Service {
  /** Its name and port. */
  readonly at: string;
  /** Of its authority. */
  readonly pem: string;
  /** What it was told, credentials first. */
  readonly asked: readonly string[];
}

/** By https on loopback, as a company's service: whom it is signed by is known by the user's own settings alone. */
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

/** Every file below the folder that holds the value, in the usual spellings, or what else is asked for. */
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
