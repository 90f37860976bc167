import {
  type Audit,
  isReplyPiece,
  type Outputs,
  type Session,
  type SessionInfo,
  type SessionRecord,
  type Step,
  type StepStore,
} from "../core/session.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { AgentEvent, RunStatus } from "../core/events.ts";
import type { Message } from "../core/model-provider.ts";
import type { Database } from "./sessions-db.ts";

/** All of its state is in the database: two processes may have the same session open. */
export class StoredSession implements Session {
  readonly id: string;
  readonly outputs: Outputs;
  readonly audit: Audit;
  readonly steps: StepStore;
  readonly #db: Database;
  readonly #clock: SessionClock;
  #isNewest = false;

  constructor(id: string, own: Pick<Session, "outputs" | "audit">, db: Database, clock: SessionClock) {
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

  /** The only way to add records: updates of other tables are part of the same transaction. */
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

  readonly log = (event: AgentEvent): void => {
    if (isReplyPiece(event)) return;
    const body = JSON.stringify(event);
    this.#db.atomically(() => {
      this.#countOf();
      const row = { session: this.id, seq: this.#next("events") };
      const at = this.#clock.stamp(this.id);
      this.#db.insert("events", { ...row, at, run: event.run, type: event.type, body });
      projectEvent(this.#db, row, event);
      this.#change(at);
    });
  };

  readonly atomically = <T>(work: () => T): T => this.#db.atomically(work);

  readonly events = function* (this: StoredSession): Generator<AgentEvent> {
    for (const { event } of this.timeline()) yield event;
  }.bind(this);

  readonly lastRun = (): string | undefined =>
    (
      this.#db.get("SELECT run FROM events WHERE session = ? ORDER BY seq DESC LIMIT 1", this.id) as
        | { readonly run: string }
        | undefined
    )?.run;

  /** Reads in portions, so that no reader holds up a writer. */
  readonly timeline = function* (this: StoredSession): Generator<{ at: number; event: AgentEvent }> {
    for (let last = 0; ;) {
      const rows = this.#db.all(
        `SELECT seq, at, body FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ${PAGE_SIZE}`,
        this.id,
        last,
      ) as readonly { seq: number; at: number; body: string }[];
      for (const { at, body } of rows) yield { at, event: storedJson(body, this.id) as AgentEvent };
      if (rows.length < PAGE_SIZE) return;
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
    this.#change(at);
    const messages = countAfter(record, before);
    if (messages !== before) this.#db.run("UPDATE sessions SET messages = ? WHERE id = ?", messages, this.id);
    const status = statusAfter(record);
    if (status !== undefined) this.#db.run("UPDATE sessions SET status = ? WHERE id = ?", status, this.id);
  }

  /**
   * The first write of a process makes the session the newest one, even if the clock was set back after another change.
   */
  #change(at: number): void {
    this.#db.run("UPDATE sessions SET changed = max(changed, ?) WHERE id = ?", at, this.id);
    if (this.#isNewest) return;
    this.#db.run(
      `UPDATE sessions SET changed = max(changed, (SELECT max(changed) + 1 FROM sessions WHERE id <> ?1))
       WHERE id = ?1 AND EXISTS (SELECT 1 FROM sessions WHERE id <> ?1)`,
      this.id,
    );
    this.#isNewest = true;
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

const PAGE_SIZE = 500;

export const INFO =
  "SELECT id, workspace, mode, provider, model, title, started, changed, messages, status FROM sessions";

class StoredSteps implements StepStore {
  readonly #session: string;
  readonly #db: Database;
  readonly #clock: SessionClock;

  constructor(session: string, db: Database, clock: SessionClock) {
    this.#session = session;
    this.#db = db;
    this.#clock = clock;
  }

  begin({ kind, call, turn, before, target }: Omit<Step, "step" | "at" | "after" | "ended">): number {
    return this.#db.atomically(() => {
      const sql = "SELECT coalesce(max(step), 0) + 1 AS next FROM checkpoints WHERE session = ?";
      const step = (this.#db.get(sql, this.#session) as { next: number } | undefined)?.next ?? 1;
      const row = { session: this.#session, step, kind, call, turn, at: this.#clock.now() };
      this.#db.insert("checkpoints", { ...row, before_tree: before, target });
      return step;
    });
  }

  end(step: number, { before, after }: { readonly before: string; readonly after: string }): void {
    this.#db.run(
      `UPDATE checkpoints SET before_tree = ?, after_tree = ?,
         ended = max(?, (SELECT coalesce(max(ended), 0) + 1 FROM checkpoints WHERE session = ?))
       WHERE session = ? AND step = ?`,
      before,
      after,
      this.#clock.now(),
      this.#session,
      this.#session,
      step,
    );
  }

  all(): readonly Step[] {
    return this.#db.all(
      `SELECT step, kind, call, turn, at, before_tree AS before, after_tree AS after, ended, target
       FROM checkpoints WHERE session = ? ORDER BY step`,
      this.#session,
    ) as readonly Step[];
  }
}

