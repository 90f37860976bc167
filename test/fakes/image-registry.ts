import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";

/**
 * A registry according to the OCI distribution specification (v2), on loopback, where engines accept plain http: blobs
 * by one POST, by POST and PUT, or in pieces by PATCH; manifests by tag and by digest.
 */
export interface ImageRegistry extends AsyncDisposable {
  /** 127.0.0.1:PORT */
  readonly host: string;
  /** Method and path of every call, in order. */
  readonly heard: string[];
  /** Blobs received since the start, by digest. */
  readonly sent: string[];
  /** If set, only this user may do anything. */
  login: { readonly username: string; readonly password: string } | undefined;
  /** If set, nobody may push, for this reason. */
  denies: string | undefined;
  /** The registry disappears after receiving this many more bytes of blobs. */
  goesAfter: number;
  /** Manifest digests by `NAME:TAG`. */
  readonly tags: Map<string, string>;
}

const PLACE =
  /^\/v2\/(?<name>[a-z0-9/._-]+)\/(?:blobs\/uploads\/(?<upload>[\w-]*)|blobs\/(?<blob>sha256:[0-9a-f]{64})|manifests\/(?<reference>[\w.:-]+))$/;

interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
}

export async function startImageRegistry(folder: string): Promise<ImageRegistry> {
  await mkdir(folder, { recursive: true });
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const registry: ImageRegistry = {
    host: `127.0.0.1:${port}`,
    heard: [],
    sent: [],
    login: undefined,
    denies: undefined,
    goesAfter: Infinity,
    tags: new Map(),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      if (server.listening) server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
  const leave = (): void => {
    server.close();
    server.closeAllConnections();
  };
  const store = new Store(folder, registry, leave);
  server.on("request", (request, response) => {
    const call = { request, response, url: new URL(request.url ?? "/", "http://x") };
    registry.heard.push(`${request.method} ${call.url.pathname}`);
    void answer(registry, store, call).catch(() => response.destroy());
  });
  return registry;
}

async function answer(registry: ImageRegistry, store: Store, call: Call): Promise<void> {
  const { request, url } = call;
  if (!isKnown(registry, request)) {
    call.response.setHeader("www-authenticate", 'Basic realm="registry"');
    // For the specification's own message an engine would retry for most of a minute.
    return refuse(call, 401, "UNAUTHORIZED", "authentication required, and not given");
  }
  if (url.pathname === "/v2/") return end(call, 200);
  const { name = "", upload, blob, reference } = PLACE.exec(url.pathname)?.groups ?? {};
  const reads = request.method === "GET" || request.method === "HEAD";
  if (!reads && registry.denies !== undefined) return refuse(call, 403, "DENIED", registry.denies);
  if (blob !== undefined) return store.blob(call, blob);
  if (upload !== undefined) return store.upload(call, name, upload);
  if (reference !== undefined) return store.manifest(call, name, reference);
  return refuse(call, 404, "NOT_FOUND", url.pathname);
}

const isKnown = ({ login }: ImageRegistry, { headers }: IncomingMessage): boolean =>
  login === undefined ||
  headers.authorization === `Basic ${Buffer.from(`${login.username}:${login.password}`).toString("base64")}`;

function refuse(call: Call, status: number, code: string, message: string): void {
  call.request.resume();
  const body = JSON.stringify({ errors: [{ code, message, detail: null }] });
  call.response.writeHead(status, { "content-type": "application/json" });
  call.response.end(call.request.method === "HEAD" ? undefined : body);
}

function end(
  { response }: Call,
  status: number,
  headers: Readonly<Record<string, string | number>> = {},
): void {
  response.writeHead(status, { "docker-distribution-api-version": "registry/2.0", ...headers });
  response.end();
}

const digestOf = (content: Uint8Array): string =>
  `sha256:${createHash("sha256").update(content).digest("hex")}`;

class Store {
  readonly #folder: string;
  readonly #registry: ImageRegistry;
  readonly #leave: () => void;
  /** The media type of a manifest, by `NAME@DIGEST`. */
  readonly #manifests = new Map<string, string>();

  constructor(folder: string, registry: ImageRegistry, leave: () => void) {
    this.#folder = folder;
    this.#registry = registry;
    this.#leave = leave;
  }

  #at(name: string): string {
    return path.join(this.#folder, name.replace(":", "-"));
  }

  async blob(call: Call, digest: string): Promise<void> {
    const found = await stat(this.#at(digest)).catch(() => undefined);
    if (found === undefined) return refuse(call, 404, "BLOB_UNKNOWN", digest);
    begin(call, { "content-length": found.size, "docker-content-digest": digest });
    if (call.request.method === "HEAD") call.response.end();
    else await pipeline(createReadStream(this.#at(digest)), call.response);
  }

  async upload(call: Call, name: string, upload: string): Promise<void> {
    const { request, url } = call;
    const id = upload === "" ? randomUUID() : upload;
    if (upload !== "" && !(await stat(this.#at(id)).catch(() => undefined)))
      return refuse(call, 404, "BLOB_UPLOAD_UNKNOWN", id);
    const size = await this.#append(request, id);
    const digest = url.searchParams.get("digest");
    const location = `/v2/${name}/blobs/uploads/${id}`;
    if (digest === null || request.method === "PATCH")
      return end(call, 202, { location, range: `0-${Math.max(0, size - 1)}`, "docker-upload-uuid": id });
    const hash = createHash("sha256");
    await pipeline(createReadStream(this.#at(id)), hash);
    if (`sha256:${hash.digest("hex")}` !== digest) return refuse(call, 400, "DIGEST_INVALID", digest);
    await rename(this.#at(id), this.#at(digest));
    this.#registry.sent.push(digest);
    return end(call, 201, { location: `/v2/${name}/blobs/${digest}`, "docker-content-digest": digest });
  }

  /** Appends to an upload; returns its present size in bytes. */
  async #append(request: IncomingMessage, id: string): Promise<number> {
    const file = createWriteStream(this.#at(id), { flags: "a" });
    const registry = this.#registry;
    const leave = this.#leave;
    await pipeline(
      request,
      async function* counted(source) {
        for await (const chunk of source as AsyncIterable<Buffer>) {
          registry.goesAfter -= chunk.length;
          if (registry.goesAfter < 0) leave();
          yield chunk;
        }
      },
      file,
    );
    return (await stat(this.#at(id))).size;
  }

  async manifest(call: Call, name: string, reference: string): Promise<void> {
    const { request, response } = call;
    if (request.method === "PUT") {
      const content = await buffer(request);
      const digest = digestOf(content);
      await writeFile(this.#at(digest), content);
      this.#manifests.set(`${name}@${digest}`, request.headers["content-type"] ?? "");
      if (!reference.startsWith("sha256:")) this.#registry.tags.set(`${name}:${reference}`, digest);
      return end(call, 201, {
        location: `/v2/${name}/manifests/${digest}`,
        "docker-content-digest": digest,
      });
    }
    const digest = this.#registry.tags.get(`${name}:${reference}`) ?? reference;
    const type = this.#manifests.get(`${name}@${digest}`);
    if (type === undefined) return refuse(call, 404, "MANIFEST_UNKNOWN", reference);
    const content = await readFile(this.#at(digest));
    begin(call, {
      "content-type": type,
      "content-length": content.length,
      "docker-content-digest": digest,
    });
    response.end(request.method === "HEAD" ? undefined : content);
    return undefined;
  }
}

/** Sends only the head of a response. */
function begin({ response }: Call, headers: Readonly<Record<string, string | number>>): void {
  response.writeHead(200, { "docker-distribution-api-version": "registry/2.0", ...headers });
}
