import { formatDuration, plural } from "../core/wording.ts";
import { cutText, type Html, markup, pill, runCards } from "./html-parts.ts";
import {
  auditWords,
  callsOf,
  momentWords,
  networkWords,
  type Report,
  type RunReport,
  statusWords,
} from "./report-form.ts";

/** Marks our own files; it is near their start. */
export const REPORT_MARK = '<meta name="generator" content="harness report">';

/** Nothing is loaded, run or sent, whatever the texts contain; only this page's own style is allowed. */
const SAFE =
  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">";

/** The style of the page: narrow screens first, dark when the reader's system is dark. */
const STYLE = `
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1b1f24; --soft: #59636e; --line: #d8dee4;
  --code: #f0f2f5; --good: #116329; --good-bg: #dafbe1; --bad: #a40e26; --bad-bg: #ffebe9; --held: #7a4b00;
  --held-bg: #fff3cd; --plain: #424a53; --plain-bg: #eaeef2; --link: #0550ae; }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --card: #161b22; --ink: #e6edf3; --soft: #9aa4af;
  --line: #30363d; --code: #0d1117; --good: #7ee2a0; --good-bg: #12361f; --bad: #ffa198; --bad-bg: #4a1418;
  --held: #f2cc60; --held-bg: #3d2e00; --plain: #c9d1d9; --plain-bg: #272d35; --link: #79b8ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere; -webkit-text-size-adjust: 100%; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.35rem; line-height: 1.3; margin: 0 0 .5rem; }
h2 { font-size: 1.05rem; margin: 0 0 .6rem; }
h3 { font-size: .95rem; margin: 0; }
p { margin: 0 0 .5rem; }
.card > :last-child, .inside > :last-child { margin-bottom: 0; }
ul + h2 { margin-top: 1rem; }
.soft { color: var(--soft); font-size: .875rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: 0 0 1rem; }
.card.bad { border-left: .3rem solid var(--bad); }
.card.held { border-left: .3rem solid var(--held); }
.pill { display: inline-block; border-radius: 1rem; padding: .05rem .6rem; font-size: .8125rem; font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); } .held { color: var(--held); } .plain { color: var(--plain); }
.card.good, .card.bad, .card.held, .card.plain { color: inherit; }
.pill.good { background: var(--good-bg); } .pill.bad { background: var(--bad-bg); }
.pill.held { background: var(--held-bg); } .pill.plain { background: var(--plain-bg); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; margin: 0; }
.facts dt { color: var(--soft); font-size: .8125rem; }
.facts dd { margin: 0; font-weight: 600; }
ul { margin: 0; padding-left: 1.1rem; }
li { margin: 0 0 .4rem; }
ul.paths { list-style: none; padding: 0; font: .8125rem/1.6 ui-monospace, monospace; }
ul.paths li { margin: 0; }
code, pre { font-family: ui-monospace, monospace; font-size: .8125rem; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem; margin: .4rem 0;
  white-space: pre-wrap; max-height: 28rem; overflow: auto; }
.task { white-space: pre-wrap; border-left: .2rem solid var(--line); padding-left: .75rem; }
.bar { display: flex; height: .6rem; border-radius: .3rem; overflow: hidden; background: var(--plain-bg); margin: .25rem 0; }
.bar .model { background: var(--link); } .bar .calls { background: var(--held); }
.key::before { content: ""; display: inline-block; width: .6rem; height: .6rem; border-radius: .15rem; margin-right: .35rem;
  background: var(--plain-bg); border: 1px solid var(--line); }
.key.model::before { background: var(--link); } .key.calls::before { background: var(--held); }
.key { margin-right: 1rem; white-space: nowrap; }
.turn { border-left: 2px solid var(--line); margin: 0 0 0 .3rem; padding: 0 0 1rem 1rem; position: relative; }
.turn::before { content: ""; position: absolute; left: -.42rem; top: .35rem; width: .7rem; height: .7rem;
  border-radius: 50%; background: var(--card); border: 2px solid var(--soft); }
.turn > header { display: flex; flex-wrap: wrap; gap: 0 .75rem; align-items: baseline; margin-bottom: .4rem; }
.step { margin: .5rem 0; }
.step.child { margin-left: 1rem; padding-left: .75rem; border-left: 2px dotted var(--line); }
.said { white-space: pre-wrap; }
details > summary { cursor: pointer; padding: .45rem .6rem; border: 1px solid var(--line); border-radius: .4rem;
  background: var(--page); list-style-position: inside; }
details[open] > summary { border-radius: .4rem .4rem 0 0; }
details > .inside { border: 1px solid var(--line); border-top: 0; border-radius: 0 0 .4rem .4rem; padding: .6rem; }
summary code { display: block; margin: .25rem 0 .1rem; white-space: pre-wrap; }
summary .pill { margin-left: .4rem; }
summary .soft { margin-left: .5rem; white-space: nowrap; }
.turn:last-child { padding-bottom: 0; }
.diff span { display: block; }
.diff .add { color: var(--good); } .diff .del { color: var(--bad); } .diff .at { color: var(--soft); }
@media (max-width: 30rem) { main { padding: .6rem; } .card { padding: .8rem; } .turn { padding-left: .8rem; } }
@media print { pre { max-height: none; } .card { break-inside: avoid; } }

.bar .part-system, .key.part-system::before { background: #6e7781; }
.bar .part-instructions, .key.part-instructions::before { background: #8250df; }
.bar .part-tools, .key.part-tools::before { background: #bf8700; }
.bar .part-summary, .key.part-summary::before { background: #cf222e; }
.bar .part-requests, .key.part-requests::before { background: #1a7f37; }
.bar .part-replies, .key.part-replies::before { background: #0969da; }
.bar .part-results, .key.part-results::before { background: #1b7c83; }
`;

