import type { Socket } from "node:net";
import type { OpenLine } from "./egress-ledger.ts";
import type { EgressDenial } from "./judge-host.ts";

/**
 * The tunnel of a TLS connection: its first message is read and judged, then its bytes pass unchanged and are counted.
 */

/** The bytes that all connections of a run may carry. */
interface ByteBudget {
  readonly up: number;
  readonly down: number;
}

/** Counts bytes; once one direction has used up its budget, nothing passes in either direction. */
export class ByteMeter {
  readonly #most: ByteBudget;
  #up = 0;
  #down = 0;

  constructor(most: ByteBudget) {
    this.#most = most;
  }

  get denial(): EgressDenial | undefined {
    if (this.#up > this.#most.up) return overBudget("sent", this.#most.up);
    return this.#down > this.#most.down ? overBudget("received", this.#most.down) : undefined;
  }

  /** Counts these bytes, and tells whether they may still pass. */
  take(way: "up" | "down", bytes: number, line: OpenLine): boolean {
    line[way] += bytes;
    if (way === "up") this.#up += bytes;
    else this.#down += bytes;
    return this.#up <= this.#most.up && this.#down <= this.#most.down;
  }
}

const overBudget = (what: string, most: number): EgressDenial => ({
  rule: "budget",
  reason: `the box has ${what} more than the ${most} bytes that its run may transfer`,
});

/** The hello of a tunnel, its bytes, and what came after it. */
export interface ReceivedHello {
  readonly hello: ClientHello;
  readonly bytes: Buffer;
  readonly rest: Buffer;
}

/** Null if the client left before it sent anything that could be judged. */
export function awaitHello(
  client: Socket,
  head: Buffer,
  withinMs: number,
): Promise<ReceivedHello | EgressDenial | null> {
  const { promise, resolve } = Promise.withResolvers<ReceivedHello | EgressDenial | null>();
  let bytes = head;
  const settle = (found: ReceivedHello | EgressDenial | null): void => {
    clearTimeout(timer);
    client.pause();
    client.off("data", onData).off("end", onEnd).off("close", onEnd);
    resolve(found);
  };
  const timer = setTimeout(
    () => settle({ rule: "hello-timeout", reason: `no TLS client hello came within ${withinMs / 1000} s` }),
    withinMs,
  );
  const judge = (): void => {
    const read = readClientHello(bytes);
    if (read.kind === "hello")
      settle({ hello: read, bytes: bytes.subarray(0, read.length), rest: bytes.subarray(read.length) });
    else if (read.kind === "denied") settle(read.denial);
  };
  const onData = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk]);
    judge();
  };
  const onEnd = (): void => settle(null);
  client.on("data", onData).on("end", onEnd).on("close", onEnd);
  client.resume();
  if (client.destroyed) settle(null);
  else if (head.length > 0) judge();
  return promise;
}

/** A fatal TLS alert, so that the program reports more than a closed connection. */
export const ACCESS_DENIED = Buffer.from([21, 3, 3, 0, 2, 2, 49]);

interface TunnelEnds {
  readonly client: Socket;
  readonly server: Socket;
}

/**
 * Passes bytes on unchanged until both sides have ended, one breaks off, nothing moves for `idleMs`, or the budget is
 * spent. A side that does not read holds up the other. Resolves with the reason for the end, null if it ended by
 * itself.
 */
export function splice(
  { client, server }: TunnelEnds,
  meter: ByteMeter,
  line: OpenLine,
  { idleMs, second }: { readonly idleMs: number; readonly second: SecondHello },
): Promise<EgressDenial | null> {
  const { promise, resolve } = Promise.withResolvers<EgressDenial | null>();
  const finish = (why: EgressDenial | null): void => {
    client.destroy();
    server.destroy();
    resolve(why);
  };
  const refuse = (why: EgressDenial): void => {
    client.pause();
    server.destroy();
    client.end(ACCESS_DENIED, () => finish(why));
  };
  /** Whether the client may go on. */
  const send = (passes: Buffer | EgressDenial): boolean => {
    if (!Buffer.isBuffer(passes)) return (refuse(passes), false);
    return (passes.length === 0 || server.write(passes)) && !second.isFull;
  };
  const pump = (from: Socket, to: Socket, way: "up" | "down"): void => {
    from.on("data", (chunk: Buffer) => {
      if (!meter.take(way, chunk.length, line)) return finish(meter.denial ?? null);
      if (way === "up") return void (send(second.fromClient(chunk)) || from.pause());
      if (!to.write(chunk)) from.pause();
      const passes = second.fromServer(chunk);
      if (passes !== NOTHING && send(passes)) to.resume();
    });
    to.on("drain", () => from.resume());
    from.on("end", () => {
      if (way === "down") send(second.serverEnded());
      to.end();
    });
    from.on("error", () => finish(null));
    from.on("close", (broken) => {
      if (broken || to.destroyed) finish(null);
    });
  };
  pump(client, server, "up");
  pump(server, client, "down");
  server.setTimeout(idleMs, () =>
    finish({ rule: "idle", reason: `nothing was sent or received for ${idleMs / 1000} s` }),
  );
  // A socket that is gone already emits no more events.
  if (client.destroyed || server.destroyed) finish(null);
  client.resume();
  server.resume();
  return promise;
}

