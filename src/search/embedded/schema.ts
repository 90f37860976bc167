/**
 * Another number is another form of what is kept: an index of another form is made again, never brought up to date,
 * as all of it comes from the files. So does a change of how texts become words.
 */
export const FORM = 4;

/** Numbers of files and chunks are never given twice: what is dead stays dead. */
export const TABLES = `
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE files (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  path TEXT NOT NULL UNIQUE,
  hash TEXT NOT NULL,
  texts BLOB NOT NULL
) STRICT;
CREATE TABLE chunks (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id BLOB NOT NULL,
  file INTEGER NOT NULL,
  start INTEGER NOT NULL,
  "end" INTEGER NOT NULL,
  kind TEXT NOT NULL,
  symbol TEXT,
  language TEXT NOT NULL,
  role TEXT NOT NULL,
  hash BLOB NOT NULL,
  trust TEXT NOT NULL,
  at INTEGER NOT NULL,
  length INTEGER NOT NULL
) STRICT;
CREATE INDEX chunks_of_file ON chunks (file);
CREATE INDEX chunks_by_id ON chunks (id);
CREATE TABLE segments (number INTEGER PRIMARY KEY AUTOINCREMENT, layout BLOB NOT NULL) STRICT;
CREATE TABLE postings (
  segment INTEGER NOT NULL,
  word TEXT NOT NULL,
  chunks BLOB NOT NULL,
  files BLOB NOT NULL,
  PRIMARY KEY (segment, word)
) STRICT, WITHOUT ROWID;
CREATE TABLE dead (file INTEGER PRIMARY KEY) STRICT;
`;
