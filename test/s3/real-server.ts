import { type ChildProcess, spawn } from "node:child_process";
import { createHash, createHmac } from "node:crypto";
import { once } from "node:events";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { type IncomingMessage, request as plainRequest } from "node:http";
import { request as securedRequest } from "node:https";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import path from "node:path";
import { text as textOf } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort, listensAt } from "../fixtures/loopback-port.ts";
import { signedHeaders } from "../../src/s3/bucket-access.ts";
import { makeCertificates } from "../fixtures/https-stub.ts";
import { scratch } from "../fixtures/scratch.ts";

/** MinIO as built by `test/s3/main.ts`, on this machine's loopback, with a separate folder and separate keys. */

const PROGRAM = process.env["HARNESS_TEST_MINIO"] ?? "";
const REGION = "eu-test-1";
const KEY_ID = "root-of-the-tests";
const SECRET_KEY = "a+secret/of+the/tests=0123";

export interface RealServer extends AsyncDisposable {
  /** Environment variables for the server with its own keys, directly or over the wire. */
  readonly env: Readonly<Record<string, string>>;
  readonly wire: Wire;
  /** A file with its authority's certificate; empty if it speaks no TLS. */
  readonly authority: string;
  readonly kill: (signal: NodeJS.Signals) => Promise<void>;
  readonly start: () => Promise<void>;
  /** Sends a request as the owner, which must be answered with 200. */
  readonly ask: (method: string, address: string, sent?: Sent) => Promise<string>;
  /** Temporary keys that may do only these actions. */
  readonly lend: (actions: readonly string[]) => Promise<Readonly<Record<string, string>>>;
}

