import { formatCount, formatDuration } from "../core/wording.ts";
import type { AgentEvent } from "../core/events.ts";
import type { PromptParts, Usage } from "../core/model-provider.ts";
import { type Html, markup } from "./html-escape.ts";

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

const PARTS = [
  "system",
  "instructions",
  "tools",
  "summary",
  "requests",
  "replies",
  "results",
] as const satisfies readonly (keyof PromptParts)[];

const time = (ms: number | null): string => (ms === null ? "–" : formatDuration(ms));
const sizeOf = (prompt: PromptParts): number => PARTS.reduce((sum, part) => sum + prompt[part], 0);

const nameOf = ({ turn, agent, purpose, failed }: RequestReport): string => {
  const what = purpose === "turn" ? `turn ${turn}` : `${purpose}${failed ? ", failed" : ""}`;
  return agent === null ? what : `${what} (${agent})`;
};

/** The counted tokens, or else an estimate, marked as such. */
function tokensIn({ usage, prompt }: RequestReport): string {
  if (usage.prompt_tokens !== null) return formatCount(usage.prompt_tokens);
  return prompt === null ? "unknown" : `~${formatCount(sizeOf(prompt))}`;
}

const partsIn = (prompt: PromptParts): readonly string[] =>
  PARTS.flatMap((part) => (prompt[part] === 0 ? [] : [`${part} ${formatCount(prompt[part])}`]));

/** The requests whose prompt is known; older versions did not record it. */
const withKnownPrompt = (requests: readonly RequestReport[]): readonly RequestReport[] =>
  requests.filter(({ prompt }) => prompt !== null);

const MOST = 100;

/** A text table: a head, then for each request a row and a row of its parts; empty if nothing is known. */
export function requestRows(requests: readonly RequestReport[]): readonly string[] {
  const all = withKnownPrompt(requests);
  if (all.length === 0) return [];
  const shown = all.slice(0, MOST);
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
  const lines = rows.map((row) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join("  "),
  );
  const parts = shown.map(({ prompt }) => (prompt === null ? [] : [`  ${partsIn(prompt).join(" · ")}`]));
  const more = all.length > MOST ? [`and ${all.length - MOST} more: --json`] : [];
  return [...lines.flatMap((line, at) => [line, ...(parts[at - 1] ?? [])]), ...more];
}

/** The same as bars, scaled to the largest request; undefined if nothing is known. */
export function requestsCard(requests: readonly RequestReport[]): Html | undefined {
  const all = withKnownPrompt(requests);
  if (all.length === 0) return undefined;
  const largest = Math.max(1, ...all.map(({ prompt }) => (prompt === null ? 0 : sizeOf(prompt))));
  return markup`<section class="card">
    <h2>Requests (${all.length})</h2>
    <p class="soft">${PARTS.map((part) => markup`<span class="key part-${part}">${part}</span>`)}</p>
    ${all.slice(0, MOST).map((each) => requestBar(each, largest))}
    ${all.length > MOST ? markup`<p class="soft">and ${all.length - MOST} more: harness report --json</p>` : undefined}
  </section>`;
}

function requestBar(request: RequestReport, largest: number): Html | string {
  const { prompt, usage, ms, first_token_ms, build_ms } = request;
  if (prompt === null) return "";
  const out = usage.completion_tokens === null ? "unknown" : formatCount(usage.completion_tokens);
  const words = [
    `${tokensIn(request)} in, ${out} out`,
    `${time(ms)} in total`,
    ...(first_token_ms === null ? [] : [`first token after ${time(first_token_ms)}`]),
    ...(build_ms === null ? [] : [`prompt built in ${time(build_ms)}`]),
  ];
  return markup`<p class="soft">${nameOf(request)}: ${words.join(", ")}</p>
    <div class="bar" title="${partsIn(prompt).join(", ")}">
      ${PARTS.map(
        (part) =>
          markup`<span class="part-${part}" style="width:${((100 * prompt[part]) / largest).toFixed(1)}%"></span>`,
      )}
    </div>`;
}

/** Uses the colours of the page. */
export const REQUEST_STYLE = `
.bar .part-system, .key.part-system::before { background: #6e7781; }
.bar .part-instructions, .key.part-instructions::before { background: #8250df; }
.bar .part-tools, .key.part-tools::before { background: #bf8700; }
.bar .part-summary, .key.part-summary::before { background: #cf222e; }
.bar .part-requests, .key.part-requests::before { background: #1a7f37; }
.bar .part-replies, .key.part-replies::before { background: #0969da; }
.bar .part-results, .key.part-results::before { background: #1b7c83; }
`;
