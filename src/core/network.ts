/** What a box may reach, and what it did reach. Pure words: who filters is the egress proxy of src/docker/egress. */

/** A host, or all hosts below a name, that a box may reach. */
export interface Grant {
  /** Lower case and ASCII: `registry.example.org`, `*.example.org` (below it, not itself), or an address as text. */
  readonly host: string;
  /** Empty: 443 and 80. */
  readonly ports: readonly number[];
  /**
   * In upper case, for every path (`GET`), for one (`POST /graphql`) or for the end of one (`POST …/git-upload-pack`);
   * null: any. Where some are named the proxy ends TLS itself, to see them.
   */
  readonly methods: readonly string[] | null;
  /** Whether the name may resolve to private or reserved addresses; else those are refused. */
  readonly private: boolean;
  /** What the user wrote, or the preset that it stands for: `npm`, `example.org:443`. */
  readonly origin: string;
}

/** How long a person's grant holds: for that call, for what is left of the session, or by the user's own settings too. */
export const GRANT_TERMS = ["call", "session", "always"] as const;

/** What a person grants with an answer: what the box may reach from then on, in the form of `allow_domains`. */
export interface GrantSaid {
  readonly domains: readonly string[];
  readonly for: (typeof GRANT_TERMS)[number];
}

/** A value of the user's that a box never sees: its commands have the placeholder, the proxy puts the value in. */
export interface SecretBinding {
  /** The variable's name, in the box too. */
  readonly name: string;
  readonly placeholder: string;
  readonly value: string;
  /** In the form of `Grant.host`: only requests to these carry it. */
  readonly hosts: readonly string[];
}

/** One line of the ledger: a connection that a box asked for, or one request in it where the proxy sees requests. */
export interface Connection {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** As it was asked for, escaped and cut; empty where it could not be read. */
  readonly host: string;
  readonly port: number;
  /** Null in a tunnel that is only passed on. */
  readonly method: string | null;
  readonly verdict: "allowed" | "denied";
  /** Short and stable: `not-granted`, `port`, `method`, `private-address`, `sni`, `not-tls`, `authority`, `budget` … */
  readonly rule: string;
  /** For people and models, with what would grant it. */
  readonly reason: string;
  /** Bytes towards the host and back, known when it has ended. */
  readonly up: number;
  readonly down: number;
}

/** The methods of a grant that only reads: git asks for what it fetches with a POST of its own. */
export const READING: readonly string[] = ["GET", "HEAD", "OPTIONS", "POST …/git-upload-pack"];

/** What a command was refused on its way out. */
export interface BlockedConnection extends Pick<Connection, "host" | "port" | "method" | "rule" | "reason"> {
  readonly times: number;
}

/** A request that the harness makes itself, for a tool or a server that somebody added. */
export interface OwnRequest {
  readonly url: string;
  readonly method: string;
  /** None of them comes from anywhere else: no cookie, no credential, no Referer. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** Every way it can end; nothing throws. */
export type OwnAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** In lower case, as they came. */
      readonly headers: readonly (readonly [name: string, value: string])[];
      /** As it came, not unpacked. It rejects when it breaks off, and leaving it ends the connection. */
      readonly body: AsyncIterable<Uint8Array>;
    }
  | { readonly kind: "refused"; readonly rule: string; readonly reason: string }
  | { readonly kind: "unreachable"; readonly reason: string };

/**
 * The way out of the harness itself: what is granted, judged as a box's requests are. It follows no redirect: whoever does
 * asks again.
 */
export interface OwnRequests {
  readonly send: (request: OwnRequest, signal: AbortSignal) => Promise<OwnAnswer>;
}
