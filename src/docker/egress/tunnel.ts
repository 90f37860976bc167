import type { Socket } from "node:net";
import type { OpenLine } from "./egress-ledger.ts";
import { type ClientHello, LONGEST_HELLO, readClientHello, type SecondHello } from "./client-hello.ts";
import type { Denial } from "./judge-host.ts";

/** The bytes that all connections of a run may carry. */
export interface ByteBudget {
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

  get denial(): Denial | undefined {
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

const overBudget = (what: string, most: number): Denial => ({
  rule: "budget",
  reason: `the box has ${what} more than the ${most} bytes that its run may transfer`,
});

/** The hello of a tunnel, with all bytes that came with it. */
export interface ReceivedHello {
  readonly hello: ClientHello;
  readonly bytes: Buffer;
}

/** Null if the client left before it sent anything that could be judged. */
export function awaitHello(
  client: Socket,
  head: Buffer,
  withinMs: number,
): Promise<ReceivedHello | Denial | null> {
  const { promise, resolve } = Promise.withResolvers<ReceivedHello | Denial | null>();
  let bytes = head;
  const settle = (found: ReceivedHello | Denial | null): void => {
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
    if (read.kind === "hello") settle({ hello: read, bytes });
    else if (read.kind === "denied") settle(read.denial);
  };
  const onData = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk.subarray(0, 2 * LONGEST_HELLO)]);
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
): Promise<Denial | null> {
  const { promise, resolve } = Promise.withResolvers<Denial | null>();
  const finish = (why: Denial | null): void => {
    client.destroy();
    server.destroy();
    resolve(why);
  };
  const pump = (from: Socket, to: Socket, way: "up" | "down"): void => {
    from.on("data", (chunk: Buffer) => {
      if (!meter.take(way, chunk.length, line)) return finish(meter.denial ?? null);
      const passes = way === "up" ? second.fromClient(chunk) : chunk;
      if (way === "down") second.fromServer(chunk);
      if (!Buffer.isBuffer(passes)) {
        from.pause();
        server.destroy();
        return void client.end(ACCESS_DENIED, () => finish(passes));
      }
      if (!to.write(passes)) from.pause();
    });
    to.on("drain", () => from.resume());
    from.on("end", () => to.end());
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
