import { MODEL_MESSAGES } from "./model-messages.ts";

/**
 * Steps from nothing to what this version reads, in their order. One that was released is never changed, since
 * databases remember its hash: a further one is added.
 *
 * `records` and `events` are what happened, in order; the other tables of a session are made from them in the same
 * transaction. A message stands only in `messages`; what the model was shown instead of messages, in `compactions`;
 * what it sees of both now, message by message, in the view `model_messages`.
 */
export const STEPS: readonly string[] = [
  `
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  workspace TEXT NOT NULL,
  mode TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  title TEXT NOT NULL,
  started INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  messages INTEGER NOT NULL,
  status TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE records (
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body TEXT,
  PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

-- place: among the messages that count. gone: the record that took it away, null while it counts.
CREATE TABLE messages (
  session TEXT NOT NULL,
  seq INTEGER NOT NULL,
  place INTEGER NOT NULL,
  gone INTEGER,
  role TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (session, seq),
  FOREIGN KEY (session, seq) REFERENCES records ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE compactions (
  session TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at_count INTEGER NOT NULL,
  prune_before INTEGER NOT NULL,
  keep_from INTEGER NOT NULL,
  artifact TEXT NOT NULL,
  PRIMARY KEY (session, seq),
  FOREIGN KEY (session, seq) REFERENCES records ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE turn_results (
  session TEXT NOT NULL,
  seq INTEGER NOT NULL,
  intent TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT NOT NULL,
  requests REAL NOT NULL,
  prompt_tokens REAL,
  completion_tokens REAL,
  cached_tokens REAL,
  cost REAL,
  turns INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL,
  answer TEXT,
  PRIMARY KEY (session, seq),
  FOREIGN KEY (session, seq) REFERENCES records ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  run TEXT NOT NULL,
  type TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

-- proposed and ended: the events that hold the arguments and the text.
CREATE TABLE tool_calls (
  session TEXT NOT NULL,
  proposed INTEGER NOT NULL,
  ended INTEGER,
  run TEXT NOT NULL,
  agent TEXT,
  call TEXT NOT NULL,
  tool TEXT NOT NULL,
  kind TEXT,
  cause TEXT,
  full_output TEXT,
  ms REAL,
  PRIMARY KEY (session, proposed),
  FOREIGN KEY (session, proposed) REFERENCES events ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE decisions (
  session TEXT NOT NULL,
  seq INTEGER NOT NULL,
  run TEXT NOT NULL,
  call TEXT NOT NULL,
  verdict TEXT NOT NULL,
  contained INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  said_by TEXT NOT NULL,
  rules TEXT NOT NULL,
  PRIMARY KEY (session, seq),
  FOREIGN KEY (session, seq) REFERENCES events ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- A row outlives its file: a name is never given twice in a session.
CREATE TABLE outputs (
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  number INTEGER NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX outputs_by_hash ON outputs (hash);

CREATE TABLE output_files (
  hash TEXT PRIMARY KEY,
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE notes (
  number INTEGER PRIMARY KEY,
  workspace TEXT NOT NULL,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  tags TEXT NOT NULL,
  written INTEGER NOT NULL
) STRICT;
CREATE INDEX notes_by_workspace ON notes (workspace, number);
`,
  `
-- How far the audit file of a session goes: its lines, its bytes, and the hash of its last line.
CREATE TABLE audits (
  session TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
  lines INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  hash TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`,
  `
-- before_tree, after_tree: files of the checkpoint store. A row outlives them.
CREATE TABLE checkpoints (
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  step INTEGER NOT NULL,
  kind TEXT NOT NULL,
  call TEXT,
  turn INTEGER,
  at INTEGER NOT NULL,
  before_tree TEXT,
  after_tree TEXT,
  ended INTEGER,
  target INTEGER,
  PRIMARY KEY (session, step)
) STRICT, WITHOUT ROWID;
`,
  MODEL_MESSAGES,
];
