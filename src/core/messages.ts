/** The messages of a conversation. Provider formats are translated at the edge of models/. */

/** What a task wants: an answer, a look at the repository, a change of it, or something of the web. */
export const INTENTS = ["direct", "repo", "change", "web"] as const;
export type Intent = (typeof INTENTS)[number];

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export type Message =
  | { readonly role: "system"; readonly text: string }
  | { readonly role: "user"; readonly text: string }
  | {
      readonly role: "assistant";
      readonly text: string;
      readonly thinking?: string;
      readonly calls: readonly ToolCall[];
    }
  | { readonly role: "tool"; readonly call: string; readonly text: string };

/** null means that the server did not say, which is not the same as zero. */
export interface Usage {
  readonly requests: number;
  readonly prompt_tokens: number | null;
  readonly completion_tokens: number | null;
  readonly cached_tokens: number | null;
  readonly cost: number | null;
}
