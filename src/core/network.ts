/** What a box may reach, and what it did reach. Types only: the filter is the egress proxy in src/docker/egress. */

/** A host, or all hosts below a name, that a box may reach. */
export interface Grant {
  /** Lower case and ASCII: `registry.example.org`, `*.example.org` (below it, not itself), or an address as text. */
  readonly host: string;
  /** Empty: 443 and 80. */
  readonly ports: readonly number[];
  /**
   * In upper case: for every path (`GET`), for one path (`POST /graphql`), or for the end of one (`POST
   * …/git-upload-pack`); null allows any. To see the methods, the proxy terminates TLS itself when some are named.
   */
  readonly methods: readonly string[] | null;
  /** Whether the name may resolve to private or reserved addresses; otherwise those are refused. */
  readonly private: boolean;
  /** What the user wrote, or the preset that it stands for: `npm`, `example.org:443`. */
  readonly origin: string;
}

/** How long a person's grant lasts: for that call, the rest of the session, or always, by the user's settings. */
export const GRANT_TERMS = ["call", "session", "always"] as const;

/** What a person grants with an answer: what the box may reach from then on, in the form of `allow_domains`. */
export interface GrantSaid {
  readonly domains: readonly string[];
  readonly for: (typeof GRANT_TERMS)[number];
}

/** A value of the user that a box never sees: its commands get the placeholder, and the proxy puts in the value. */
export interface SecretBinding {
  /** The variable's name, also in the box. */
  readonly name: string;
  readonly placeholder: string;
  readonly value: string;
  /** In the form of `Grant.host`: only requests to these hosts carry the value. */
  readonly hosts: readonly string[];
}

/** One line of the ledger: a connection that a box asked for, or one request in it if the proxy sees requests. */
export interface Connection {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** As requested, escaped and cut; empty when it could not be read. */
  readonly host: string;
  readonly port: number;
  /** Null in a tunnel that is only passed through. */
  readonly method: string | null;
  readonly verdict: "allowed" | "denied";
  /** Short and stable: `not-granted`, `port`, `method`, `private-address`, `sni`, `not-tls`, `authority`, `budget` … */
  readonly rule: string;
  /** For people and models, including what would grant it. */
  readonly reason: string;
  /** Bytes towards the host and back, known once the connection has ended. */
  readonly up: number;
  readonly down: number;
}

/** The methods of a read-only grant: git requests what it fetches with a POST. */
export const READING: readonly string[] = ["GET", "HEAD", "OPTIONS", "POST …/git-upload-pack"];

/** A connection that a command was refused. */
export interface BlockedConnection extends Pick<Connection, "host" | "port" | "method" | "rule" | "reason"> {
  readonly times: number;
}

/** A request that harness makes itself, for a tool or a server that somebody added. */
export interface OwnRequest {
  readonly url: string;
  readonly method: string;
  /** The only headers that are sent: no cookies, credentials or Referer from elsewhere. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** Every way in which the request can end; nothing throws. */
export type OwnAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** Names in lower case, in the order received. */
      readonly headers: readonly (readonly [name: string, value: string])[];
      /** As received, not decompressed. Rejects if the connection breaks off; stopping early ends the connection. */
      readonly body: AsyncIterable<Uint8Array>;
    }
  | { readonly kind: "refused"; readonly rule: string; readonly reason: string }
  | { readonly kind: "unreachable"; readonly reason: string };

/**
 * Requests of harness itself, judged by the grants like a box's requests. Redirects are not followed: the caller has to
 * send another request.
 */
export interface OwnRequests {
  readonly send: (request: OwnRequest, signal: AbortSignal) => Promise<OwnAnswer>;
}
