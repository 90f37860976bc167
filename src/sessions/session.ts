import type { Audit } from "../core/audit.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { AgentEvent } from "../core/events.ts";
import type { Message } from "../core/messages.ts";
import type { Steps } from "../core/checkpoints.ts";
import type { Outputs, Session, SessionInfo, SessionRecord } from "../core/session.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./db/database.ts";
import { storedJson } from "./db/stored-json.ts";
import { StoredSteps } from "./steps.ts";
import { countAfter, projectEvent, projectRecord, statusAfter } from "./project.ts";

/** Its state is all in the database: two processes may have the same session open. */
export class StoredSession implements Session {
  readonly id: string;
  readonly outputs: Outputs;
  readonly audit: Audit;
  readonly steps: Steps;
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(id: string, own: Pick<Session, "outputs" | "audit">, db: Database, clock: Clock) {
    this.id = id;
    this.outputs = own.outputs;
    this.audit = own.audit;
    this.steps = new StoredSteps(id, db, clock);
    this.#db = db;
    this.#clock = clock;
  }

  readonly info = (): SessionInfo => {
    const found = this.#db.get(`${INFO} WHERE id = ?`, this.id) as SessionInfo | undefined;
    if (found === undefined) throw this.#removed();
    return { ...found };
  };

  /** The only way in for records: what other tables say of one is written with it. */
  readonly append = (record: SessionRecord): void => {
    this.#db.atomically(() => this.#add(record));
  };

  readonly appendIf: Session["appendIf"] = (record, holds) =>
    this.#db.atomically(() => {
      const adds = holds(this.records());
      if (adds) this.#add(record);
      return adds;
    });

  readonly records = (): readonly SessionRecord[] =>
    (
      this.#db.all(
        `SELECT records.body AS own, messages.body AS message
         FROM records LEFT JOIN messages USING (session, seq) WHERE session = ? ORDER BY seq`,
        this.id,
      ) as readonly { own: string | null; message: string | null }[]
    ).map(({ own, message }) =>
      own === null
        ? { kind: "message", message: storedJson(message, this.id) as Message }
        : (storedJson(own, this.id) as SessionRecord),
    );

  /** What is shown piece by piece while it comes is not kept: the reply's message holds it. */
  readonly log = (event: AgentEvent): void => {
    if (event.type === "text" || event.type === "thinking") return;
    const body = JSON.stringify(event);
    this.#db.atomically(() => {
      this.#countOf();
      const row = { session: this.id, seq: this.#next("events") };
      const at = this.#clock.stamp(this.id);
      this.#db.insert("events", { ...row, at, run: event.run, type: event.type, body });
      projectEvent(this.#db, row, event);
      this.#db.run("UPDATE sessions SET changed = max(changed, ?) WHERE id = ?", at, this.id);
    });
  };

  readonly events = function* (this: StoredSession): Generator<AgentEvent> {
    for (const { event } of this.timeline()) yield event;
  }.bind(this);

  /** Read in portions, so that no reader holds up those who write. */
  readonly timeline = function* (this: StoredSession): Generator<{ at: number; event: AgentEvent }> {
    for (let last = 0; ;) {
      const rows = this.#db.all(
        `SELECT seq, at, body FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ${PORTION}`,
        this.id,
        last,
      ) as readonly { seq: number; at: number; body: string }[];
      for (const { at, body } of rows) yield { at, event: storedJson(body, this.id) as AgentEvent };
      if (rows.length < PORTION) return;
      last = rows.at(-1)?.seq ?? last;
    }
  }.bind(this);

  #add(record: SessionRecord): void {
    const body = record.kind === "message" ? null : JSON.stringify(record);
    const before = this.#countOf();
    const row = { session: this.id, seq: this.#next("records") };
    const at = this.#clock.stamp(this.id);
    this.#db.insert("records", { ...row, at, kind: record.kind, body });
    projectRecord(this.#db, row, record, before);
    this.#db.run(
      "UPDATE sessions SET changed = max(changed, ?), messages = ? WHERE id = ?",
      at,
      countAfter(record, before),
      this.id,
    );
    const status = statusAfter(record);
    if (status !== undefined) this.#db.run("UPDATE sessions SET status = ? WHERE id = ?", status, this.id);
  }

  #countOf(): number {
    const found = this.#db.get("SELECT messages FROM sessions WHERE id = ?", this.id) as
      | { messages: number }
      | undefined;
    if (found === undefined) throw this.#removed();
    return found.messages;
  }

  #next(table: "records" | "events"): number {
    const sql = `SELECT coalesce(max(seq), 0) + 1 AS next FROM ${table} WHERE session = ?`;
    return (this.#db.get(sql, this.id) as { next: number } | undefined)?.next ?? 1;
  }

  #removed(): HarnessError {
    return new HarnessError(EXIT.failed, `the session ${this.id} was removed`, "harness sessions list");
  }
}

const PORTION = 500;

export const INFO =
  "SELECT id, workspace, mode, provider, model, title, started, changed, messages, status FROM sessions";
