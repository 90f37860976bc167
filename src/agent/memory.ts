import type { SessionRecord } from "../core/session.ts";
import { History } from "./context/history.ts";
import { SeenState } from "./seen-state.ts";
import { ShellMemory } from "./shell-memory.ts";

/** What an agent knows, as its records tell it. Everything that is added is recorded first. */
export class Memory {
  readonly history: History;
  readonly seen: SeenState;
  readonly shell: ShellMemory;

  constructor(workspace: string, records: readonly SessionRecord[], record: (record: SessionRecord) => void) {
    this.history = History.from(records, record);
    const count = (): number => this.history.count;
    this.seen = SeenState.from(records, count, record);
    this.shell = new ShellMemory(workspace, records, record);
  }

  /** Of a subagent: it begins empty but for the files that its parent knows, and nobody remembers it. */
  child(workspace: string): Memory {
    const memory = new Memory(workspace, [], () => undefined);
    this.seen.tell(memory.seen);
    return memory;
  }

  /** What is behind this count is neither known nor seen any more. */
  rollBack(to: number): void {
    this.history.rollBack(to);
    this.seen.rollBack(to);
  }

  clear(): void {
    this.history.clear();
    this.seen.clear();
  }
}
