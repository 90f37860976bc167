/** What a call that may write is known by. */
export interface Writing {
  readonly call: string;
  readonly turn: number;
  /** What it starts may go on writing when it has ended. */
  readonly lasting: boolean;
}

/** Keeps what the workspace was like before and after each piece of work on it. Only what `work` throws rejects. */
export interface Checkpoints {
  /** Looks at the workspace beside other work, so that the first call need not wait for it. */
  prepare(): void;
  around<T>(writing: Writing, work: () => Promise<T>): Promise<T>;
}

/** Where the workspace is not written, or where what is written is kept elsewhere. */
export const NO_CHECKPOINTS: Checkpoints = { prepare: () => undefined, around: (_, work) => work() };

/** lost: from here on nothing could be kept. */
export const STEP_KINDS = ["call", "undo", "redo", "lost"] as const;

/** A piece of work on the workspace, between two of its states. */
export interface Step {
  /** From 1 on, in their order. */
  readonly step: number;
  readonly kind: (typeof STEP_KINDS)[number];
  readonly call: string | null;
  readonly turn: number | null;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Names of trees. `after` is null while it is under way, and for ever where it was killed. */
  readonly before: string | null;
  readonly after: string | null;
  /** The step that an undo went back to. */
  readonly target: number | null;
}

/** The steps of one session. Durable when a call returns. */
export interface Steps {
  begin(step: Omit<Step, "step" | "at" | "after">): number;
  end(step: number, trees: { readonly before: string; readonly after: string }): void;
  all(): readonly Step[];
}
