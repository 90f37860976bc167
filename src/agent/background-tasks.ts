import { headWithin } from "../core/raw-data.ts";
import { formatDuration } from "../core/wording.ts";
import { reasonOf } from "../core/errors.ts";
import type { ParkedChild } from "../core/session.ts";
import { failed, notRun, type ToolResult } from "../core/tool.ts";
import { reported } from "../tools/task.ts";
import type { TaskPart, Subagents, TaskLook } from "../tools/tool-context.ts";
import type { TaskMemory } from "./context/memory.ts";
import { WaitsForPerson } from "./ending/outcome.ts";

const MAX_RUNNING = 3;

export interface SubagentStart {
  /** The state to continue from. */
  readonly parked?: ParkedChild | undefined;
  /** Its id as a background task, and a signal that stops it between two turns without ending it. */
  readonly background?: { readonly task: string; readonly pause: AbortSignal };
}

export interface Subagent extends TaskPart {
  /** Rejects with `WaitsForPerson` when it waits for a person. "paused": it was told to stop between two turns. */
  readonly run: (signal: AbortSignal) => Promise<ToolResult | "paused">;
  readonly turns: () => number;
  /** What a later process continues from; valid only once it no longer runs. */
  readonly kept: () => ParkedChild;
}

interface TaskDependencies {
  readonly begin: (part: TaskPart, how: SubagentStart) => Subagent;
  /** Tasks of an earlier process, as stored when its run was parked. */
  readonly parked: readonly ParkedChild[];
  readonly memory: TaskMemory;
  /** Cuts a report to what the model is told. */
  readonly bounded: (result: ToolResult) => ToolResult;
  readonly notice: (text: string) => void;
  /** Milliseconds. */
  readonly now: () => number;
}

interface Task extends TaskPart {
  readonly id: string;
  readonly begun: number;
  readonly stop: AbortController;
  /** Undefined for a task whose report was kept while its run was parked. */
  readonly subagent?: Subagent;
  /** Never rejects. */
  over: Promise<void>;
  state: "running" | "paused" | WaitsForPerson | ToolResult;
  /** The model knows how the task ended. */
  isReported: boolean;
}

/** Lines for the model with its next results. Calling `markDelivered` marks them as delivered, so that each is told once. */
interface TaskNews {
  readonly lines: readonly string[];
  readonly markDelivered: () => void;
}

/**
 * Subagents that run beside the agent that began them, a few at once. They end with its run at the latest. Their
 * reports go to the model with its next results; a question that has to wait for a person parks the run with all its
 * tasks.
 */
export class BackgroundTasks implements Omit<Subagents, "run"> {
  readonly #dependencies: TaskDependencies;
  readonly #tasks = new Map<string, Task>();
  readonly #pause = new AbortController();
  #changed = Promise.withResolvers<void>();
  /** Tasks that were already named to the model as running when it gave its answer. */
  readonly #reminded = new Set<string>();

  constructor(parts: TaskDependencies) {
    this.#dependencies = parts;
  }

  begin(part: TaskPart, signal: AbortSignal): ToolResult {
    const running = this.#inState("running");
    if (running.length >= MAX_RUNNING) return tooMany(running);
    const id = this.#dependencies.memory.begin(headOf(part.prompt));
    this.#start(part, { id, signal });
    const text = `[${id} is running. You get its report when it has ended; {"task":"${id}","timeout":60} waits for it, {"task":"${id}","cancel":true} ends it]`;
    return { kind: "ok", text };
  }

  async look({ id, waitMs, cancel }: TaskLook, signal: AbortSignal): Promise<ToolResult> {
    const task = this.#tasks.get(id);
    if (task === undefined) return this.#unknown(id);
    const runs = task.state === "running";
    if (cancel && runs) {
      task.stop.abort(new Error("it was cancelled"));
      await task.over;
    } else await this.#waitFor(task, waitMs, signal);
    const { state } = task;
    if (typeof state === "string") return { kind: "ok", text: `[${this.#progress(task)}]` };
    if (state instanceof WaitsForPerson)
      return { kind: "ok", text: `[${id} waits for a person, and the run with it]` };
    task.isReported = true;
    this.#dependencies.memory.closeTasks([id]);
    if (state.kind === "cancelled" && cancel)
      return { kind: "ok", text: `[${id} was cancelled. What it has changed in files stays]` };
    return reported({ ...state, text: `[${id} has ended, ${this.#age(task)}]\n${state.text}` });
  }

