/** What is written down of a session for whoever checks it later. */

/** One line; `kind` says what happened. Values are JSON. */
export interface AuditEntry {
  readonly kind: string;
  readonly [key: string]: unknown;
}

export interface Audit {
  /** In the file when it returns, all or none; what follows from it may be done then. Throws where it cannot be written. */
  readonly write: (entries: readonly AuditEntry[]) => void;
  /** Whether the file is what was written, from its first line to its last. */
  readonly verify: () => AuditVerdict;
}

export interface AuditVerdict {
  readonly file: string;
  readonly ok: boolean;
  readonly lines: number;
  /** Where it is not what was written: the first such line, from 1, and why. */
  readonly broken: { readonly line: number; readonly why: string } | null;
  /** What is sound and still worth knowing: runs that were killed. */
  readonly notes: readonly string[];
}