interface Row {
  readonly session: string;
  readonly seq: number;
}

/** The number of valid messages after this record, given the number before it. */
function countAfter(record: SessionRecord, before: number): number {
  if (record.kind === "message") return before + 1;
  if (record.kind === "rolled_back") return Math.max(0, Math.min(before, record.to));
  return record.kind === "cleared" ? 0 : before;
}

/** The session's new status; undefined if it stays. A run that continues has not ended. */
export function statusAfter(record: SessionRecord): RunStatus | null | undefined {
  if (record.kind === "turn") return record.result.status;
  return record.kind === "answered" ? null : undefined;
}

/** Updates the tables derived from `records`; `before` as above. */
function projectRecord(db: Database, row: Row, record: SessionRecord, before: number): void {
  switch (record.kind) {
    case "message": {
      const { message } = record;
      db.insert("messages", { ...row, place: before, role: message.role, body: JSON.stringify(message) });
      return;
    }
    case "rolled_back":
    case "cleared":
      db.run(
        "UPDATE messages SET gone = ? WHERE session = ? AND gone IS NULL AND place >= ?",
        row.seq,
        row.session,
        countAfter(record, before),
      );
      return;
    case "compacted": {
      const { at, pruneBefore, keepFrom, artifact } = record.compaction;
      db.insert("compactions", {
        ...row,
        at_count: at,
        prune_before: pruneBefore,
        keep_from: keepFrom,
        artifact,
      });
      return;
    }
    case "turn":
      projectTurn(db, row, record.result);
      return;
    case "pinned":
    case "seen":
    case "shell":
    case "plan":
    case "tasks":
    case "parked":
    case "answered":
  }
}

type TurnRecord = Extract<SessionRecord, { kind: "turn" }>;

function projectTurn(db: Database, row: Row, result: TurnRecord["result"]): void {
  const { intent, status, reason, usage, turns, toolCalls, answer } = result;
  const { requests, prompt_tokens, completion_tokens, cached_tokens, cost } = usage;
  const used = { requests, prompt_tokens, completion_tokens, cached_tokens, cost };
  db.insert("turn_results", {
    ...row,
    intent,
    status,
    reason,
    ...used,
    turns,
    tool_calls: toolCalls,
    answer,
  });
}

/** Updates the tables derived from `events`. */
function projectEvent(db: Database, row: Row, event: AgentEvent): void {
  switch (event.type) {
    case "call.proposed": {
      const { run, agent = null, call, tool } = event;
      db.insert("tool_calls", { session: row.session, proposed: row.seq, run, agent, call, tool });
      return;
    }
    case "call.decided":
      db.insert("decisions", {
        ...row,
        run: event.run,
        call: event.call,
        verdict: event.decision,
        contained: Number(event.contained),
        runs: Number(event.runs),
        said_by: event.by,
        rules: JSON.stringify(event.rules),
      });
      return;
    case "call.ended":
      projectEnd(db, row, event);
      return;
    default:
  }
}

/** Finds the latest open call with this id: a provider may reuse an id. */
function projectEnd(db: Database, row: Row, event: Extract<AgentEvent, { type: "call.ended" }>): void {
  const { run, agent = null, call, kind, cause, full, ms } = event;
  const begun = db.get(
    `SELECT proposed AS seq FROM tool_calls
     WHERE session = ? AND run = ? AND call = ? AND agent IS ? AND ended IS NULL
     ORDER BY proposed DESC LIMIT 1`,
    row.session,
    run,
    call,
    agent,
  ) as { seq: number } | undefined;
  if (begun === undefined) return;
  db.run(
    `UPDATE tool_calls SET ended = ?, kind = ?, cause = ?, full_output = ?, ms = ?
     WHERE session = ? AND proposed = ?`,
    row.seq,
    kind,
    cause,
    full,
    ms,
    row.session,
    begun.seq,
  );
}

/**
 * Times of changes to sessions. No two sessions of one store share a time, so the newest one is known; a single session
 * does not run ahead of real time, however often it changes.
 */
export class SessionClock {
  readonly #now: () => number;
  #last = { id: "", at: 0 };

  constructor(now: () => number) {
    this.#now = now;
  }

  now(): number {
    return this.#now();
  }

  stamp(id: string): number {
    const last = this.#last;
    const earliest = last.id === id ? last.at : last.at + 1;
    this.#last = { id, at: Math.max(earliest, this.#now()) };
    return this.#last.at;
  }
}

/** Parses stored JSON. SQLite has no checksums for its pages, so damage to a text may show only here. */
function storedJson(text: string | null, session: string): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch (thrown) {
    throw new HarnessError(
      EXIT.failed,
      `the session ${session} is damaged: a text in it cannot be read`,
      `harness sessions rm ${session}   (the other sessions are intact)`,
      thrown,
    );
  }
}