  /** The question for which the run has to be parked. */
  get waiting(): WaitsForPerson | undefined {
    for (const { state } of this.#tasks.values()) if (state instanceof WaitsForPerson) return state;
    return undefined;
  }

  /** The ends of tasks that the model has not been told, including tasks of an earlier run. */
  news(): TaskNews {
    const ended = [...this.#tasks.values()].filter((task) => !task.isReported && isEnded(task));
    const lost = this.#dependencies.memory.open.filter(({ id }) => !this.#tasks.has(id) && !this.#isKept(id));
    const lines = [
      ...lost.map(({ id, prompt }) => lostText(id, prompt)),
      ...ended.map((task) => `${task.id} has ended. Its report:\n${this.#report(task)}`),
    ];
    return {
      lines,
      markDelivered: () => {
        for (const task of ended) task.isReported = true;
        this.#dependencies.memory.closeTasks([...ended, ...lost].map(({ id }) => id));
      },
    };
  }

  /** What an answer has to wait for; each running task is named once. */
  beforeAnswer(): string | undefined {
    const news = this.news();
    const running = this.#inState("running").filter(({ id }) => !this.#reminded.has(id));
    for (const { id } of running) this.#reminded.add(id);
    const named = running.map((task) => `${task.id} (${headOf(task.prompt)})`).join(", ");
    const still =
      named === ""
        ? []
        : [
            `Still running in the background: ${named}. Wait for what you need of it with task and a timeout, or cancel it; then give your answer. What still runs then is ended.`,
          ];
    news.markDelivered();
    const lines = [...still, ...news.lines];
    return lines.length === 0 ? undefined : lines.join("\n\n");
  }

  /** Lists open tasks for the model beside a summary of its conversation. */
  kept(): string {
    const open = [...this.#tasks.values()].filter(({ isReported }) => !isReported);
    if (open.length === 0) return "";
    return `[Your tasks in the background at that time]\n${open.map(({ id, prompt }) => `${id}: ${headOf(prompt)}`).join("\n")}`;
  }

  /** Ends all running tasks and reports them; none runs any more once this resolves. */
  async endAll(): Promise<void> {
    const left = [...this.#tasks.values()].filter((task) => !isEnded(task) && task.state !== "paused");
    for (const { stop } of left) stop.abort(new Error("the run has ended"));
    await Promise.all(left.map(({ over }) => over));
    if (left.length === 0) return;
    for (const task of left) if (task.state instanceof WaitsForPerson) task.state = "paused";
    const named = left.map(({ id, prompt }) => `${id} (${headOf(prompt)})`).join(", ");
    this.#dependencies.notice(`Background tasks stopped before they were done: ${named}`);
  }

  /** Stops all tasks where a later process can continue them: a running call is finished first. */
  async pause(): Promise<readonly ParkedChild[]> {
    this.#pause.abort();
    const tasks = [...this.#tasks.values()];
    await Promise.all(tasks.map(({ over }) => over));
    return tasks.filter(({ isReported }) => !isReported).map(parkedChildOf);
  }

  /** Continues the tasks that were parked with the run. */
  resume(signal: AbortSignal): void {
    for (const parked of this.#dependencies.parked) {
      const { task: id, report, prompt, maxTurns } = parked;
      if (id === undefined) continue;
      if (report === undefined) this.#start({ prompt, maxTurns }, { id, signal, parked });
      else this.#addTask({ ...this.#newTask({ prompt, maxTurns }, id), state: report });
    }
  }

  #start(
    part: TaskPart,
    {
      id,
      signal,
      parked,
    }: { readonly id: string; readonly signal: AbortSignal; readonly parked?: ParkedChild },
  ): void {
    const background = { task: id, pause: this.#pause.signal };
    const subagent = this.#dependencies.begin(part, { parked, background });
    const task: Task = { ...this.#newTask(part, id), subagent };
    this.#addTask(task);
    const end = (state: Task["state"]): void => {
      task.state = state;
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
    };
    task.over = subagent
      .run(AbortSignal.any([signal, task.stop.signal]))
      .then(end, (thrown: unknown) =>
        end(thrown instanceof WaitsForPerson ? thrown : subagentFailure(thrown)),
      );
  }

  #newTask(part: TaskPart, id: string): Omit<Task, "subagent"> {
    const stop = new AbortController();
    const [begun, over] = [this.#dependencies.now(), Promise.resolve()];
    return { ...part, id, begun, stop, over, state: "running", isReported: false };
  }

  #addTask(task: Task): void {
    this.#tasks.set(task.id, task);
  }

  #inState(state: Task["state"]): readonly Task[] {
    return [...this.#tasks.values()].filter((task) => task.state === state);
  }

  #isKept(id: string): boolean {
    return this.#dependencies.parked.some(({ task }) => task === id);
  }

  /** Waits until the task has ended, the time is up, or another task stops the run. */
  async #waitFor(task: Task, ms: number, signal: AbortSignal): Promise<void> {
    if (ms <= 0 || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<"over">();
    const over = (): void => resolve("over");
    const timer = setTimeout(over, ms);
    signal.addEventListener("abort", over, { once: true });
    let next: "over" | void = undefined;
    while (next === undefined && task.state === "running" && this.waiting === undefined)
      next = await Promise.race([promise, this.#changed.promise]);
    clearTimeout(timer);
    signal.removeEventListener("abort", over);
  }

  #progress(task: Task): string {
    const { id, subagent, maxTurns } = task;
    return `${id} is running, ${this.#age(task)}, turn ${subagent?.turns() ?? 0} of ${maxTurns}`;
  }

  #age({ begun }: Task): string {
    return formatDuration(this.#dependencies.now() - begun);
  }

  #report({ state }: Task): string {
    return typeof state === "string" || state instanceof WaitsForPerson
      ? ""
      : this.#dependencies.bounded(reported(state)).text;
  }

  #unknown(id: string): ToolResult {
    const lost = this.#dependencies.memory.open.find((each) => each.id === id);
    if (lost !== undefined) {
      this.#dependencies.memory.closeTasks([id]);
      return failed(lostText(id, lost.prompt));
    }
    const list = [...this.#tasks.values()].map((task) => `${task.id} (${stateOf(task)})`).join(", ");
    return notRun(`no task ${JSON.stringify(id)}; ${list === "" ? "none was begun" : `there are ${list}`}`);
  }
}

const isEnded = ({ state }: Task): boolean => typeof state !== "string" && !(state instanceof WaitsForPerson);

const stateOf = (task: Task): string => (isEnded(task) ? "ended" : "running");

const lostText = (id: string, prompt: string): string =>
  `${id} (${prompt}) is lost: the run that it belonged to has ended. What it has changed in files is there, what it would have reported is not.`;

const tooMany = (running: readonly Task[]): ToolResult => ({
  kind: "failed",
  cause: "program",
  text: `${MAX_RUNNING} tasks are running (${running.map(({ id }) => id).join(", ")}): wait for one, or cancel one, before you begin another.`,
});

const subagentFailure = (thrown: unknown): ToolResult => ({
  kind: "failed",
  cause: "program",
  text: `The subagent failed: ${reasonOf(thrown)}`,
});

/** A report that was not told is kept; a task that was cut off continues from its last whole turn. */
function parkedChildOf({ id, prompt, maxTurns, subagent, state }: Task): ParkedChild {
  if (state instanceof WaitsForPerson && state.child !== undefined) return { ...state.child, task: id };
  const isOver =
    typeof state !== "string" && !(state instanceof WaitsForPerson) && state.kind !== "cancelled";
  if (isOver || subagent === undefined) {
    const report = isOver ? { report: state } : {};
    return { prompt, maxTurns, turns: 0, malformed: [], records: [], task: id, ...report };
  }
  return subagent.kept();
}

const HEAD_LENGTH = 200;

/** Enough of a prompt to recognise a task. */
export function headOf(prompt: string): string {
  const line = prompt.trim().replace(/\s+/g, " ");
  const head = headWithin(line, HEAD_LENGTH);
  return head === line ? line : `${head}…`;
}

/** Runs calls that write to the same path one after the other, in order of arrival, whichever agent makes them. */
export class WriteOrder {
  readonly #last = new Map<string, Promise<void>>();

  async inOrder<T>(paths: readonly string[], work: () => Promise<T>): Promise<T> {
    const before = paths.flatMap((path) => this.#last.get(path) ?? []);
    const done = Promise.withResolvers<void>();
    for (const path of paths) this.#last.set(path, done.promise);
    try {
      await Promise.all(before);
      return await work();
    } finally {
      done.resolve();
      for (const path of paths) if (this.#last.get(path) === done.promise) this.#last.delete(path);
    }
  }
}
