/** What a run wants of a workspace, and whether two runs get on. Pure. */
export interface Claim {
  /** Absolute and real. */
  readonly path: string;
  /** dev:inode of the workspace and of every folder above it: the same folder bound elsewhere is met too. */
  readonly self: string;
  readonly above: readonly string[];
  readonly write: boolean;
}

/** Readers share; a writer is alone on its folder, on all above it and on all inside it. */
export const clash = (a: Claim, b: Claim): boolean => (a.write || b.write) && overlap(a, b);

const overlap = (a: Claim, b: Claim): boolean =>
  a.self === b.self ||
  a.above.includes(b.self) ||
  b.above.includes(a.self) ||
  within(a.path, b.path) ||
  within(b.path, a.path);

const within = (inner: string, outer: string): boolean =>
  inner === outer || inner.startsWith(outer.endsWith("/") ? outer : `${outer}/`);
