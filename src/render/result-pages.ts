/** Results as pages: self-contained files without a script, which load nothing; all texts in them are escaped. */
import type { Finding, VetComparison, VetReport, VetStep, Weight } from "../core/behaviour.ts";
import { formatDuration, formatSize, plural } from "../core/wording.ts";
import {
  type BatchEnd,
  batchTotals,
  CAUSES,
  type EvalResult,
  type EvalTotals,
  evalTotals,
  groupedResults,
  type RowCause,
  type RowSummary,
} from "./batch-results.ts";
import { PAGE_HEAD } from "./html-page.ts";
import { cutText, type Html, markup, pill } from "./html-parts.ts";
import { WEIGHT_HEADS, WEIGHTS } from "./repository-lines.ts";

/** All rows of a batch; `name` is the source of the rows. */
export function batchPage(name: string, end: BatchEnd): string {
  const { done, failed } = batchTotals(end);
  const rows = end.ended.toSorted((one, other) => one.row - other.row);
  const body = markup`<title>${name} – harness batch</title>
    </head>
    <body>
      <main>
        <section class="card ${failed > 0 ? "bad" : done === end.rows ? "plain" : "held"}">
          <h1>${name}</h1>
          ${batchFacts(end)}
        </section>
        ${causesCard(end)}
        <section class="card">
          <h2>Rows</h2>
          <ul>
            ${rows.map(rowItem)}
          </ul>
        </section>
      </main>
    </body>
    </html> `;
  return PAGE_HEAD + body.toString();
}

function batchFacts(end: BatchEnd): Html {
  const { rows, done, failed, not_started, usage } = batchTotals(end);
  const known = usage.prompt_tokens !== null && usage.completion_tokens !== null;
  return factsList([
    ["Rows", String(rows)],
    ["Done", String(done)],
    ["Failed", String(failed)],
    ["Not started", String(not_started)],
    ["Requests", String(usage.requests)],
    ["Tokens", known ? String((usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0)) : "unknown"],
    ["Cost", usage.cost === null ? "unknown" : String(usage.cost)],
    ["Time of all rows", formatDuration(end.ended.reduce((sum, { duration_ms }) => sum + duration_ms, 0))],
  ]);
}

function causesCard(end: BatchEnd): Html {
  const { by_cause } = batchTotals(end);
  const causes = CAUSES.filter((cause) => by_cause[cause] !== undefined);
  const spent = end.spent === undefined ? "" : `${end.spent} was used up: no further row was started.`;
  if (causes.length === 0 && spent === "") return markup``;
  return markup`<section class="card">
    <h2>Causes</h2>
    <p>${spent}</p>
    <ul>
      ${causes.map(
        (cause) => markup`<li>${pill({ tone: toneOf(cause), text: cause })} ${String(by_cause[cause])}</li>`,
      )}
    </ul>
  </section>`;
}

const HELD: ReadonlySet<RowCause> = new Set(["budget", "parked", "interrupted"]);

const toneOf = (cause: RowCause | null): "good" | "held" | "bad" =>
  cause === null ? "good" : HELD.has(cause) ? "held" : "bad";

const rowItem = ({ row, target, cause, reason, session, duration_ms, attempts }: RowSummary): Html =>
  markup`<li>
    ${String(row)} ${target} ${pill({ tone: toneOf(cause), text: cause ?? "done" })}
    <span class="soft">${[
      formatDuration(duration_ms),
      ...(session === null ? [] : [`session ${session}`]),
      ...(attempts === 0 ? [] : [`retries: ${attempts}`]),
      ...(cause === null ? [] : [reason]),
    ].join(", ")}</span>
  </li>`;

const factsList = (facts: readonly (readonly [name: string, value: string])[]): Html =>
  markup`<dl class="facts">
    ${facts.map(
      ([name, value]) =>
        markup`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;

