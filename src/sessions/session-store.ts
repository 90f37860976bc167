import { randomInt } from "node:crypto";
import path from "node:path";
import { EXIT, UnknownSession } from "../core/errors.ts";
import type { Message } from "../core/messages.ts";
import type {
  Notes,
  Session,
  SessionAbout,
  SessionFilter,
  SessionInfo,
  SessionStore,
} from "../core/session.ts";
import { auditFile, AuditFile, dropAudit } from "./audit-file.ts";
import type { Database } from "./database.ts";
import { openDatabase } from "./sessions-db.ts";
import { storedNotes } from "./note-store.ts";
import { collect, ContentFiles, QUOTA_BYTES, StoredOutputs } from "./outputs.ts";
import { Clock, INFO, StoredSession } from "./stored-session.ts";

interface StoreOptions {
  /** Called with news for the user: a damaged database that was set aside. */
  readonly warn?: (text: string) => void;
  readonly now?: () => number;
  /** Bytes of all outputs together. */
  readonly quota?: number;
}

/** Opens the store of this state folder; creates it if it is missing. */
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

  create({ workspace, mode, provider, model, title }: SessionAbout, reserved?: string): Session {
    const about = { workspace, mode, provider, model, title };
    for (let tried = 0; ; tried += 1) {
      if (tried > 0 && reserved !== undefined) throw new Error(`session ${reserved} already exists`);
      const id = reserved ?? newId(this.#clock.now());
      const started = this.#clock.stamp(id);
      const row = { id, ...about, started, changed: started, messages: 0 };
      if (this.#db.insert("sessions", row, "OR IGNORE") === 1) return this.#session(id);
    }
  }

  reserve(): string {
    return newId(this.#clock.now());
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
    // Files that only the id leads to are removed no later than the id, so that a killed removal can be repeated.
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

/** Without letters that look like digits. In ascending order, so that ids sort like their numbers. */
const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";

/** 35 bits of seconds sort correctly until the year 3058. 25 random bits make collisions within one second rare. */
const TIME_LENGTH = 7;
const CHANCE_LENGTH = 5;

export function newId(now: number): string {
  const chance = randomInt(DIGITS.length ** CHANCE_LENGTH);
  return inDigits(Math.floor(now / 1000), TIME_LENGTH) + inDigits(chance, CHANCE_LENGTH);
}

function inDigits(number: number, length: number): string {
  const digits = Array.from({ length }, (_, place) => Math.floor(number / DIGITS.length ** place));
  return digits
    .map((digit) => DIGITS[digit % DIGITS.length])
    .toReversed()
    .join("");
}

/** The one id that a person meant, among those with this prefix. */
export function onlyId(given: string, found: readonly string[]): string {
  const exact = found.find((id) => id === given) ?? (found.length === 1 ? found[0] : undefined);
  if (exact !== undefined && given !== "") return exact;
  const why =
    found.length === 0 || given === ""
      ? "no session has this id"
      : "several sessions have ids that begin with this";
  throw new UnknownSession(EXIT.usage, `${JSON.stringify(given)}: ${why}`, "harness sessions list --all");
}

/** Ignores case, in any script. */
const contains = (text: string, query: string): boolean => text.toLowerCase().includes(query.toLowerCase());

/** Newest change first. The search includes messages that were rolled back. */
function listed(db: Database, { workspace, query = "", limit }: SessionFilter): readonly SessionInfo[] {
  const rows =
    workspace === undefined
      ? (db.all(`${INFO} ${NEWEST_FIRST}`) as readonly SessionInfo[])
      : (db.all(`${INFO} WHERE workspace = ? ${NEWEST_FIRST}`, workspace) as readonly SessionInfo[]);
  const found: SessionInfo[] = [];
  for (const row of rows) {
    if (found.length >= (limit ?? Infinity)) break;
    if (contains(row.title, query) || mentions(db, row.id, query)) found.push({ ...row });
  }
  return found;
}

const NEWEST_FIRST = "ORDER BY changed DESC, id DESC";

/** A JSON text contains the query in its escaped form; only likely hits are parsed. */
function mentions(db: Database, session: string, query: string): boolean {
  const written = JSON.stringify(query).slice(1, -1);
  return (db.all("SELECT body FROM messages WHERE session = ?", session) as readonly { body: string }[]).some(
    ({ body }) => contains(body, written) && contains(textIn(body), query),
  );
}

/** A damaged message matches nothing; reading its session reports the damage. */
function textIn(body: string): string {
  try {
    return (JSON.parse(body) as Message).text;
  } catch {
    return "";
  }
}
