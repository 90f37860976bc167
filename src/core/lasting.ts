/** What outlasts the box of a run, where it can be lost in the middle of it. */
export interface Lasting {
  /** Behind a call that may have written: what it changed is where the loss of the box takes it from nobody. Rejects with that loss. */
  readonly bringHome: () => Promise<void>;
  /** Where this is the loss of a box, and another one has taken its place: why it was lost. Rejects where none could. */
  readonly another: (thrown: unknown) => Promise<string | undefined>;
  /** Why the box was lost between calls, told once. */
  readonly news: () => string | undefined;
}
