import type { Desk } from "../../src/tools/desk.ts";

export interface FakeDesk extends Desk {
  /** What the model knows, by absolute path. */
  readonly known: Map<string, string>;
}

/** A desk that remembers which files were seen, and nothing else. */
export function fakeDesk(workspace = "/repo"): FakeDesk {
  const known = new Map<string, string>();
  return {
    workspace,
    known,
    seen: {
      hashOf: (path) => known.get(path),
      saw: (path, hash) => void known.set(path, hash),
      forget: (path) => void known.delete(path),
    },
    shell: { folder: workspace, env: {}, move: () => undefined },
    outputs: { keep: () => "1", page: () => undefined },
    notes: { write: () => undefined, find: () => [] },
    timeoutMs: 120_000,
  };
}
