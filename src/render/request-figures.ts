import type { AgentEvent } from "../core/events.ts";
import type { PromptParts, Usage } from "../core/model-provider.ts";
import { formatCount, formatDuration } from "../core/wording.ts";

/** The cost of each request to a model, and its parts. Values that were not reported are never shown as zero. */

type Of<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;

export interface RequestReport {
  /** 0 if before the first turn. */
  readonly turn: number;
  readonly agent: string | null;
  readonly purpose: "turn" | Of<"model.aside">["purpose"];
  readonly failed: boolean;
  readonly usage: Usage;
  readonly ms: number;
  /** Null if the reply was not streamed. */
  readonly first_token_ms: number | null;
  /** Null if it was not measured. */
  readonly build_ms: number | null;
  /** Null in the records of older versions. */
  readonly prompt: PromptParts | null;
}

export function requestOf(event: Of<"model.finished"> | Of<"model.aside">, turn: number): RequestReport {
  const { agent = null, usage, ms, first_token_ms = null, prompt = null } = event;
  const isTurn = event.type === "model.finished";
  return {
    turn,
    agent,
    purpose: isTurn ? "turn" : event.purpose,
    failed: !isTurn && event.outcome === "failed",
    usage,
    ms,
    first_token_ms,
    build_ms: (isTurn ? event.build_ms : undefined) ?? null,
    prompt,
  };
}

/** The parts of a prompt, in its order. */
export const PROMPT_PARTS = [
  "system",
  "instructions",
  "tools",
  "summary",
  "requests",
  "replies",
  "results",
] as const satisfies readonly (keyof PromptParts)[];

const time = (ms: number | null): string => (ms === null ? "–" : formatDuration(ms));
export const promptSize = (prompt: PromptParts): number =>
  PROMPT_PARTS.reduce((sum, part) => sum + prompt[part], 0);

const nameOf = ({ turn, agent, purpose, failed }: RequestReport): string => {
  const what = purpose === "turn" ? `turn ${turn}` : `${purpose}${failed ? ", failed" : ""}`;
  return agent === null ? what : `${what} (${agent})`;
};

/** The counted tokens, or else an estimate, marked as such. */
function tokensIn({ usage, prompt }: RequestReport): string {
  if (usage.prompt_tokens !== null) return formatCount(usage.prompt_tokens);
  return prompt === null ? "unknown" : `~${formatCount(promptSize(prompt))}`;
}

/** The parts that are not empty, with their sizes. */
export const partsIn = (prompt: PromptParts): readonly string[] =>
  PROMPT_PARTS.flatMap((part) => (prompt[part] === 0 ? [] : [`${part} ${formatCount(prompt[part])}`]));

/** A request whose prompt is known; older versions did not record it. */
export interface MeasuredRequest extends RequestReport {
  readonly prompt: PromptParts;
}

export const measured = (requests: readonly RequestReport[]): readonly MeasuredRequest[] =>
  requests.filter((request): request is MeasuredRequest => request.prompt !== null);

/** Requests shown for people; JSON has all of them. */
export const MAX_REQUESTS = 100;

/** A text table: a head, then for each request a row and a row of its parts; empty if nothing is known. */
export function requestRows(requests: readonly RequestReport[]): readonly string[] {
  const all = measured(requests);
  if (all.length === 0) return [];
  const shown = all.slice(0, MAX_REQUESTS);
  const rows = [
    ["", "first token", "total", "built in", "tokens in", "out"],
    ...shown.map((each) => [
      nameOf(each),
      time(each.first_token_ms),
      time(each.ms),
      time(each.build_ms),
      tokensIn(each),
      each.usage.completion_tokens === null ? "unknown" : formatCount(each.usage.completion_tokens),
    ]),
  ];
  const widthAt = (at: number): number => Math.max(...rows.map((row) => row[at]?.length ?? 0));
  const widths = rows[0]?.map((_, at) => widthAt(at)) ?? [];
  const [head = "", ...lines] = rows.map((row) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join("  "),
  );
  const more = all.length > MAX_REQUESTS ? [`and ${all.length - MAX_REQUESTS} more: --json`] : [];
  const figures = shown.flatMap(({ prompt }, at) => [lines[at] ?? "", `  ${partsIn(prompt).join(" · ")}`]);
  return [head, ...figures, ...more];
}

/** The figures of one request in a sentence. */
export function requestWords(request: RequestReport): string {
  const { usage, ms, first_token_ms, build_ms } = request;
  const out = usage.completion_tokens === null ? "unknown" : formatCount(usage.completion_tokens);
  const words = [
    `${tokensIn(request)} in, ${out} out`,
    `${time(ms)} in total`,
    ...(first_token_ms === null ? [] : [`first token after ${time(first_token_ms)}`]),
    ...(build_ms === null ? [] : [`prompt built in ${time(build_ms)}`]),
  ];
  return `${nameOf(request)}: ${words.join(", ")}`;
}
