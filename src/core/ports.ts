import type { Decision, Mode } from "./decision.ts";
import type { Message, Usage } from "./messages.ts";

/** What the outside must offer. Each port has one contract suite in test/contract. */

/** Owning a box and using a box are two interfaces: only the owner can end it. */
export interface Sandbox {
  start(request: { readonly workspace: string; readonly mode: Mode }): Promise<Box & AsyncDisposable>;
}

export interface Box {
  exec(argv: readonly string[], signal: AbortSignal): Promise<ExecResult>;
  read(path: string): Promise<Uint8Array>;
  write(path: string, content: Uint8Array): Promise<void>;
  list(path: string): Promise<readonly string[]>;
}

export interface ExecResult {
  readonly exit_code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Never throws: a failure is the last event of the stream. */
export interface Provider {
  stream(
    request: { readonly messages: readonly Message[] },
    signal: AbortSignal,
  ): AsyncIterable<ProviderEvent>;
}

export type ProviderEvent =
  | { readonly type: "text" | "thinking"; readonly text: string }
  | { readonly type: "finished"; readonly message: Message; readonly usage: Usage }
  | { readonly type: "failed"; readonly reason: string; readonly remedy: string };

export interface Approver {
  ask(question: {
    readonly decision: Decision;
    readonly command: string;
  }): Promise<"once" | "always" | "deny">;
}

export interface Embedder {
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]>;
}
