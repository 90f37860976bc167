import * as z from "zod";

/** The messages of a conversation. Provider formats are translated at the edge of models/. */

/** What a task wants: an answer, a look at the repository, a change to it, or something from the web. */
export const INTENTS = ["direct", "repo", "change", "web"] as const;
export type Intent = (typeof INTENTS)[number];

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export type Message =
  /** `standing`: length of the part that is the same in every session; what a provider adds goes after it. */
  | { readonly role: "system"; readonly text: string; readonly standing?: number }
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

/**
 * Prices per million tokens, for models whose name begins with `model`. Without `cached`, cached tokens cost as much.
 */
export interface Price {
  readonly model: string;
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
  /** The first day on which the price applies, such as 2026-03-01 in UTC; left out, it always applied. */
  readonly from?: string;
}

const count = z.int().min(0).nullable();

export const usageForm = z.strictObject({
  requests: z.int().min(0),
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: count,
  cost: z.number().nullable(),
});

export const priceForm = z.strictObject({
  model: z.string(),
  input: z.number(),
  output: z.number(),
  cached: z.number().exactOptional(),
  from: z.string().exactOptional(),
});

const tokens = z.int().min(0);

/** Each count is a share of the whole request; their sum is its number of tokens. */
export const promptForm = z.strictObject({
  system: tokens,
  instructions: tokens.describe("Instructions of the user and the project in the system prompt."),
  tools: tokens.describe("Descriptions and schemas of the tools."),
  summary: tokens.describe("The summary of messages that are no longer sent."),
  requests: tokens.describe("What the user wrote, and what harness told the model in that role."),
  replies: tokens.describe("Earlier replies, with the arguments of their calls."),
  results: tokens.describe("Results of calls."),
});
export type PromptParts = z.infer<typeof promptForm>;
