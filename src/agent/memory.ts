import type { ParkedChild } from "../core/parked.ts";
import type { SessionRecord } from "../core/session.ts";
import { History } from "./context/history.ts";
import { SeenState } from "./seen-state.ts";
import { ShellMemory } from "./shell-memory.ts";

export interface ChildMemory {
  readonly memory: Memory;
  readonly records: readonly SessionRecord[];
}

export interface MemoryKind {
  /** Whether calls without a result are over, or their results come yet. */
  readonly open?: "closed" | "come";
  readonly name?: string;
}

/** What an agent knows, as its records tell it. Everything that is added is recorded first. */
export class Memory {
  readonly history: History;
  readonly seen: SeenState;
  readonly shell: ShellMemory;
  /** Tells its jobs from those of other agents in the same box; it goes on with what was parked. */
  readonly name: string;

  constructor(
    workspace: string,
    records: readonly SessionRecord[],
    record: (record: SessionRecord) => void,
    { open = "closed", name = "main" }: MemoryKind = {},
  ) {
    this.name = name;
    this.history = History.from(records, record, open);
    const count = (): number => this.history.count;
    this.seen = SeenState.from(records, count, record);
    this.shell = new ShellMemory(workspace, records, record);
  }

  /**
   * Of a subagent: it begins empty but for the files that its parent knows, or as it was parked. Its records go into the
   * list that comes with it, and nowhere else.
   */
  child(workspace: string, parked?: Pick<ParkedChild, "records" | "name">): ChildMemory {
    const records = [...(parked?.records ?? this.seen.records())];
    const kind = { open: "come", name: parked?.name ?? crypto.randomUUID() } as const;
    const memory = new Memory(workspace, records, (each) => void records.push(each), kind);
    return { memory, records };
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
