import type { Intent } from "../../core/events.ts";

/**
 * What can only read. `task` is none of them: a subagent would have to be held to reading too, and for a question one
 * reader is enough.
 */
const READING: ReadonlySet<string> = new Set([
  "read_file",
  "list_dir",
  "glob",
  "grep",
  "show_full",
  "semantic_search",
  "notes",
]);

interface Named {
  readonly name: string;
}

/** The tools that are offered with an intent, in the order given. No tool reads the web, so web questions get what repo ones do. */
export function toolsOf<T extends Named>(intent: Intent, tools: readonly T[]): readonly T[] {
  switch (intent) {
    case "direct":
      return [];
    case "repo":
    case "web":
      return tools.filter(({ name }) => READING.has(name));
    case "change":
      return tools;
  }
}

/**
 * Whether the call of a tool that was not offered shows that the intent was guessed too small: the run goes on as
 * `change`, which happens once as nothing is larger.
 */
export function mayEscalate(intent: Intent, called: string, all: readonly Named[]): boolean {
  const isCalled = ({ name }: Named): boolean => name === called;
  return all.some(isCalled) && !toolsOf(intent, all).some(isCalled);
}
