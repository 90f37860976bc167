/** How long and how much one attempt may be. A local model may load for minutes and write a call in silence. */
export interface Limits {
  /** For a connection. */
  readonly connectMs: number;
  /** From there to the first event: the model is loaded and the prompt read. */
  readonly firstMs: number;
  /** Between two events. Ollama says nothing while a call is being written. */
  readonly idleMs: number;
  readonly totalMs: number;
  /** Of text, thinking and arguments together. */
  readonly bytes: number;
  /** Each is a token or more. */
  readonly events: number;
}
