import type { Settings } from "../../config/settings-schema.ts";
import type { Box, Index } from "../../core/ports.ts";
import type { Host } from "../host.ts";

export interface RunIndexParts {
  readonly host: Host;
  /** The current settings: in a chat they change. */
  readonly settings: () => Settings;
  readonly origins: Readonly<Record<string, string>>;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly session: string;
  /** The run's own box, for files that only this box shows. */
  readonly box: () => Promise<Box>;
}

export type RunIndex = Index & AsyncDisposable;

/** The search of a run. Nothing is loaded, opened or made before the first search. */
export function runIndex(parts: RunIndexParts): RunIndex {
  const once: { answering?: Promise<RunIndex> } = {};
  const open = async (): Promise<RunIndex> => (await import("./search-of-run.ts")).runAnswering(parts);
  return {
    search: async (query, limit, signal) => (await (once.answering ??= open())).search(query, limit, signal),
    [Symbol.asyncDispose]: async () => {
      await (await once.answering?.catch(() => undefined))?.[Symbol.asyncDispose]();
    },
  };
}
