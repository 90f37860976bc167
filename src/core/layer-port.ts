/** What a layer over a workspace, or a copy of it, has other than the workspace has. */
export interface LayerChange {
  /** Below the workspace, a byte text (`core/byte-text.ts`). */
  readonly path: string;
  readonly what: "added" | "modified" | "deleted";
  /** What it is now; of what was deleted, what it was. */
  readonly kind: "file" | "folder" | "link" | "odd";
  /** The lower twelve bits. */
  readonly mode: number;
}

export interface LayerChanges {
  /** By path; folders are among them, and so is all that is in one that was deleted. */
  readonly changes: readonly LayerChange[];
  /** The folder in which what was added or modified lies, under the same paths. Nobody writes to it. */
  readonly content: string;
  /** A part could not be read. */
  readonly incomplete: boolean;
  /** Since when the workspace may have been changed by somebody else: milliseconds since 1970. */
  readonly since: number;
}
