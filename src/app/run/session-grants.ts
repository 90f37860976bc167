import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import {
  type Connection,
  type Grant,
  type AnswerGrant,
  installs,
  type OwnRequests,
} from "../../core/network.ts";
import { boundsOf, grantsOf } from "../boxes/granted-network.ts";
import type { Host } from "../host.ts";
import { connectionEvent, type LazyBox } from "./lazy-box.ts";
import type { Emit } from "../../core/events.ts";
import type { GrantedRequests } from "../../docker/egress/own-requests.ts";

interface GrantParts {
  readonly host: Host;
  readonly settings: Settings;
  readonly workspace: string;
  readonly box: Pick<LazyBox, "network" | "countPackages">;
  /** Grants also apply to the harness's own requests. */
  readonly requests?: Pick<HarnessRequests, "grant">;
  readonly warn: (text: string) => void;
  /** Keeps a grant that lasts longer than a call. */
  readonly keepGrant?: (grant: AnswerGrant) => Promise<void>;
}

/** What may be reached while a person answers questions: the grants of the settings, and those that the person adds. */
export class SessionGrants {
  readonly #parts: GrantParts;
  #domains: readonly string[];

  constructor(parts: GrantParts) {
    this.#parts = parts;
    this.#domains = parts.settings.allow_domains;
  }

  /** A new list whenever something was added, and the same list until then. */
  readonly domains = (): readonly string[] => this.#domains;

  /** Resolves when the running box has the grant; the returned function withdraws it. */
  readonly grant = async (wanted: AnswerGrant, signal: AbortSignal): Promise<() => void> => {
    const { box, requests, keepGrant } = this.#parts;
    const fresh = wanted.domains.filter((each) => !this.#domains.includes(each));
    if (fresh.length === 0) return () => undefined;
    const { grants, variables, files } = await grantsOf(fresh, this.#parts, signal);
    const network = await box.network();
    if (network === undefined) throw new HarnessError(EXIT.sandbox, NO_WAY, NEXT);
    if (fresh.some(installs) && !this.#domains.some(installs)) await box.countPackages(signal);
    const ofBox = await network.grant(grants, variables, files);
    const ofHarness = requests?.grant(grants);
    const withdraw = (): void => {
      ofBox();
      ofHarness?.();
    };
    if (wanted.for === "call") return withdraw;
    this.#domains = [...new Set([...this.#domains, ...fresh])];
    await keepGrant?.({ ...wanted, domains: fresh });
    return withdraw;
  };
}

const NO_WAY =
  "a box with full access, or one that was started without support for grants, cannot be granted hosts while it runs";
const NEXT = "run it again with --allow-domain";

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
      import("../../docker/egress/own-requests.ts"),
      import("../../docker/egress/host-trust.ts"),
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
