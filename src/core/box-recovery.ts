/** Replaces the box of a run when it is lost, and keeps what its calls had changed. */
export interface BoxRecovery {
  /** Called after a call that may have written: copies its changes to where they outlast the box. Rejects if the box is lost. */
  readonly bringHome: () => Promise<void>;
  /** Why the box was lost, if `thrown` is its loss and another one has taken its place. Rejects where none could. */
  readonly replacedAfter: (thrown: unknown) => Promise<string | undefined>;
  /** Why the box was lost between calls; each loss is told once. */
  readonly untoldLoss: () => string | undefined;
}
