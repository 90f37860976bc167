import { formatDuration } from "../core/wording.ts";
import { type BatchEnd, batchTotals, CAUSES, type RowCause, type RowSummary } from "./batch-results.ts";
import { type Html, markup } from "./html-escape.ts";
import { PAGE_HEAD } from "./html-page.ts";
import { pill } from "./html-run.ts";

/** All rows of a batch as a self-contained file; `name` is the source of the rows. */
export function batchPage(name: string, end: BatchEnd): string {
  const { done, failed } = batchTotals(end);
  const rows = end.ended.toSorted((one, other) => one.row - other.row);
  const body = markup`<title>${name} – harness batch</title>
    </head>
    <body>
      <main>
        <section class="card ${failed > 0 ? "bad" : done === end.rows ? "plain" : "held"}">
          <h1>${name}</h1>
          ${facts(end)}
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

function facts(end: BatchEnd): Html {
  const { rows, done, failed, not_started, usage } = batchTotals(end);
  const known = usage.prompt_tokens !== null && usage.completion_tokens !== null;
  const table: readonly (readonly [string, string])[] = [
    ["Rows", String(rows)],
    ["Done", String(done)],
    ["Failed", String(failed)],
    ["Not started", String(not_started)],
    ["Requests", String(usage.requests)],
    ["Tokens", known ? String((usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0)) : "unknown"],
    ["Cost", usage.cost === null ? "unknown" : String(usage.cost)],
    ["Time of all rows", formatDuration(end.ended.reduce((sum, { duration_ms }) => sum + duration_ms, 0))],
  ];
  return markup`<dl class="facts">
    ${table.map(
      ([name, value]) =>
        markup`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
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