/** The first message of a TLS connection, as far as it says where the connection goes. */
interface ClientHello {
  readonly kind: "hello";
  /** In lower case, without a trailing dot; null if the hello names no server. */
  readonly serverName: string | null;
  /** The hello contains an encrypted hello, perhaps with another name. */
  readonly encrypted: boolean;
  /** The length of its records. */
  readonly length: number;
}

type HelloRead =
  | ClientHello
  | { readonly kind: "more" }
  | { readonly kind: "denied"; readonly denial: EgressDenial };

/** The most bytes of a complete hello, and the most records it may be cut into: each new piece has all read anew. */
export const MAX_HELLO_LENGTH = 16 * 1024;
export const MAX_RECORDS = 64;

const denied = (rule: string, reason: string): HelloRead => ({ kind: "denied", denial: { rule, reason } });

const NOT_TLS = denied("not-tls", "what was sent into the tunnel is not the beginning of TLS");
const MALFORMED = denied("not-tls", "what was sent into the tunnel is not a readable TLS client hello");
const TWO_NAMES = denied("sni", "the TLS client hello names more than one server");
const TOO_LONG = denied("sni", "the TLS client hello is longer than 16 KiB");

/** Reads the bytes so far; the hello may be cut into several records. */
export function readClientHello(bytes: Buffer): HelloRead {
  const parts: Buffer[] = [];
  let length = 0;
  for (let at = 0; at < bytes.length;) {
    if (!beginsRecord(bytes.subarray(at, at + 3))) return NOT_TLS;
    if (bytes.length < at + 5) break;
    const size = bytes.readUInt16BE(at + 3);
    if (size === 0 || size > MAX_HELLO_LENGTH || parts.length === MAX_RECORDS) return MALFORMED;
    parts.push(bytes.subarray(at + 5, at + 5 + size));
    length += parts.at(-1)?.length ?? 0;
    at += 5 + size;
    const whole = wholeMessage(parts, length);
    if (whole?.kind === "hello") return bytes.length < at ? MALFORMED : { ...whole, length: at };
    if (whole !== undefined) return whole;
  }
  return bytes.length >= MAX_HELLO_LENGTH ? TOO_LONG : { kind: "more" };
}

const beginsRecord = ([type, major = 3, minor = 0]: Buffer): boolean =>
  type === HANDSHAKE && major === 3 && minor <= 4;

function wholeMessage(parts: readonly Buffer[], length: number): HelloRead | undefined {
  if (length > 0 && parts[0]?.[0] !== 1) return NOT_TLS;
  if (length < 4) return undefined;
  const size = Buffer.concat(parts.slice(0, 4), Math.min(length, 4)).readUIntBE(1, 3);
  if (size > MAX_HELLO_LENGTH) return TOO_LONG;
  if (length < size + 4) return undefined;
  // A message that shares a record with the hello would not be looked at.
  if (length > size + 4) return MALFORMED;
  return readHello(new Reader(Buffer.concat(parts, length).subarray(4, size + 4)));
}

/** Reads forward; `sound` turns false for good if something is shorter than it claims. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;
  sound = true;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.sound ? this.#bytes.length - this.#at : 0;
  }

  take(count: number): Buffer {
    if (count > this.left) this.sound = false;
    if (!this.sound) return Buffer.alloc(0);
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  number(size: 1 | 2): number {
    const bytes = this.take(size);
    return this.sound ? bytes.readUIntBE(0, size) : 0;
  }

  vector(size: 1 | 2): Buffer {
    return this.take(this.number(size));
  }
}

const SERVER_NAME = 0;
const ENCRYPTED_HELLO = 0xfe_0d;

function readHello(reader: Reader): HelloRead {
  reader.take(34);
  reader.vector(1);
  reader.vector(2);
  reader.vector(1);
  if (!reader.sound) return MALFORMED;
  if (reader.left === 0) return { kind: "hello", serverName: null, encrypted: false, length: 0 };
  const extensions = new Reader(reader.vector(2));
  if (!reader.sound || reader.left > 0) return MALFORMED;
  const bodies = new Map<number, Buffer>();
  while (extensions.left > 0) {
    const type = extensions.number(2);
    const body = extensions.vector(2);
    if (!extensions.sound) return MALFORMED;
    if (bodies.has(type)) return type === SERVER_NAME ? TWO_NAMES : MALFORMED;
    bodies.set(type, body);
  }
  const names = bodies.get(SERVER_NAME);
  const encrypted = bodies.has(ENCRYPTED_HELLO);
  return names === undefined
    ? { kind: "hello", serverName: null, encrypted, length: 0 }
    : readNames(names, encrypted);
}

function readNames(bytes: Buffer, encrypted: boolean): HelloRead {
  const outer = new Reader(bytes);
  const list = new Reader(outer.vector(2));
  if (!outer.sound || outer.left > 0) return MALFORMED;
  const type = list.number(1);
  const name = list.vector(2).toString("latin1");
  if (!list.sound || type !== 0 || name === "") return MALFORMED;
  if (list.left > 0) return TWO_NAMES;
  return { kind: "hello", serverName: name.toLowerCase().replace(/\.$/, ""), encrypted, length: 0 };
}

/** The random value of a server hello that requests another client hello (RFC 8446, 4.1.3). */
const RETRY = Buffer.from("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c", "hex");
const HANDSHAKE = 22;
/** The bytes before the random value of a server hello: the heads of record and message, the version. */
const BEFORE_RANDOM = 5 + 4 + 2;

