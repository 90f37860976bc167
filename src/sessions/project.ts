import type { AgentEvent, RunStatus } from "../core/events.ts";
import type { SessionRecord } from "../core/session.ts";
import type { Database } from "./db/database.ts";

/** A row of `records` or `events`. */
export interface Row {
  readonly session: string;
  readonly seq: number;
}

/** How many messages count after this record, when so many did before it. */
export function countAfter(record: SessionRecord, before: number): number {
  if (record.kind === "message") return before + 1;
  if (record.kind === "rolled_back") return Math.max(0, Math.min(before, record.to));
  return record.kind === "cleared" ? 0 : before;
}

/** The session's from now on; undefined where it stays. A run that goes on has not ended. */
export function statusAfter(record: SessionRecord): RunStatus | null | undefined {
  if (record.kind === "turn") return record.result.status;
  return record.kind === "answered" ? null : undefined;
}

/** What the tables made from `records` say of it; `before` as above. */
export function projectRecord(db: Database, row: Row, record: SessionRecord, before: number): void {
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

/** What the tables made from `events` say of it. */
export function projectEvent(db: Database, row: Row, event: AgentEvent): void {
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

/** The latest call of this name that is under way: a provider may use a name again. */
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
