import { type ChildProcess, spawn } from "node:child_process";
import { createPrivateKey, createSign, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, createServer as createWire, type Socket } from "node:net";
import path from "node:path";
import { text } from "node:stream/consumers";
import { freePort, listensAt } from "../fixtures/loopback-port.ts";
import { makeCertificates } from "../fixtures/https-stub.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

/** The distribution's registry on this machine's loopback, with a separate folder. */

const PROGRAM = process.env["HARNESS_TEST_REGISTRY"] ?? "";
export const USER = "me";
export const PASSWORD = "right/word+1";
/** The hash of that password. */
const HASH = "$2y$05$abcdefghijklmnopqrstuuHOYTLpy3pA7R1HwSxzIc4zWcWrKc7Sq";
export const REFRESH = "refresh-token-of-the-tests";

export interface RealRegistry extends AsyncDisposable {
  /** 127.0.0.1:PORT, over a wire that can be cut. */
  readonly host: string;
  readonly data: string;
  readonly kill: () => Promise<void>;
  readonly start: () => Promise<void>;
  /** Calls `how` after this many more bytes were sent. */
  cutAt: { readonly bytes: number; readonly how: () => void } | undefined;
}

interface RegistryOptions {
  readonly auth?: "htpasswd" | "token";
  readonly tls?: boolean;
  readonly readOnly?: boolean;
  /** The size in MiB of an in-memory disk. */
  readonly disk?: number;
}

export async function realRegistry(options: RegistryOptions = {}): Promise<RealRegistry> {
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await scratch({}, "/var/tmp"));
  const data = place.at("data");
  for (const folder of [data, place.at("certs")]) await mkdir(folder);
  makeCertificates(place.at("certs"), ["IP:127.0.0.1"]);
  const port = await freePort();
  let child: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  stack.defer(kill);
  const tokens = options.auth === "token" ? stack.use(await tokenServer(place)) : undefined;
  const config = await place.write(
    "config.json",
    JSON.stringify(configOf(place, port, options, tokens?.url)),
  );
  await place.write("htpasswd", `${USER}:${HASH}\n`);
  const start = async (): Promise<void> => {
    const words = [PROGRAM, "serve", config];
    const room = `mount -t tmpfs -o size=${options.disk ?? 0}m tmpfs ${data} && exec "$@"`;
    const [program = "", ...rest] =
      options.disk === undefined ? words : ["unshare", "-m", "sh", "-c", room, "sh", ...words];
    child = spawn(program, rest, { stdio: "ignore", env: { PATH: process.env["PATH"] } });
    await listensAt(port, child);
  };
  await start();
  const registry = { cutAt: undefined } as { cutAt: RealRegistry["cutAt"] };
  const wire = stack.use(await startWire(port, registry));
  const all = stack.move();
  return Object.assign(registry, {
    host: `127.0.0.1:${wire.port}`,
    data,
    kill,
    start,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  });
}

/** JSON is YAML. */
function configOf(
  place: Scratch,
  port: number,
  { auth, tls = false, readOnly = false }: RegistryOptions,
  realm: string | undefined,
): object {
  const [certificate, key] = [place.at("certs/own.pem"), place.at("certs/own.key")];
  const ways = {
    htpasswd: { htpasswd: { realm: "registry", path: place.at("htpasswd") } },
    token: {
      token: { realm, service: "registry", issuer: "tests", rootcertbundle: place.at("certs/token.pem") },
    },
  };
  return {
    version: 0.1,
    log: { level: "error" },
    storage: {
      filesystem: { rootdirectory: place.at("data") },
      delete: { enabled: true },
      maintenance: { readonly: { enabled: readOnly } },
    },
    http: {
      addr: `127.0.0.1:${port}`,
      // Upload locations come without a host, so that a proxy in between is not bypassed.
      relativeurls: true,
      ...(tls ? { tls: { certificate, key } } : {}),
    },
    ...(auth === undefined ? {} : { auth: ways[auth] }),
  };
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Issues tokens for a password, or for a token that replaces it. */
async function tokenServer(place: Scratch): Promise<AsyncDisposable & { readonly url: string }> {
  const folder = place.at("token");
  await mkdir(folder);
  makeCertificates(folder, ["DNS:tokens"]);
  await writeFile(place.at("certs/token.pem"), await readFile(path.join(folder, "own.pem")));
  const certificate = await readFile(path.join(folder, "own.pem"), "utf8");
  const key = createPrivateKey(await readFile(path.join(folder, "own.key")));
  const signed = (account: string, scopes: readonly string[]): string => {
    const now = Math.floor(Date.now() / 1000);
    const access = scopes.map((scope) => {
      const [type, name, actions = ""] = scope.split(/:(?=[^:]*$)|(?<=^[a-z]+):/);
      return { type, name, actions: actions.split(",") };
    });
    const header = { typ: "JWT", alg: "ES256", x5c: [certificate.replaceAll(/-----[^-]+-----|\s/g, "")] };
    const claims = { iss: "tests", sub: account, aud: "registry", nbf: now - 10, iat: now, exp: now + 300 };
    const body = `${part(header)}.${part({ ...claims, jti: randomUUID(), access })}`;
    const signature = createSign("sha256").update(body).sign({ key, dsaEncoding: "ieee-p1363" });
    return `${body}.${signature.toString("base64url")}`;
  };
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const scopes = await grantedScopes(request);
      const token = scopes === undefined ? undefined : signed(USER, scopes);
      const told = token === undefined ? {} : { token, access_token: token, expires_in: 300 };
      response.writeHead(token === undefined ? 401 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(told));
    };
    void answer().catch(() => response.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const scopesIn = (fields: URLSearchParams): readonly string[] =>
  fields.getAll("scope").flatMap((scope) => scope.split(" "));

/** The requested scopes; undefined for an unknown client. */
async function grantedScopes(request: IncomingMessage): Promise<readonly string[] | undefined> {
  if (request.method === "POST") {
    const fields = new URLSearchParams(await text(request));
    const known = fields.get("refresh_token") === REFRESH || fields.get("password") === PASSWORD;
    return known ? scopesIn(fields) : undefined;
  }
  const basic = `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString("base64")}`;
  if (request.headers.authorization !== basic) return undefined;
  return scopesIn(new URL(request.url ?? "/", "http://x").searchParams);
}

async function startWire(
  to: number,
  registry: Pick<RealRegistry, "cutAt">,
): Promise<AsyncDisposable & { readonly port: number }> {
  const open = new Set<Socket>();
  let sent = 0;
  const server = createWire((near) => {
    const far = connect(to, "127.0.0.1");
    for (const each of [near, far]) {
      open.add(each);
      each.on("error", () => undefined);
      each.on("close", () => {
        open.delete(each);
        near.destroy();
        far.destroy();
      });
    }
    near.on("data", (bytes: Buffer) => {
      const { cutAt } = registry;
      if (cutAt === undefined) return void (sent = 0);
      sent += bytes.length;
      if (sent < cutAt.bytes) return;
      registry.cutAt = undefined;
      cutAt.how();
    });
    near.pipe(far).pipe(near);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const each of open) each.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
