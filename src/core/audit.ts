/** The audit log of a session: an append-only record that can be verified later. */

/** One line; `kind` says what happened. Values are JSON. */
export interface AuditEntry {
  readonly kind: string;
  readonly [key: string]: unknown;
}

export interface Audit {
  /** Durable when it returns, all entries or none, so that the announced action may follow. Throws on failure. */
  readonly write: (entries: readonly AuditEntry[]) => void;
  /** Whether every line of the file is as it was written. */
  readonly verify: () => AuditVerdict;
}

export interface AuditVerdict {
  readonly file: string;
  readonly ok: boolean;
  readonly lines: number;
  /** The first line that was altered (from 1), and why it counts as altered. */
  readonly broken: { readonly line: number; readonly why: string } | null;
  /** Findings that break nothing: runs that were killed. */
  readonly notes: readonly string[];
}