/** The results of a suite. */
export function evalPage(suite: string, results: readonly EvalResult[]): string {
  const totals = evalTotals(results);
  const body = markup`<title>${suite} – harness eval</title>
    </head>
    <body>
      <main>
        <section class="card ${totals.false_done > 0 ? "bad" : "plain"}">
          <h1>${suite}</h1>
          ${evalFacts(totals)}
        </section>
        ${groupsCard(
          "Languages",
          groupedResults(results, ({ language }) => language),
        )}
        ${groupsCard(
          "Tasks",
          groupedResults(results, ({ task }) => task),
        )}
        <section class="card">
          <h2>Not solved</h2>
          ${results.filter(({ solved }) => !solved).map(unsolvedItem)}
        </section>
      </main>
    </body>
    </html> `;
  return PAGE_HEAD + body.toString();
}

function evalFacts(totals: EvalTotals): Html {
  return factsList([
    ["Runs", String(totals.runs)],
    ["Solved", String(totals.solved)],
    ["False done", String(totals.false_done)],
    ["Refused", String(totals.refused)],
    ["Attempts", String(totals.attempts)],
    ["Turns", String(totals.turns)],
    ["Tokens", String(totals.tokens)],
    ["Time", formatDuration(totals.duration_ms)],
  ]);
}

function groupsCard(title: string, groups: ReadonlyMap<string, readonly EvalResult[]>): Html {
  return markup`<section class="card">
    <h2>${title}</h2>
    <ul>
      ${[...groups].map(([name, group]) => {
        const totals = evalTotals(group);
        const tone = totals.false_done > 0 ? "bad" : totals.solved === totals.runs ? "good" : "plain";
        const text = `${totals.solved} of ${totals.runs}`;
        return markup`<li>
          ${name} ${pill({ tone, text })}
          <span class="soft">${totals.turns} turns, ${totals.tokens} tokens, ${formatDuration(totals.duration_ms)}</span>
        </li>`;
      })}
    </ul>
  </section>`;
}

const unsolvedItem = (result: EvalResult): Html =>
  markup`<details>
    <summary>
      ${result.task} (${result.nth})
      ${pill({ tone: result.false_done ? "bad" : "held", text: result.false_done ? "false done" : result.status })}
    </summary>
    <div class="inside">
      <p>${result.reason}</p>
      <pre>${cutText(result.check_output)}</pre>
    </div>
  </details>`;

/** A report on a repository. */
export function vetPage(report: VetReport): string {
  const { repository, findings, steps, unseen } = report;
  const body = markup`<title>${report.verdict}: ${repository.name} – harness vet</title>
    </head>
    <body>
      <main>
        ${titleCard(report)} ${WEIGHTS.map((weight) => findingsCard(weight, findings, steps) ?? "")}
        ${stepsCard(steps)} ${linesCard("Not seen", unseen)}
      </main>
    </body>
    </html> `;
  return PAGE_HEAD + body.toString();
}

/** What is new in the second of two reports; only that decides. */
export function comparisonPage(comparison: VetComparison): string {
  const { verdict, before, after, findings, gone, changes, unseen } = comparison;
  const name = `${before.repository.name} → ${after.repository.name}`;
  const body = markup`<title>${verdict}: ${name} – harness vet</title>
    </head>
    <body>
      <main>
        <section class="card ${TONES[verdict]}">
          <h1>What is new: ${name}</h1>
          <p>${pill({ tone: TONES[verdict], text: verdict })}</p>
          <p class="soft">before: ${before.verdict} · after: ${after.verdict}</p>
        </section>
        ${WEIGHTS.map((weight) => findingsCard(weight, findings, []) ?? "")} ${linesCard("Behaviour", changes)}
        ${linesCard(
          "No longer found",
          gone.map(({ rule, text }) => `${text} (${rule})`),
        )}
        ${linesCard("Not seen", unseen)}
      </main>
    </body>
    </html> `;
  return PAGE_HEAD + body.toString();
}

const TONES = { quiet: "good", noisy: "held", hostile: "bad", note: "plain" } as const;

