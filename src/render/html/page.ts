import { formatDuration } from "../../core/bounds.ts";
import { callsOf, type Report } from "../report/report.ts";
import { auditWords, counted, momentWords, statusWords } from "../report/words.ts";
import { diffCard } from "./diff.ts";
import { type Html, markup } from "./escape.ts";
import { pill } from "./pill.ts";
import { runCards } from "./run.ts";
import { STYLE } from "./style.ts";
import { limitsCard, refusalsCard } from "./troubles.ts";

/** What our own files are known by, near their start. */
export const REPORT_MARK = '<meta name="generator" content="harness report">';

/** Nothing is loaded, run or sent, whatever stands in the texts; only the style of this page counts. */
const SAFE =
  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">";

const HEAD = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${SAFE}
${REPORT_MARK}
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>${STYLE}</style>
`;

/** A report as a file of its own. */
export function reportPage(report: Report): string {
  const { session, runs } = report;
  const body = markup`<title>${session.title} – harness</title>
    </head>
    <body>
      <main>
        ${titleCard(report)} ${refusalsCard(runs)} ${limitsCard(runs)}
        ${runs.map((run, at) => runCards(run, { number: at + 1, of: runs.length }))} ${diffCard(report.diff)}
        ${aboutCard(report)}
      </main>
    </body>
    </html> `;
  return HEAD + body.toString();
}

function titleCard({ session, runs }: Report): Html {
  const last = runs.at(-1);
  const status =
    last === undefined ? ({ tone: "plain", text: "no run was kept" } as const) : statusWords(last);
  const calls = runs.flatMap(callsOf);
  const spent = runs.reduce((sum, run) => sum + run.last - run.started, 0);
  return markup`<section class="card ${status.tone}">
    <h1>${session.title}</h1>
    <p>${pill(status)}</p>
    <p class="soft">
      ${[
        counted(runs.length, "run"),
        counted(calls.length, "call"),
        formatDuration(spent),
        `begun ${momentWords(session.started)}`,
      ].join(" · ")}
    </p>
  </section>`;
}

function aboutCard(report: Report): Html {
  const { session, audit } = report;
  const facts: readonly (readonly [string, string])[] = [
    ["Session", session.id],
    ["Workspace", session.workspace],
    ["Mode", session.mode],
    ["Model", `${session.model} (${session.provider})`],
  ];
  const notes = audit?.notes ?? [];
  return markup`<section class="card">
    <h2>About</h2>
    <dl class="facts">
      ${facts.map(
        ([name, value]) =>
          markup`<div>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
      <div>
        <dt>Audit</dt>
        <dd>${pill(auditWords(report))}</dd>
      </div>
    </dl>
    ${notes.length === 0 ? undefined : markup`<p class="soft">${notes.join("; ")}</p>`}
  </section>`;
}
