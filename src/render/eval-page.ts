import { formatDuration } from "../core/wording.ts";
import { type EvalResult, type EvalTotals, grouped, totalsOf } from "./eval-results.ts";
import { cutText, type Html, markup } from "./html-escape.ts";
import { PAGE_HEAD } from "./html-page.ts";
import { pill } from "./html-run.ts";

/** The results of a suite as a self-contained file. */
export function evalPage(suite: string, results: readonly EvalResult[]): string {
  const totals = totalsOf(results);
  const body = markup`<title>${suite} – harness eval</title>
    </head>
    <body>
      <main>
        <section class="card ${totals.false_done > 0 ? "bad" : "plain"}">
          <h1>${suite}</h1>
          ${facts(totals)}
        </section>
        ${tableCard(
          "Languages",
          grouped(results, ({ language }) => language),
        )}
        ${tableCard(
          "Tasks",
          grouped(results, ({ task }) => task),
        )}
        <section class="card">
          <h2>Not solved</h2>
          ${results.filter(({ solved }) => !solved).map(unsolved)}
        </section>
      </main>
    </body>
    </html> `;
  return PAGE_HEAD + body.toString();
}

function facts(totals: EvalTotals): Html {
  const rows: readonly (readonly [string, string])[] = [
    ["Runs", String(totals.runs)],
    ["Solved", String(totals.solved)],
    ["False done", String(totals.false_done)],
    ["Refused", String(totals.refused)],
    ["Attempts", String(totals.attempts)],
    ["Turns", String(totals.turns)],
    ["Tokens", String(totals.tokens)],
    ["Time", formatDuration(totals.duration_ms)],
  ];
  return markup`<dl class="facts">
    ${rows.map(
      ([name, value]) =>
        markup`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

function tableCard(title: string, groups: ReadonlyMap<string, readonly EvalResult[]>): Html {
  return markup`<section class="card">
    <h2>${title}</h2>
    <ul>
      ${[...groups].map(([name, group]) => {
        const totals = totalsOf(group);
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

const unsolved = (result: EvalResult): Html =>
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
