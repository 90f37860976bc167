import type { Plan } from "../../core/run-record.ts";
import type { OpenTask, ParkedChild, SessionRecord } from "../../core/session.ts";
import type { SeenFiles, ShellState } from "../../tools/tool-context.ts";
import { History } from "./history.ts";

export interface ChildMemory {
  readonly memory: Memory;
  readonly records: readonly SessionRecord[];
}

interface MemoryKind {
  /** Whether calls without a result are over, or will still get one. */
  readonly open?: "closed" | "come";
  readonly name?: string;
}

/** What an agent knows, rebuilt from its records. Every addition is recorded first. */
export class Memory {
  readonly history: History;
  readonly seen: SeenState;
  readonly shell: ShellMemory;
  readonly tasks: TaskMemory;
  readonly #plan: RollbackValue<Plan>;
  readonly #record: (record: SessionRecord) => void;
  /** Tells its jobs from those of other agents in the same box; kept when the run is parked. */
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
    this.#plan = RollbackValue.from(records, [], (each) => (each.kind === "plan" ? each.plan : undefined));
    this.tasks = new TaskMemory(records, count, record);
    this.#record = record;
  }

  /** Empty when there is none. */
  get plan(): Plan {
    return this.#plan.now;
  }

  planned(plan: Plan): void {
    this.#record({ kind: "plan", plan });
    this.#plan.put(this.history.count, plan);
  }

  /**
   * The memory of a subagent. It starts with only the files that its parent knows and the folder of its parent's shell,
   * or as it was parked. Its records go only into the returned list.
   */
  child(workspace: string, parked?: Pick<ParkedChild, "records" | "name">): ChildMemory {
    const { folder } = this.shell;
    const place: readonly SessionRecord[] = folder === workspace ? [] : [{ kind: "shell", folder, env: {} }];
    const records = [...(parked?.records ?? [...this.seen.records(), ...place])];
    const kind = { open: "come", name: parked?.name ?? crypto.randomUUID() } as const;
    const memory = new Memory(workspace, records, (each) => void records.push(each), kind);
    return { memory, records };
  }

  /** Forgets everything that came after this count. */
  rollBack(to: number): void {
    this.history.rollBack(to);
    this.seen.rollBack(to);
    this.#plan.rollBack(to);
    this.tasks.rollBack(to);
  }

  clear(): void {
    this.history.clear();
    this.seen.clear();
    this.#plan.rollBack(-1);
    this.tasks.rollBack(-1);
  }
}

/** Background tasks whose end the model has not been told. A task whose call is rolled back is forgotten with it. */
export class TaskMemory {
  readonly #open: RollbackValue<readonly OpenTask[]>;
  readonly #count: () => number;
  readonly #record: (record: SessionRecord) => void;
  #last: number;

  constructor(
    records: readonly SessionRecord[],
    count: () => number,
    record: (record: SessionRecord) => void,
  ) {
    this.#open = RollbackValue.from(records, [], (each) => (each.kind === "tasks" ? each.open : undefined));
    this.#count = count;
    this.#record = record;
    const all = records.flatMap((each) => (each.kind === "tasks" ? each.open : []));
    this.#last = Math.max(0, ...all.map(({ id }) => Number(id.slice(1))));
  }

  get open(): readonly OpenTask[] {
    return this.#open.now;
  }

  /** Returns the task's id, which no other task of the session has or had. */
  begin(prompt: string): string {
    this.#last += 1;
    const id = `t${this.#last}`;
    this.#put([...this.open, { id, prompt }]);
    return id;
  }

  closeTasks(ids: readonly string[]): void {
    const open = this.open.filter(({ id }) => !ids.includes(id));
    if (open.length < this.open.length) this.#put(open);
  }

  rollBack(to: number): void {
    this.#open.rollBack(to);
  }

  #put(open: readonly OpenTask[]): void {
    this.#record({ kind: "tasks", open });
    this.#open.put(this.#count(), open);
  }
}

interface RecordVisitor {
  readonly take: (record: SessionRecord, at: number) => void;
  readonly rollBack: (to: number) => void;
}

/** Visits records in order, each with the number of messages that preceded it. */
function visitRecords(records: readonly SessionRecord[], { take, rollBack }: RecordVisitor): void {
  let at = 0;
  for (const each of records) {
    if (each.kind === "message") at += 1;
    else if (each.kind === "rolled_back") rollBack((at = Math.min(at, each.to)));
    else if (each.kind === "cleared") rollBack((at = 0) - 1);
    else take(each, at);
  }
}

/** A value that is rolled back together with the history. */
class RollbackValue<T> {
  readonly #first: T;
  #values: readonly { readonly at: number; readonly value: T }[] = [];

  constructor(first: T) {
    this.#first = first;
  }

  static from<T>(
    records: readonly SessionRecord[],
    first: T,
    valueOf: (record: SessionRecord) => T | undefined,
  ): RollbackValue<T> {
    const placed = new RollbackValue(first);
    visitRecords(records, {
      take: (record, at) => {
        const value = valueOf(record);
        if (value !== undefined) placed.put(at, value);
      },
      rollBack: (to) => placed.rollBack(to),
    });
    return placed;
  }

  get now(): T {
    return this.#values.at(-1)?.value ?? this.#first;
  }

  put(at: number, value: T): void {
    this.#values = [...this.#values, { at, value }];
  }

  rollBack(to: number): void {
    this.#values = this.#values.filter(({ at }) => at <= to);
  }
}

interface SeenFile {
  /** The number of messages at which the file was known. */
  readonly at: number;
  readonly path: string;
  readonly hash: string | null;
}

/** Which files the model knows. Rolled back with the history: what the history no longer has is no longer known. */
class SeenState implements SeenFiles {
  #sights: SeenFile[] = [];
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
    visitRecords(records, {
      take: (each, at) => {
        if (each.kind === "seen") state.#take({ at, path: each.path, hash: each.hash });
      },
      rollBack: (to) => state.rollBack(to),
    });
    return state;
  }

  /** For an agent that should know the same files. */
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

  /** Forgets what was seen after this count. */
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

  #take(sight: SeenFile): void {
    this.#sights.push(sight);
    if (sight.hash === null) this.#hashes.delete(sight.path);
    else this.#hashes.set(sight.path, sight.hash);
  }
}

/** The shell's folder and exported variables, kept from call to call and from run to run. */
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
