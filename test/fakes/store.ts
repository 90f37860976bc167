import assert from "node:assert/strict";
import {
  type Audit,
  isReplyPiece,
  type Notes,
  type Outputs,
  type Session,
  type SessionAbout,
  type SessionFilter,
  type SessionInfo,
  type SessionRecord,
  type SessionStore,
} from "../../src/core/session.ts";
import type { AgentEvent } from "../../src/core/events.ts";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import type { Message } from "../../src/core/model-provider.ts";
import { memoryNotes } from "./tool-context.ts";
import { memorySteps } from "./steps.ts";
import { SessionClock, statusAfter } from "../../src/sessions/stored-session.ts";
import { newId, idByPrefix, pageOf } from "../../src/sessions/session-store.ts";

/** A store without a disk. Values are copied on the way in, so that values handed out never change. */
export function memoryStore(now: () => number = Date.now): SessionStore {
  const clock = new SessionClock(now);
  const sessions = new Map<string, MemorySession>();
  const notes = new Map<string, Notes>();
  let open = true;
  const find = (given: string): MemorySession => {
    const found = [...sessions.keys()].filter((id) => id.startsWith(given));
    return sessions.get(idByPrefix(given, found)) ?? assert.fail();
  };
  const freeId = (): string => {
    const id = newId(clock.now());
    return sessions.has(id) ? freeId() : id;
  };
  const newestFirst = (): readonly MemorySession[] =>
    [...sessions.values()].toSorted((a, b) => b.info().changed - a.info().changed);
  const usable = <T>(value: () => T): T => {
    assert.ok(open, "the store is closed");
    return value();
  };
  return {
    reserve: () => usable(freeId),
    create: (about, id) =>
      usable(() => {
        assert.ok(id === undefined || !sessions.has(id));
        const session = new MemorySession(id ?? freeId(), about, clock, (id) => sessions.has(id));
        sessions.set(session.id, session);
        return session;
      }),
    open: (id) => usable(() => find(id)),
    fork: (id) =>
      usable(() => {
        const from = find(id);
        const session = new MemorySession(freeId(), from.info(), clock, (own) => sessions.has(own));
        sessions.set(session.id, session);
        for (const record of from.records()) session.append(record);
        for (const text of from.outputs.kept) session.outputs.keep(text);
        return session;
      }),
    last: (workspace) => usable(() => newestFirst().find((one) => one.info().workspace === workspace)?.id),
    list: (filter) =>
      usable(() =>
        newestFirst()
          .filter((one) => fits(one, filter))
          .slice(0, filter.limit)
          .map((one) => one.info()),
      ),
    remove: (id) => usable(() => void sessions.delete(find(id).id)),
    notes: (workspace) => {
      const own = notes.get(workspace) ?? memoryNotes(now);
      notes.set(workspace, own);
      return own;
    },
    [Symbol.dispose]: () => {
      open = false;
    },
  };
}

function fits(session: MemorySession, { workspace, query = "" }: SessionFilter): boolean {
  const info = session.info();
  if (workspace !== undefined && info.workspace !== workspace) return false;
  const said = session
    .records()
    .flatMap((record) => (record.kind === "message" ? [record.message.text] : []));
  return [info.title, ...said].some((text) => has(text, query));
}

const has = (text: string, query: string): boolean => text.toLowerCase().includes(query.toLowerCase());

class MemorySession implements Session {
  readonly id: string;
  readonly outputs = memoryOutputs();
  readonly audit: Audit = memoryAudit();
  readonly steps = memorySteps();
  readonly #clock: SessionClock;
  readonly #exists: (id: string) => boolean;
  readonly #records: SessionRecord[] = [];
  readonly #events: { readonly at: number; readonly event: AgentEvent }[] = [];
  #live: Message[] = [];
  #info: SessionInfo;

  constructor(id: string, about: SessionAbout, clock: SessionClock, exists: (id: string) => boolean) {
    this.id = id;
    this.#clock = clock;
    this.#exists = exists;
    const started = clock.stamp(id);
    this.#info = { ...structuredClone(about), id, started, changed: started, messages: 0, status: null };
  }

  info = (): SessionInfo => this.#info;

  appendIf: Session["appendIf"] = (record, holds) => {
    const adds = holds(this.records());
    if (adds) this.append(record);
    return adds;
  };

  append = (given: SessionRecord): void => {
    this.#touch();
    const record = structuredClone(given);
    this.#records.push(record);
    if (record.kind === "message") this.#live.push(record.message);
    if (record.kind === "rolled_back") this.#live = this.#live.slice(0, record.to);
    if (record.kind === "cleared") this.#live = [];
    const status = statusAfter(record);
    this.#info = { ...this.#info, messages: this.#live.length, ...(status === undefined ? {} : { status }) };
  };

  records = (): readonly SessionRecord[] => structuredClone(this.#records);

  log = (event: AgentEvent): void => {
    if (isReplyPiece(event)) return;
    this.#touch();
    this.#events.push({ at: this.#info.changed, event: structuredClone(event) });
  };

  atomically = <T>(work: () => T): T => {
    const [records, events] = [this.#records.length, this.#events.length];
    const [live, info] = [[...this.#live], this.#info];
    try {
      return work();
    } catch (thrown) {
      this.#records.length = records;
      this.#events.length = events;
      [this.#live, this.#info] = [live, info];
      throw thrown;
    }
  };

  events = (): Iterable<AgentEvent> => structuredClone(this.#events).map(({ event }) => event);

  lastRun = (): string | undefined => this.#events.at(-1)?.event.run;

  timeline = (): ReturnType<Session["timeline"]> => structuredClone(this.#events);

  #touch(): void {
    if (!this.#exists(this.id)) throw new HarnessError(EXIT.failed, `the session ${this.id} was removed`);
    this.#info = { ...this.#info, changed: this.#clock.stamp(this.id) };
  }
}

function memoryAudit(): Audit {
  const state = { lines: 0 };
  return {
    write: (entries) => {
      state.lines += structuredClone(entries).length;
    },
    verify: () => ({ file: "memory", ok: true, lines: state.lines, broken: null, notes: [] }),
  };
}

function memoryOutputs(): Outputs & { readonly kept: readonly string[] } {
  const kept: string[] = [];
  return {
    kept,
    keep: (text) => `o${kept.push(text.toWellFormed())}`,
    page: (id, offset, limit) => {
      const text = /^o[1-9]\d*$/.test(id) ? kept[Number(id.slice(1)) - 1] : undefined;
      return text === undefined ? undefined : pageOf(text, offset, limit);
    },
  };
}
