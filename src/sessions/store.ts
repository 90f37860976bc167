import path from "node:path";
import type {
  Notes,
  Session,
  SessionAbout,
  SessionFilter,
  SessionInfo,
  SessionStore,
} from "../core/session.ts";
import { auditFile, AuditFile, dropAudit } from "./audit/file.ts";
import { Clock } from "./clock.ts";
import type { Database } from "./db/database.ts";
import { openDatabase } from "./db/open.ts";
import { newId, onlyId } from "./ids.ts";
import { storedNotes } from "./notes.ts";
import { ContentFiles } from "./outputs/files.ts";
import { StoredOutputs } from "./outputs/outputs.ts";
import { collect, QUOTA_BYTES } from "./outputs/quota.ts";
import { listed } from "./search.ts";
import { StoredSession } from "./session.ts";

export interface StoreOptions {
  /** Told what a person should know: a damaged database that was set aside. */
  readonly warn?: (text: string) => void;
  readonly now?: () => number;
  /** Bytes of all outputs together. */
  readonly quota?: number;
}

/** What is remembered in this state folder; it is made where it is not there. */
export function openStore(stateDir: string, options: StoreOptions = {}): SessionStore {
  const { warn = () => undefined, now = Date.now, quota = QUOTA_BYTES } = options;
  const db = openDatabase({ file: path.join(stateDir, "sessions.db"), warn, now });
  return new Store({ stateDir, db, files: new ContentFiles(path.join(stateDir, "outputs")), quota, now });
}

interface Parts {
  readonly stateDir: string;
  readonly db: Database;
  readonly files: ContentFiles;
  readonly quota: number;
  readonly now: () => number;
}

class Store implements SessionStore {
  readonly #stateDir: string;
  readonly #db: Database;
  readonly #files: ContentFiles;
  readonly #clock: Clock;
  readonly #quota: number;

  constructor({ stateDir, db, files, quota, now }: Parts) {
    this.#stateDir = stateDir;
    this.#db = db;
    this.#files = files;
    this.#clock = new Clock(now);
    this.#quota = quota;
  }

  create({ workspace, mode, provider, model, title }: SessionAbout): Session {
    const about = { workspace, mode, provider, model, title };
    for (;;) {
      const id = newId(this.#clock.now());
      const started = this.#clock.stamp(id);
      const row = { id, ...about, started, changed: started, messages: 0 };
      if (this.#db.insert("sessions", row, "OR IGNORE") === 1) return this.#session(id);
    }
  }

  open(id: string): Session {
    return this.#session(this.#idOf(id));
  }

  fork(id: string): Session {
    const from = this.open(id);
    return this.#db.atomically(() => {
      const session = this.create(from.info());
      for (const record of from.records()) session.append(record);
      this.#db.run(
        "INSERT INTO outputs (session, number, hash) SELECT ?, number, hash FROM outputs WHERE session = ?",
        session.id,
        from.id,
      );
      return session;
    });
  }

  last(workspace: string): string | undefined {
    return this.list({ workspace, limit: 1 })[0]?.id;
  }

  list(filter: SessionFilter): readonly SessionInfo[] {
    return listed(this.#db, filter);
  }

  remove(id: string): void {
    const whole = this.#idOf(id);
    // What only its name leads to goes no later than the name: a removal that is killed can be typed again.
    this.#db.atomically(() => {
      dropAudit(this.#stateDir, whole);
      this.#db.run("DELETE FROM sessions WHERE id = ?", whole);
      collect(this.#db, this.#files);
    });
    this.#db.all("PRAGMA incremental_vacuum");
  }

  notes(workspace: string): Notes {
    return storedNotes(this.#db, workspace, () => this.#clock.now());
  }

  [Symbol.dispose](): void {
    this.#db[Symbol.dispose]();
  }

  #session(id: string): Session {
    const file = auditFile(this.#stateDir, id);
    const own = {
      outputs: new StoredOutputs(id, this.#db, this.#files, this.#quota),
      audit: new AuditFile(file, id, this.#db, () => this.#clock.now()),
    };
    return new StoredSession(id, own, this.#db, this.#clock);
  }

  #idOf(given: string): string {
    const found = this.#db.all(
      "SELECT id FROM sessions WHERE substr(id, 1, length(?1)) = ?1 LIMIT 2",
      given,
    ) as readonly { id: string }[];
    return onlyId(
      given,
      found.map(({ id }) => id),
    );
  }
}
