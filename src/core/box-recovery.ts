/** Replaces the box of a run when it is lost, and keeps what its calls had changed. */
export interface BoxRecovery {
  /** Call after each call that may have written: copies its changes out of the box. Rejects if the box is lost. */
  readonly bringHome: () => Promise<void>;
  /** Why the box was lost, if `thrown` is that loss and another box replaced it. Rejects if none could. */
  readonly replacedAfter: (thrown: unknown) => Promise<string | undefined>;
  /** Why the box was lost between calls; each loss is told once. */
  readonly untoldLoss: () => string | undefined;
}