function titleCard(report: VetReport): Html {
  const { verdict, repository } = report;
  const facts = [
    repository.commit === null ? repository.kind : `${repository.kind} at ${repository.commit.slice(0, 12)}`,
    `${plural(repository.files, "file")}, ${formatSize(repository.bytes)}`,
    report.granted.length === 0 ? "no network" : `granted: ${report.granted.join(", ")}`,
    `runtime: ${report.runtime}`,
    formatDuration(report.took_ms),
  ];
  return markup`<section class="card ${TONES[verdict]}">
    <h1>${repository.name}</h1>
    <p>${pill({ tone: TONES[verdict], text: verdict })}</p>
    <p class="soft">${facts.join(" · ")}</p>
  </section>`;
}

function findingsCard(
  weight: Weight,
  findings: readonly Finding[],
  steps: readonly VetStep[],
): Html | undefined {
  const own = findings.filter((finding) => finding.weight === weight);
  if (own.length === 0) return undefined;
  return markup`<section class="card ${TONES[weight]}">
    <h2>${WEIGHT_HEADS[weight]} (${own.length})</h2>
    <ul>
      ${own.map((finding) => findingItem(finding, steps))}
    </ul>
  </section>`;
}

function findingItem(
  { rule, text, path, line, step, by = [], times }: Finding,
  steps: readonly VetStep[],
): Html {
  const where =
    path === undefined || text.includes(path) ? "" : `${path}${line === undefined ? "" : `:${line}`}: `;
  const command = step === undefined ? undefined : (steps[step]?.command ?? `step ${step + 1}`);
  const chain = by.length > 0 ? by.join(" → ") : command;
  return markup`<li>
    ${where}${text}${times === undefined || times < 2 || text.startsWith("and ") ? "" : ` (${times} times)`} <code>${rule}</code>
    ${chain === undefined ? undefined : markup`<div class="soft"><code>${chain}</code></div>`}
  </li>`;
}

function stepsCard(steps: readonly VetStep[]): Html | undefined {
  if (steps.length === 0) return undefined;
  return markup`<section class="card">
    <h2>Commands (${steps.length})</h2>
    ${steps.map(stepPart)}
  </section>`;
}

function stepPart(step: VetStep): Html {
  const { command, what, from, exit_code, duration_ms, observed, changes, output } = step;
  const ended = observed.touched === null ? `exit ${exit_code}` : "ended at a canary";
  const changed = [...changes.added, ...changes.modified, ...changes.deleted];
  const facts = `${from === null ? "" : `by ${from}: `}${ended}, ${formatDuration(duration_ms)}; ${plural(observed.processes.length, "program")}, ${plural(changed.length + changes.more, "change")}`;
  return markup`<details class="step">
    <summary>${what}<span class="soft">${facts}</span><code>${command}</code></summary>
    <div class="inside">
      ${output === "" ? markup`<p class="soft">It printed nothing.</p>` : markup`<pre>${cutText(output)}</pre>`}
      ${programList(step)} ${changed.length === 0 ? undefined : pathList("Changed", changed)}
    </div>
  </details>`;
}

const MAX_LINES = 100;

function programList({ observed }: VetStep): Html | undefined {
  const lines = observed.processes.map(({ words }) => cutText(words.join(" "), 300));
  return lines.length === 0 ? undefined : pathList("Programs", lines);
}

const pathList = (name: string, lines: readonly string[]): Html =>
  markup`<h3>${name} (${lines.length})</h3>
    <ul class="paths">
      ${lines.slice(0, MAX_LINES).map((line) => markup`<li>${line}</li>`)}
    </ul>
    ${lines.length > MAX_LINES ? markup`<p class="soft">and ${lines.length - MAX_LINES} more: harness vet --json</p>` : undefined}`;

function linesCard(head: string, lines: readonly string[]): Html | undefined {
  if (lines.length === 0) return undefined;
  return markup`<section class="card plain">
    <h2>${head}</h2>
    <ul>
      ${lines.map((text) => markup`<li>${text}</li>`)}
    </ul>
  </section>`;
}
