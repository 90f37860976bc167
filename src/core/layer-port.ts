/** How a layer over a workspace, or a copy of it, differs from the workspace. */
export interface LayerChange {
  /** Relative to the workspace, a byte text (`textOfBytes`). */
  readonly path: string;
  readonly what: "added" | "modified" | "deleted";
  /** Its kind now; for a deleted path, its former kind. */
  readonly kind: "file" | "folder" | "link" | "odd";
  /** The lower twelve bits. */
  readonly mode: number;
}

export interface LayerChanges {
  /** Sorted by path. Includes folders, and everything in a deleted folder. */
  readonly changes: readonly LayerChange[];
  /** The folder that holds the added and modified files under the same paths. It is never written to. */
  readonly content: string;
  /** A part could not be read. */
  readonly incomplete: boolean;
  /** From when on others may have changed the workspace: milliseconds since 1970. */
  readonly since: number;
}
