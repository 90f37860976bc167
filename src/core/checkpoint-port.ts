/** Identifies a call that may write. */
export interface Writing {
  readonly call: string;
  readonly turn: number;
  /** Processes started by the call may keep writing after it has ended. */
  readonly lasting: boolean;
}

/** Records the workspace before and after each piece of work. Rejects only with what `work` throws. */
export interface Checkpoints {
  /** Scans the workspace ahead of time, so that the first call does not wait for it. */
  prepare(): void;
  /** `signal` ends the scan before the work, which then starts anyway and has to check the signal. */
  around<T>(writing: Writing, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /**
   * The paths that are the same as before the run: kind, mode and content, whatever their times and inodes say. Empty
   * when that is unknown.
   */
  unchanged(paths: readonly string[]): Promise<ReadonlySet<string>>;
  /** The text that a workspace file had before the run; undefined when it did not exist or is unknown. */
  before(path: string): Promise<string | undefined>;
}

/** For read-only workspaces, and for workspaces whose changes are recorded elsewhere. */
export const NO_CHECKPOINTS: Checkpoints = {
  prepare: () => undefined,
  around: (_, work) => work(),
  unchanged: () => Promise.resolve(new Set()),
  before: () => Promise.resolve(undefined),
};

/** The number of the last step so far; 0 when there is none. */
export const lastStep = (steps: Steps): number => steps.all().at(-1)?.step ?? 0;

/** lost: from this step on nothing could be recorded. */
export const STEP_KINDS = ["call", "undo", "redo", "lost"] as const;

/** A piece of work on the workspace, between two of its states. */
export interface Step {
  /** Counted from 1, in order. */
  readonly step: number;
  readonly kind: (typeof STEP_KINDS)[number];
  readonly call: string | null;
  readonly turn: number | null;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Tree ids. `after` is null while the work runs, and stays null if the work was killed. */
  readonly before: string | null;
  readonly after: string | null;
  /** Increases with each end: shows which of several concurrent steps ended first. Null while the work runs. */
  readonly ended: number | null;
  /** The step that an undo returned to. */
  readonly target: number | null;
}

/** The steps of one session. Durable when a call returns. */
export interface Steps {
  begin(step: Omit<Step, "step" | "at" | "after" | "ended">): number;
  end(step: number, trees: { readonly before: string; readonly after: string }): void;
  all(): readonly Step[];
}
