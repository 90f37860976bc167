import type { ParkedChild, SessionRecord } from "../core/session.ts";
import type { SeenFiles, ShellState } from "../tools/tool-context.ts";
import { History } from "./context/history.ts";

export interface ChildMemory {
  readonly memory: Memory;
  readonly records: readonly SessionRecord[];
}

interface MemoryKind {
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

interface Sight {
  /** The record count at which it was known. */
  readonly at: number;
  readonly path: string;
  readonly hash: string | null;
}

/** Which files the model knows. It goes back with the history: what is no longer in it is no longer known. */
class SeenState implements SeenFiles {
  #sights: Sight[] = [];
  #hashes = new Map<string, string>();
  readonly #count: () => number;
  readonly #record: (record: SessionRecord) => void;

  constructor(count: () => number, record: (record: SessionRecord) => void) {
    this.#count = count;
    this.#record = record;
  }

  static from(
    records: readonly SessionRecord[],
    count: () => number,
    record: (record: SessionRecord) => void,
  ): SeenState {
    const state = new SeenState(count, record);
    let at = 0;
    for (const each of records) {
      if (each.kind === "message") at += 1;
      else if (each.kind === "seen") state.#take({ at, path: each.path, hash: each.hash });
      else if (each.kind === "rolled_back") state.rollBack((at = Math.min(at, each.to)));
      else if (each.kind === "cleared") state.rollBack((at = 0) - 1);
    }
    return state;
  }

  /** For somebody who is to know the same files. */
  records(): readonly SessionRecord[] {
    return [...this.#hashes].map(([path, hash]) => ({ kind: "seen", path, hash }));
  }

  hashOf(path: string): string | undefined {
    return this.#hashes.get(path);
  }

  saw(path: string, hash: string): void {
    if (this.#hashes.get(path) !== hash) this.#note(path, hash);
  }

  forget(path: string): void {
    if (this.#hashes.has(path)) this.#note(path, null);
  }

  /** What was seen behind this count is forgotten. */
  rollBack(to: number): void {
    const kept = this.#sights.filter(({ at }) => at <= to);
    if (kept.length === this.#sights.length) return;
    this.#sights = [];
    this.#hashes = new Map();
    for (const sight of kept) this.#take(sight);
  }

  clear(): void {
    this.rollBack(-1);
  }

  #note(path: string, hash: string | null): void {
    this.#record({ kind: "seen", path, hash });
    this.#take({ at: this.#count(), path, hash });
  }

  #take(sight: Sight): void {
    this.#sights.push(sight);
    if (sight.hash === null) this.#hashes.delete(sight.path);
    else this.#hashes.set(sight.path, sight.hash);
  }
}

/** Where the shell stands and what it exports, from call to call and from run to run. */
class ShellMemory implements ShellState {
  folder: string;
  env: Readonly<Record<string, string>> = {};
  readonly #record: (record: SessionRecord) => void;

  constructor(workspace: string, records: readonly SessionRecord[], record: (record: SessionRecord) => void) {
    this.#record = record;
    const last = records.findLast((each) => each.kind === "shell");
    this.folder = last?.folder ?? workspace;
    this.env = last?.env ?? {};
  }

  move(folder: string, env: Readonly<Record<string, string>>): void {
    if (folder === this.folder && JSON.stringify(env) === JSON.stringify(this.env)) return;
    this.#record({ kind: "shell", folder, env });
    this.folder = folder;
    this.env = env;
  }
}
