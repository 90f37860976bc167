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
