/**
 * A released step like those in `STEPS`: never changed. Mirrors what src/agent/context/history.ts makes of the same
 * records.
 */
const MODEL_MESSAGES = `
-- What the model sees of a session now, in its order. form: pinned (the system prompt), summary (the artifact that
-- stands for the messages before keep_from, below the first and the latest request), whole, or mark: a result of 300
-- characters or more that is named and not shown any more. body is what is kept: of a mark, the message that it stands
-- for. place is that of the message, null where there is none.
CREATE VIEW model_messages AS
WITH
  -- Every compaction that no later going back has undone.
  standing AS (
    SELECT c.* FROM compactions c
    WHERE NOT EXISTS (
      SELECT 1 FROM records r
      WHERE r.session = c.session AND r.seq > c.seq
        AND (r.kind = 'cleared' OR (r.kind = 'rolled_back' AND json_extract(r.body, '$.to') < c.at_count))
    )
  ),
  latest AS (
    SELECT s.* FROM standing s
    WHERE s.seq = (SELECT max(t.seq) FROM standing t WHERE t.session = s.session)
  ),
  known AS (SELECT * FROM messages WHERE gone IS NULL),
  -- No result is parted from its call.
  bounds AS (
    SELECT l.session, l.seq, l.prune_before, l.artifact, coalesce((
      SELECT max(k.place) FROM known k
      WHERE k.session = l.session AND k.place <= l.keep_from AND k.role <> 'tool'
    ), 0) AS border, l.keep_from, (SELECT count(*) FROM known k WHERE k.session = l.session) AS counted
    FROM latest l
  ),
  kept AS (
    SELECT b.session, b.seq, b.prune_before, b.artifact,
      CASE WHEN b.keep_from < b.counted OR (
        SELECT k.role = 'assistant' AND json_array_length(k.body, '$.calls') > b.counted - 1 - k.place
        FROM known k WHERE k.session = b.session AND k.place = b.border
      ) THEN b.border ELSE b.counted END AS keep_from
    FROM bounds b
  )
SELECT r.session, r.seq, 0 AS part, NULL AS place, 'system' AS role, 'pinned' AS form, json_extract(r.body, '$.text') AS body
FROM records r
WHERE r.kind = 'pinned'
  AND r.seq = (SELECT min(p.seq) FROM records p WHERE p.session = r.session AND p.kind = 'pinned')
UNION ALL
SELECT session, seq, 1, NULL, 'user', 'summary', artifact FROM kept WHERE keep_from > 0
UNION ALL
SELECT k.session, k.seq, 2, k.place, k.role,
  CASE WHEN k.role = 'tool' AND k.place < coalesce(c.prune_before, 0) AND length(json_extract(k.body, '$.text')) >= 300
    THEN 'mark' ELSE 'whole' END,
  k.body
FROM known k LEFT JOIN kept c ON c.session = k.session
WHERE k.place >= coalesce(c.keep_from, 0)
ORDER BY 1, 3, 4;
`;

/**
 * Steps from an empty database to this version's form, in order. A released step is never changed, because databases
 * record its hash: add a further step.
 *
 * `records` and `events` hold what happened, in order; the other tables of a session are derived from them in the same
 * transaction. Only `messages` holds messages; `compactions` holds what the model was shown instead of messages; the
 * view `model_messages` shows what the model sees of both now, message by message.
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
  `
-- A number is never given twice: people name notes by it while a run writes others.
ALTER TABLE notes RENAME TO notes_before;
DROP INDEX notes_by_workspace;
CREATE TABLE notes (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace TEXT NOT NULL,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  tags TEXT NOT NULL,
  written INTEGER NOT NULL
) STRICT;
INSERT INTO notes SELECT number, workspace, title, body, tags, written FROM notes_before;
DROP TABLE notes_before;
CREATE INDEX notes_by_workspace ON notes (workspace, number);
`,
];
