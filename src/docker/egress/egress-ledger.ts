import type { Connection } from "../../core/network.ts";
import { visibleLine } from "../../core/visible.ts";

/** What a box has requested, within limits: the first and the last lines of each verdict are kept. */
export interface Ledger {
  /** Ordered by time; open connections show the bytes passed so far. */
  readonly connections: readonly Connection[];
  /** How many lines were left out. */
  readonly dropped: number;
}

export interface RequestedHost {
  readonly host: string;
  readonly port: number;
  readonly method: string | null;
}

/** A connection that was allowed and has not ended. */
export interface OpenLine {
  up: number;
  down: number;
  /** Writes the line, with how the connection ended; only the first call counts. */
  end: (rule?: string, reason?: string) => void;
}

/** How many of the first lines are kept; of the last lines, LAST_LINES to twice as many are. */
const FIRST_LINES = { allowed: 4000, denied: 500 } as const;
const LAST_LINES = 500;

class FirstAndLast {
  readonly #first: Connection[] = [];
  #last: Connection[] = [];
  readonly #most: number;
  dropped = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Whether the line is one of the first. */
  add(line: Connection): boolean {
    if (this.#first.length < this.#most) return this.#first.push(line) > 0;
    this.#last.push(line);
    if (this.#last.length >= 2 * LAST_LINES) {
      this.#last = this.#last.slice(LAST_LINES);
      this.dropped += LAST_LINES;
    }
    return false;
  }

  get lines(): readonly Connection[] {
    return [...this.#first, ...this.#last];
  }
}

export class EgressLedger {
  readonly #ended = {
    allowed: new FirstAndLast(FIRST_LINES.allowed),
    denied: new FirstAndLast(FIRST_LINES.denied),
  };
  readonly #open = new Map<OpenLine, () => Connection>();
  readonly #tell: (connection: Connection) => void;

  /** `tell` gets each line when it is written, but of a flood only the first lines, which `read` keeps for good. */
  constructor(tell: (connection: Connection) => void) {
    this.#tell = tell;
  }

  denied(requestedHost: RequestedHost, rule: string, reason: string): void {
    this.#write({
      at: Date.now(),
      ...shownHost(requestedHost),
      verdict: "denied",
      rule,
      reason: visibleLine(reason),
      up: 0,
      down: 0,
    });
  }

  allowed(requestedHost: RequestedHost, rule = "granted", reason = ""): OpenLine {
    const begun = { at: Date.now(), ...shownHost(requestedHost) };
    const line: OpenLine = {
      up: 0,
      down: 0,
      end: (endRule = rule, endReason = reason) => {
        if (!this.#open.delete(line)) return;
        const verdict = DENIED_LATE.has(endRule) ? "denied" : "allowed";
        const ended = { rule: endRule, reason: visibleLine(endReason), up: line.up, down: line.down };
        this.#write({ ...begun, verdict, ...ended });
      },
    };
    this.#open.set(line, () => ({
      ...begun,
      verdict: "allowed",
      rule,
      reason,
      up: line.up,
      down: line.down,
    }));
    return line;
  }

  /** Writes the lines of all open connections. */
  endAll(): void {
    for (const line of this.#open.keys()) line.end();
  }

  read(): Ledger {
    const { allowed, denied } = this.#ended;
    const open = Array.from(this.#open.values(), (line) => line());
    return {
      connections: [...allowed.lines, ...denied.lines, ...open].toSorted((one, other) => one.at - other.at),
      dropped: allowed.dropped + denied.dropped,
    };
  }

  #write(line: Connection): void {
    if (this.#ended[line.verdict].add(line)) this.#tell(line);
  }
}

/** Rules that can only be checked in an open tunnel: a connection that breaks one counts as denied. */
const DENIED_LATE: ReadonlySet<string> = new Set(["sni", "not-tls", "hello-timeout", "budget"]);

const shownHost = ({ host, port, method }: RequestedHost): RequestedHost => ({
  host: visibleLine(host.slice(0, 300)),
  port,
  method: method === null ? null : visibleLine(method.slice(0, 20)),
});