interface Sent {
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RealOptions {
  readonly tls?: boolean;
  /** The size in MiB of an in-memory disk; by default the folder of the test is used. */
  readonly disk?: number;
}

export async function realServer({ tls = false, disk }: RealOptions = {}): Promise<RealServer> {
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await scratch({}, "/var/tmp"));
  const [data, certs] = [place.at("data"), place.at("certs")];
  for (const folder of [data, certs, path.join(certs, "CAs")]) await mkdir(folder);
  const ca = tls ? await ownCertificate(certs) : undefined;
  const port = await freePort();
  let child: ChildProcess | undefined;
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    if (signal !== "SIGSTOP" && signal !== "SIGCONT") await ended;
  };
  stack.defer(() => kill("SIGKILL"));
  const wire = stack.use(await startWire(port));
  const scheme = tls ? "https" : "http";
  const env = {
    AWS_ACCESS_KEY_ID: KEY_ID,
    AWS_SECRET_ACCESS_KEY: SECRET_KEY,
    AWS_REGION: REGION,
    AWS_ENDPOINT_URL: `${scheme}://127.0.0.1:${wire.port}`,
  };
  const start = async (): Promise<void> => {
    const words = [PROGRAM, "server", data, "--quiet", "--certs-dir", certs];
    words.push("--address", `127.0.0.1:${port}`);
    const room = `mount -t tmpfs -o size=${disk ?? 0}m tmpfs ${data} && exec "$@"`;
    const [program = "", ...rest] =
      disk === undefined ? words : ["unshare", "-m", "sh", "-c", room, "sh", ...words];
    child = spawn(program, rest, {
      stdio: "ignore",
      env: {
        PATH: process.env["PATH"],
        HOME: place.path,
        MINIO_ROOT_USER: KEY_ID,
        MINIO_ROOT_PASSWORD: SECRET_KEY,
        MINIO_SITE_REGION: REGION,
        MINIO_BROWSER: "off",
        // The server must contact nobody else.
        MINIO_UPDATE: "off",
      },
    });
    await listensAt(port, child);
  };
  const asked = (method: string, address: string, sent: Sent = {}): Promise<string> =>
    ownerAsks({ method, url: new URL(`${scheme}://127.0.0.1:${port}${address}`), ca, ...sent });
  await start();
  const all = stack.move();
  return {
    env,
    wire,
    authority: tls ? path.join(certs, "ca.pem") : "",
    kill,
    start,
    ask: asked,
    lend: async (actions) => {
      const policy = {
        Version: "2012-10-17",
        Statement: [{ Effect: "Allow", Action: actions, Resource: ["arn:aws:s3:::*"] }],
      };
      const xml = await lentKeys(new URL(`${scheme}://127.0.0.1:${port}/`), ca, policy);
      const of = (name: string): string => new RegExp(`<${name}>([^<]+)</${name}>`).exec(xml)?.[1] ?? "";
      return {
        ...env,
        AWS_ACCESS_KEY_ID: of("AccessKeyId"),
        AWS_SECRET_ACCESS_KEY: of("SecretAccessKey"),
        AWS_SESSION_TOKEN: of("SessionToken"),
      };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Creates the server's certificate; returns its authority. */
async function ownCertificate(folder: string): Promise<string> {
  makeCertificates(folder, ["IP:127.0.0.1"]);
  await copyFile(path.join(folder, "own.pem"), path.join(folder, "public.crt"));
  await copyFile(path.join(folder, "own.key"), path.join(folder, "private.key"));
  return readFile(path.join(folder, "ca.pem"), "utf8");
}

interface Request extends Sent {
  readonly method: string;
  readonly url: URL;
  /** The certificate of its authority; undefined if it speaks no TLS. */
  readonly ca: string | undefined;
}

async function ownerAsks(asked: Request): Promise<string> {
  const { method, url, body = "", headers = {} } = asked;
  const keys = { accessKeyId: KEY_ID, secretAccessKey: SECRET_KEY, sessionToken: undefined };
  const request = { method, url, payload: Buffer.from(body), headers };
  const signed = signedHeaders(request, keys, { region: REGION, at: new Date() });
  return answered({ ...asked, headers: signed });
}

/** The authority is passed explicitly: this process read its trusted authorities at its start. */
async function answered({ method, url, body = "", headers, ca }: Request): Promise<string> {
  const make = ca === undefined ? plainRequest : securedRequest;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  make(url, { method, headers, agent: false, ...(ca === undefined ? {} : { ca }) })
    .once("response", resolve)
    .once("error", reject)
    .end(body);
  const answer = await promise;
  const told = await textOf(answer);
  if (answer.statusCode === 503 && told.includes("ServerNotInitialized")) {
    await sleep(100);
    return answered({ method, url, body, ...(headers === undefined ? {} : { headers }), ca });
  }
  if (answer.statusCode !== 200)
    throw new Error(`${method} ${url.pathname}: ${String(answer.statusCode)} ${told}`);
  return told;
}

const hash = (text: string): string => createHash("sha256").update(text).digest("hex");

const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** The service that lends keys has another name in the signature. */
async function lentKeys(url: URL, ca: string | undefined, policy: object): Promise<string> {
  const body = new URLSearchParams({
    Action: "AssumeRole",
    Version: "2011-06-15",
    DurationSeconds: "900",
    Policy: JSON.stringify(policy),
  }).toString();
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const scope = [time.slice(0, 8), REGION, "sts", "aws4_request"];
  const names = "host;x-amz-content-sha256;x-amz-date";
  const lines = `host:${url.host}\nx-amz-content-sha256:${hash(body)}\nx-amz-date:${time}\n`;
  const canonical = `POST\n/\n\n${lines}\n${names}\n${hash(body)}`;
  const text = `AWS4-HMAC-SHA256\n${time}\n${scope.join("/")}\n${hash(canonical)}`;
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${SECRET_KEY}`);
  return answered({
    method: "POST",
    url,
    body,
    ca,
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "x-amz-content-sha256": hash(body),
      "x-amz-date": time,
      authorization: `AWS4-HMAC-SHA256 Credential=${KEY_ID}/${scope.join("/")}, SignedHeaders=${names}, Signature=${hmac(key, text).toString("hex")}`,
    },
  });
}

/** A relay between a client and the server that can cut connections. */
interface Wire extends AsyncDisposable {
  readonly port: number;
  /** Calls `how` once, after this many bytes went to the server on one connection. */
  cutAt: { readonly bytes: number; readonly how: () => void } | undefined;
}

async function startWire(to: number): Promise<Wire> {
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(to, "127.0.0.1");
    let sent = 0;
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
      sent += bytes.length;
      if (wire.cutAt === undefined || sent < wire.cutAt.bytes) return;
      const { how } = wire.cutAt;
      wire.cutAt = undefined;
      how();
      near.destroy();
    });
    near.pipe(far).pipe(near);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const wire: Wire = {
    port: (server.address() as AddressInfo).port,
    cutAt: undefined,
    [Symbol.asyncDispose]: async () => {
      for (const each of open) each.destroy();
      server.close();
      await once(server, "close");
    },
  };
  return wire;
}