/** The head of all our pages. */
export const PAGE_HEAD = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${SAFE}
${REPORT_MARK}
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>${STYLE}</style>
`;

/** A report as a self-contained file. */
export function reportPage(report: Report): string {
  const { session, runs } = report;
  const body = markup`<title>${session.title} – harness</title>
    </head>
    <body>
      <main>
        ${titleCard(report)} ${refusalsCard(runs)} ${limitsCard(runs)} ${networkCard(runs)}
        ${runs.map((run, at) => runCards(run, { number: at + 1, of: runs.length }))} ${diffCard(report.diff)}
        ${aboutCard(report)}
      </main>
    </body>
    </html> `;
  return PAGE_HEAD + body.toString();
}

function titleCard({ session, runs }: Report): Html {
  const last = runs.at(-1);
  const status =
    last === undefined ? ({ tone: "plain", text: "no run was recorded" } as const) : statusWords(last);
  const calls = runs.flatMap(callsOf);
  const spent = runs.reduce((sum, run) => sum + run.last - run.started, 0);
  return markup`<section class="card ${status.tone}">
    <h1>${session.title}</h1>
    <p>${pill(status)}</p>
    <p class="soft">
      ${[
        plural(runs.length, "run"),
        plural(calls.length, "call"),
        formatDuration(spent),
        `started ${momentWords(session.started)}`,
      ].join(" · ")}
    </p>
  </section>`;
}

function aboutCard(report: Report): Html {
  const { session, audit, bundle } = report;
  const facts: readonly (readonly [string, string])[] = [
    ["Session", session.id],
    ["Workspace", session.workspace],
    ["Mode", session.mode],
    ["Model", `${session.model} (${session.provider})`],
    ...(bundle === undefined ? [] : [["Read from", `${bundle.file}, SHA-256 ${bundle.sha256}`] as const]),
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
    ${bundle === undefined ? undefined : markup`<p class="soft">Not in that file: ${bundle.not_held.join("; ")}.</p>`}
  </section>`;
}

const MAX_DIFF_TEXT = 400_000;

/** The changes, when they were kept. */
function diffCard(diff: string | null): Html | undefined {
  if (diff === null || diff === "") return undefined;
  const lines = cutText(diff.trimEnd(), MAX_DIFF_TEXT).split("\n");
  return markup`<section class="card diff">
    <h2>Changes</h2>
    <pre>${lines.map((line) => markup`<span class="${kindOf(line)}">${line || " "}</span>`)}</pre>
  </section>`;
}

function kindOf(line: string): string {
  if (line.startsWith("+++") || line.startsWith("---") || line.startsWith("@@")) return "at";
  if (line.startsWith("+")) return "add";
  return line.startsWith("-") ? "del" : "same";
}

/** The refusals; they come before anything else. */
function refusalsCard(runs: readonly RunReport[]): Html | undefined {
  const refusals = runs.flatMap((run) => run.refusals);
  if (refusals.length === 0) return undefined;
  return markup`<section class="card bad" id="refused">
    <h2>Refused (${refusals.length})</h2>
    <ul>
      ${refusals.map(
        ({ tool, target, decision, rule, reason }) =>
          markup`<li>
            <strong>${tool}</strong> <code>${target}</code><br />
            <span class="bad">${decision === "deny" ? "denied" : "asked, and refused"}</span>:
            ${reason} <span class="soft">(${rule})</span>
          </li>`,
      )}
    </ul>
  </section>`;
}

/** The limits that were reached, and the hosts that were tried. */
function limitsCard(runs: readonly RunReport[]): Html | undefined {
  const limits = runs.flatMap((run) => run.limits);
  const hosts = runs.flatMap((run) => run.hosts.map((host) => ({ ...host, how: howOf(run, host.call) })));
  if (limits.length + hosts.length === 0) return undefined;
  return markup`<section class="card held">
    ${
      limits.length === 0
        ? undefined
        : markup`<h2>Limits reached (${limits.length})</h2>
            <ul>
              ${limits.map((limit) => markup`<li>${limit}</li>`)}
            </ul>`
    }
    ${
      hosts.length === 0
        ? undefined
        : markup`<h2>Hosts tried (${hosts.length})</h2>
            <ul>
              ${hosts.map(({ host, ran, how }) => markup`<li><code>${host}</code>: ${ran ? `the call ran, ${how}` : "the call was refused"}</li>`)}
            </ul>`
    }
  </section>`;
}

/** The hosts that boxes reached, and those they were refused. */
function networkCard(runs: readonly RunReport[]): Html | undefined {
  const { reached, refused } = networkWords(runs.flatMap(({ network }) => network));
  if (reached.length + refused.length === 0) return undefined;
  return markup`<section class="card held" id="network">
    <h2>Network</h2>
    ${hostList("Reached", reached)} ${hostList("Refused", refused)}
  </section>`;
}

const MAX_HOSTS = 200;

const hostList = (name: string, lines: readonly string[]): Html | undefined =>
  lines.length === 0
    ? undefined
    : markup`<h3>${name} (${lines.length})</h3>
        <ul class="paths">
          ${lines.slice(0, MAX_HOSTS).map((line) => markup`<li>${line}</li>`)}
        </ul>
        ${lines.length > MAX_HOSTS ? markup`<p class="soft">and ${lines.length - MAX_HOSTS} more: harness report --json</p>` : undefined}`;

const howOf = (run: RunReport, name: string): string => {
  const end = callsOf(run).find(({ call }) => call === name)?.end;
  if (end === undefined || end === null) return "without an end";
  return `result: ${end.cause === null ? end.kind : `${end.kind} (${end.cause})`}`;
};
