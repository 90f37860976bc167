import type { Finding, VetComparison, VetReport, VetStep, Weight } from "../core/behaviour.ts";
import { counted, formatDuration, formatSize } from "../core/wording.ts";
import { cutText, type Html, markup } from "./html-escape.ts";
import { PAGE_HEAD } from "./html-page.ts";
import { pill } from "./html-run.ts";

/** A report on a repository as a self-contained file: no script, nothing loaded, all texts escaped. */
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

const WEIGHTS: readonly Weight[] = ["hostile", "noisy", "note"];
const TONES = { quiet: "good", noisy: "held", hostile: "bad", note: "plain" } as const;
const HEADS: Readonly<Record<Weight, string>> = {
  hostile: "Hostile: nothing else explains it",
  noisy: "Noisy: builds and tests rarely do this",
  note: "Worth knowing",
};

function titleCard(report: VetReport): Html {
  const { verdict, repository } = report;
  const facts = [
    repository.commit === null ? repository.kind : `${repository.kind} at ${repository.commit.slice(0, 12)}`,
    `${counted(repository.files, "file")}, ${formatSize(repository.bytes)}`,
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
    <h2>${HEADS[weight]} (${own.length})</h2>
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
  const facts = `${from === null ? "" : `by ${from}: `}${ended}, ${formatDuration(duration_ms)}; ${counted(observed.processes.length, "program")}, ${counted(changed.length + changes.more, "change")}`;
  return markup`<details class="step">
    <summary>${what}<span class="soft">${facts}</span><code>${command}</code></summary>
    <div class="inside">
      ${output === "" ? markup`<p class="soft">It printed nothing.</p>` : markup`<pre>${cutText(output)}</pre>`}
      ${programList(step)} ${changed.length === 0 ? undefined : pathList("Changed", changed)}
    </div>
  </details>`;
}

const MOST = 100;

function programList({ observed }: VetStep): Html | undefined {
  const lines = observed.processes.map(({ words }) => cutText(words.join(" "), 300));
  return lines.length === 0 ? undefined : pathList("Programs", lines);
}

const pathList = (name: string, lines: readonly string[]): Html =>
  markup`<h3>${name} (${lines.length})</h3>
    <ul class="paths">
      ${lines.slice(0, MOST).map((line) => markup`<li>${line}</li>`)}
    </ul>
    ${lines.length > MOST ? markup`<p class="soft">and ${lines.length - MOST} more: harness vet --json</p>` : undefined}`;

function linesCard(head: string, lines: readonly string[]): Html | undefined {
  if (lines.length === 0) return undefined;
  return markup`<section class="card plain">
    <h2>${head}</h2>
    <ul>
      ${lines.map((text) => markup`<li>${text}</li>`)}
    </ul>
  </section>`;
}
