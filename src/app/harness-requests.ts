import type { Settings } from "../config/settings-schema.ts";
import { reasonOf } from "../core/errors.ts";
import type { Emit } from "../core/events.ts";
import type { Connection, Grant, OwnRequests } from "../core/network.ts";
import type { GrantedRequests } from "../docker/egress/own-requests.ts";
import { boundsOf, grantsOf } from "./granted-network.ts";
import type { Host } from "./host.ts";
import { connectionEvent } from "./run/lazy-box.ts";

interface RequestParts {
  readonly host: Host;
  readonly settings: Settings;
  readonly workspace: string;
  /** The domains granted now; in a chat they grow. */
  readonly domains: () => readonly string[];
  readonly emit: Emit;
  readonly warn: (text: string) => void;
}

const NOT_YET = (): void => undefined;

/**
 * The requests that the harness itself makes in a run or a chat: for web tools, and for MCP servers that are reached by
 * HTTP. Nothing is loaded before the first request.
 */
export class HarnessRequests implements OwnRequests, AsyncDisposable {
  readonly #parts: RequestParts;
  readonly #opened: Promise<GrantedRequests>[] = [];
  readonly #granted = new Set<string>();
  /** What a person granted, with the function that revokes the grant at the gate. */
  readonly #personGrants = new Map<readonly Grant[], () => void>();
  #main: Promise<GrantedRequests> | undefined;

  constructor(parts: RequestParts) {
    this.#parts = parts;
  }

  readonly send: OwnRequests["send"] = async (request, signal) => {
    try {
      return await (await this.#granting(signal)).send(request, signal);
    } catch (thrown) {
      return { kind: "unreachable", reason: reasonOf(thrown) };
    }
  };

  async #granting(signal: AbortSignal): Promise<GrantedRequests> {
    this.#main ??= this.#open([]);
    const main = await this.#main;
    for (const [grants, withdraw] of this.#personGrants)
      if (withdraw === NOT_YET) this.#personGrants.set(grants, main.grant(grants));
    const fresh = this.#parts.domains().filter((each) => !this.#granted.has(each));
    if (fresh.length > 0) {
      // The box's own opening reports what these words stand for, so the warnings are dropped here.
      const asking = { ...this.#parts, warn: () => undefined };
      main.grant((await grantsOf(fresh, asking, signal)).grants);
      for (const each of fresh) this.#granted.add(each);
    }
    return main;
  }

  /** Grants what a person allowed, until the returned function is called. */
  grant(more: readonly Grant[]): () => void {
    const grants = [...more];
    this.#personGrants.set(grants, NOT_YET);
    return () => {
      this.#personGrants.get(grants)?.();
      this.#personGrants.delete(grants);
    };
  }

  /** Access to a service that the user's settings name, and to nothing else; no box gets it. */
  serviceAt({ hostname, port, protocol }: URL): OwnRequests {
    const usual = protocol === "https:" ? 443 : 80;
    const host = hostname.replace(/^\[(.*)\]$/, "$1");
    const ports = [port === "" ? usual : Number(port)];
    const grant: Grant = { host, ports, methods: null, private: true, origin: host };
    const opened = (): Promise<GrantedRequests> => (at.way ??= this.#open([grant]));
    const at: { way?: Promise<GrantedRequests> } = {};
    return { send: async (request, signal) => (await opened()).send(request, signal) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of await Promise.allSettled(this.#opened))
      if (each.status === "fulfilled") await each.value[Symbol.asyncDispose]();
  }

  #open(grants: readonly Grant[]): Promise<GrantedRequests> {
    const opening = this.#made(grants);
    this.#opened.push(opening);
    return opening;
  }

  async #made(grants: readonly Grant[]): Promise<GrantedRequests> {
    const { host, settings, emit, warn } = this.#parts;
    const [{ GrantedRequests: Requests }, { hostTrust }] = await Promise.all([
      import("../docker/egress/own-requests.ts"),
      import("../docker/egress/host-trust.ts"),
    ]);
    const trust = await hostTrust(host.env, warn);
    return new Requests({
      grants,
      ...boundsOf(settings),
      env: host.env,
      ...(trust === "" ? {} : { roots: trust }),
      onConnection: (connection: Connection) => emit({ ...connectionEvent(connection), by: "harness" }),
    });
  }
}