/** What a client may send before the server's first message: early data. */
const MAX_HELD = 4 * MAX_HELLO_LENGTH;
const NOTHING = Buffer.alloc(0);

/**
 * A server may request a second hello, which is not encrypted either: it must name the same server as the first, or
 * nothing more is passed on. Until the server's first message says whether it does, the client's bytes are held back:
 * a second hello that is sent before it is requested is judged, too.
 */
export class SecondHello {
  readonly #judge: (hello: ClientHello) => EgressDenial | undefined;
  /** The beginning of the server's bytes until they are understood. */
  #server: Buffer | null = NOTHING;
  #isRequested = false;
  /** The client's bytes that wait; null once everything passes. */
  #held: Buffer | null = NOTHING;

  constructor(judge: (hello: ClientHello) => EgressDenial | undefined) {
    this.#judge = judge;
  }

  /** Whether the client has to wait before it sends more. */
  get isFull(): boolean {
    return this.#server !== null && (this.#held?.length ?? 0) > MAX_HELD;
  }

  /** Looks at the server's bytes before they are passed on; returns the client's bytes that may be passed on now. */
  fromServer(chunk: Buffer): Buffer | EgressDenial {
    if (this.#server === null) return NOTHING;
    const received = Buffer.concat([this.#server, chunk.subarray(0, MAX_HELLO_LENGTH)]);
    const hello = received.subarray(skippedLength(received));
    const random = hello.subarray(BEFORE_RANDOM, BEFORE_RANDOM + RETRY.length);
    const isOther = hello.length > 0 && (hello[0] !== HANDSHAKE || (hello[5] ?? 2) !== 2);
    this.#server =
      isOther || random.length === RETRY.length || received.length > MAX_HELLO_LENGTH ? null : received;
    this.#isRequested = !isOther && random.equals(RETRY);
    return this.#passing();
  }

  /** The server sends nothing more. */
  serverEnded(): Buffer | EgressDenial {
    this.#server = null;
    return this.#passing();
  }

  /** The bytes that may be passed on now, or why none may. */
  fromClient(chunk: Buffer): Buffer | EgressDenial {
    if (this.#held === null) return chunk;
    this.#held = Buffer.concat([this.#held, chunk]);
    return this.#passing();
  }

  #passing(): Buffer | EgressDenial {
    const held = this.#held;
    if (held === null || this.#server !== null) return NOTHING;
    const read = this.#isRequested ? readClientHello(held.subarray(skippedLength(held))) : null;
    if (read?.kind === "more" && held.length <= MAX_HELD) return NOTHING;
    this.#held = null;
    if (read === null) return held;
    if (read.kind === "hello") return this.#judge(read) ?? held;
    return read.kind === "denied" ? read.denial : { rule: "sni", reason: "no second TLS client hello came" };
  }
}

/** The length of the records that may precede the next message: alerts, changes of the cipher, early data. */
function skippedLength(bytes: Buffer): number {
  let at = 0;
  while (bytes.length >= at + 5 && [20, 21, 23].includes(bytes[at] ?? 0))
    at += 5 + bytes.readUInt16BE(at + 3);
  return at;
}

/** The hello must name exactly the host that the tunnel was requested for, or no server if that is an address. */
export function judgeHello(hello: ClientHello, host: string, literal: boolean): EgressDenial | undefined {
  const { serverName, encrypted } = hello;
  if (serverName === (literal ? null : host)) return undefined;
  if (serverName === null)
    return { rule: "sni", reason: `the TLS client hello in the tunnel to ${host} names no server` };
  const found = JSON.stringify(serverName.slice(0, 100));
  const hidden = encrypted ? " and hides another name" : "";
  return { rule: "sni", reason: `the TLS client hello in the tunnel to ${host} names ${found}${hidden}` };
}
