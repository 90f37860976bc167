import { createHash, randomInt } from "node:crypto";
import path from "node:path";
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { EXIT, HarnessError, UnknownSession } from "../core/errors.ts";
import type { Message } from "../core/model-provider.ts";
import type {
  Note,
  Notes,
  NoteText,
  OutputPage,
  Outputs,
  Session,
  SessionAbout,
  SessionFilter,
  SessionInfo,
  SessionStore,
} from "../core/session.ts";
import { splitsPair } from "../core/wording.ts";
import { makeFolder } from "../platform/folders.ts";
import { replaceFileSync } from "../platform/safe-files.ts";
import { auditFile, AuditFile, dropAudit } from "./audit-file.ts";
import { type Database, openDatabase } from "./sessions-db.ts";
import { SessionClock, INFO, StoredSession } from "./stored-session.ts";

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
  readonly #clock: SessionClock;
  readonly #quota: number;

  constructor({ stateDir, db, files, quota, now }: Parts) {
    this.#stateDir = stateDir;
    this.#db = db;
    this.#files = files;
    this.#clock = new SessionClock(now);
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
    return listSessions(this.#db, filter);
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

  #idOf(typed: string): string {
    const found = this.#db.all(
      "SELECT id FROM sessions WHERE substr(id, 1, length(?1)) = ?1 LIMIT 2",
      typed,
    ) as readonly { id: string }[];
    return idByPrefix(
      typed,
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
export function idByPrefix(typed: string, found: readonly string[]): string {
  const exact = found.find((id) => id === typed) ?? (found.length === 1 ? found[0] : undefined);
  if (exact !== undefined && typed !== "") return exact;
  const why =
    found.length === 0 || typed === ""
      ? "no session has this id"
      : "several sessions have ids that begin with this";
  throw new UnknownSession(EXIT.usage, `${JSON.stringify(typed)}: ${why}`, "harness sessions list --all");
}

/** Ignores case, in any script. */
const contains = (text: string, query: string): boolean => text.toLowerCase().includes(query.toLowerCase());

/** Newest change first. The search includes messages that were rolled back. */
function listSessions(db: Database, { workspace, query = "", limit }: SessionFilter): readonly SessionInfo[] {
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

/** The outputs of one session: `o1`, `o2`, … */
class StoredOutputs implements Outputs {
  readonly #session: string;
  readonly #db: Database;
  readonly #files: ContentFiles;
  readonly #quota: number;

  constructor(session: string, db: Database, files: ContentFiles, quota: number) {
    this.#session = session;
    this.#db = db;
    this.#files = files;
    this.#quota = quota;
  }

  /** Writes the file within the transaction, so that no collection removes it before a row names it. */
  keep(text: string): string {
    const content = Buffer.from(text);
    return this.#db.atomically(() => {
      if (this.#db.get("SELECT 1 FROM sessions WHERE id = ?", this.#session) === undefined)
        throw new HarnessError(
          EXIT.failed,
          `the session ${this.#session} was removed`,
          "harness sessions list",
        );
      const hash = this.#files.put(content);
      const number = this.#last() + 1;
      this.#db.insert("outputs", { session: this.#session, number, hash });
      this.#db.insert("output_files", { hash, bytes: content.length }, "OR IGNORE");
      keepWithin(this.#db, this.#files, this.#quota, this.#session);
      return `o${number}`;
    });
  }

  page(id: string, offset: number, limit: number): OutputPage | undefined {
    const number = /^o([1-9]\d{0,8})$/.exec(id)?.[1];
    if (number === undefined) return undefined;
    const kept = this.#db.get(
      "SELECT hash, bytes FROM outputs JOIN output_files USING (hash) WHERE session = ? AND number = ?",
      this.#session,
      Number(number),
    ) as { hash: string; bytes: number } | undefined;
    const content = kept === undefined ? undefined : this.#files.get(kept.hash, kept.bytes);
    return content === undefined ? undefined : pageOf(content.toString("utf8"), offset, limit);
  }

  #last(): number {
    const sql = "SELECT max(number) AS last FROM outputs WHERE session = ?";
    return (this.#db.get(sql, this.#session) as { last: number | null } | undefined)?.last ?? 0;
  }
}

/**
 * Counts characters as JavaScript does, in UTF-16 units, but never splits a surrogate pair: a page that would begin
 * inside a pair begins before it; a page that would end inside one ends before it, or after it if it would otherwise be
 * empty.
 */
export function pageOf(text: string, offset: number, limit: number): OutputPage {
  const total = text.length;
  const position = clamp(offset, total);
  const begin = splitsPair(text, position) ? position - 1 : position;
  const wanted = Math.max(begin, clamp(position + Math.max(0, Math.trunc(limit) || 0), total));
  const end = splitsPair(text, wanted) ? (wanted - 1 > begin ? wanted - 1 : wanted + 1) : wanted;
  const last = wanted === begin ? begin : end;
  return { text: text.slice(begin, last), offset: begin, end: last, total };
}

const clamp = (count: number, total: number): number => Math.min(total, Math.max(0, Math.trunc(count) || 0));

/** Files named by the SHA-256 of their content, `<aa>/<sha256>`, readable only by their owner. */
class ContentFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Written under another name and renamed: a file under its own name is complete, whenever the writer is killed. */
  put(content: Buffer): string {
    const hash = hashOf(content);
    const file = this.#fileOf(hash);
    if (this.get(hash, content.length) !== undefined) return hash;
    makeFolder(path.dirname(file));
    replaceFileSync(file, content, { lasts: "never" });
    return hash;
  }

  /** undefined if the file is missing or damaged: a power cut may leave such a file. */
  get(hash: string, bytes: number): Buffer | undefined {
    const file = this.#fileOf(hash);
    if (statSync(file, { throwIfNoEntry: false })?.size !== bytes) return undefined;
    const content = readFileSync(file);
    return hashOf(content) === hash ? content : undefined;
  }

  drop(hash: string): void {
    rmSync(this.#fileOf(hash), { force: true });
  }

  /**
   * Removes the leftovers of killed writers; nobody may be in `put` meanwhile. Complete files stay even if nothing
   * names them: they may belong to a database that was set aside.
   */
  sweep(): void {
    for (const folder of listing(this.folder))
      for (const name of listing(path.join(this.folder, folder)))
        if (name.includes(".")) rmSync(path.join(this.folder, folder, name), { force: true });
  }

  #fileOf(hash: string): string {
    return path.join(this.folder, hash.slice(0, 2), hash);
  }
}

const listing = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

const hashOf = (content: Buffer): string => createHash("sha256").update(content).digest("hex");

/** For the outputs of all sessions together. */
const QUOTA_BYTES = 2 * 1024 ** 3;

/** The part of the quota that remains after a removal, so that not every further output has to remove another one. */
const REMAINING_SHARE = 0.9;

/**
 * Removes outputs until the rest fits, starting with the session whose last change is oldest. Outputs of the session in
 * use stay, even if they alone exceed the quota. Call it within a transaction.
 */
function keepWithin(db: Database, files: ContentFiles, quota: number, inUse: string): void {
  let bytes =
    (db.get("SELECT sum(bytes) AS bytes FROM output_files") as { bytes: number | null } | undefined)?.bytes ??
    0;
  if (bytes <= quota) return;
  const oldestFirst = db.all(
    `SELECT hash, bytes FROM output_files JOIN outputs USING (hash) JOIN sessions ON sessions.id = outputs.session
     GROUP BY hash HAVING sum(outputs.session = ?) = 0 ORDER BY max(sessions.changed), max(outputs.number)`,
    inUse,
  ) as readonly { hash: string; bytes: number }[];
  for (const file of oldestFirst) {
    if (bytes <= quota * REMAINING_SHARE) return;
    files.drop(file.hash);
    db.run("DELETE FROM output_files WHERE hash = ?", file.hash);
    bytes -= file.bytes;
  }
}

/** Removes files that no session names any more, and the leftovers of killed writers. */
function collect(db: Database, files: ContentFiles): void {
  db.atomically(() => {
    const gone = db.all(
      "DELETE FROM output_files WHERE hash NOT IN (SELECT hash FROM outputs) RETURNING hash",
    ) as readonly { hash: string }[];
    for (const { hash } of gone) files.drop(hash);
    files.sweep();
  });
}

interface NoteRow {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly tags: string;
  readonly written: number;
}

const NOTE_COLUMNS = "number, title, body, tags, written";

/** Every change is one statement, so a run that writes notes and a person who edits them do not interfere. */
function storedNotes(db: Database, workspace: string, now: () => number): Notes {
  return {
    write: ({ title, body, tags }) => {
      const row = db.get(
        `INSERT INTO notes (workspace, title, body, tags, written) VALUES (?, ?, ?, ?, ?) RETURNING ${NOTE_COLUMNS}`,
        workspace,
        title,
        body,
        JSON.stringify(tags),
        now(),
      );
      return noteOf(row as NoteRow);
    },
    find: (query, limit) =>
      (
        db.all(
          `SELECT ${NOTE_COLUMNS} FROM notes WHERE workspace = ? ORDER BY written DESC, number DESC`,
          workspace,
        ) as readonly NoteRow[]
      )
        .map(noteOf)
        .filter((note) => isAbout(note, query))
        .slice(0, Math.max(0, limit)),
    get: (number) => {
      const row = db.get(
        `SELECT ${NOTE_COLUMNS} FROM notes WHERE workspace = ? AND number = ?`,
        workspace,
        number,
      ) as NoteRow | undefined;
      return row === undefined ? undefined : noteOf(row);
    },
    replace: (before, { title, body, tags }) =>
      db.run(
        `UPDATE notes SET title = ?, body = ?, tags = ?, written = ?
         WHERE workspace = ? AND number = ? AND title = ? AND body = ? AND tags = ?`,
        title,
        body,
        JSON.stringify(tags),
        now(),
        workspace,
        before.number,
        before.title,
        before.body,
        JSON.stringify(before.tags),
      ) === 1,
    remove: (number) =>
      db.run("DELETE FROM notes WHERE workspace = ? AND number = ?", workspace, number) === 1,
  };
}

const noteOf = (row: NoteRow): Note => ({ ...row, tags: JSON.parse(row.tags) as readonly string[] });

/** Ignores case, in any script. */
const isAbout = ({ title, body, tags }: NoteText, query: string): boolean =>
  [title, body, ...tags].some((text) => contains(text, query));
