/** What pages are made of: HTML in which every text is escaped, and the cards that show a run. */
import type { RunChanges } from "../core/events.ts";
import { countsOf, UNSEEN } from "../core/ports.ts";
import { visible } from "../core/visible.ts";
import { formatDuration, plural } from "../core/wording.ts";
import {
  besideWords,
  type CallReport,
  callsOf,
  costWords,
  endWords,
  MAX_REQUESTS,
  measured,
  type MeasuredRequest,
  momentWords,
  packageWords,
  partsIn,
  peakWords,
  planWords,
  PROMPT_PARTS,
  promptSize,
  type RequestReport,
  requestWords,
  type RunEnd,
  type RunReport,
  statusWords,
  type ReportStep,
  tokenWords,
  type TurnReport,
  verdictWords,
  type Worded,
} from "./report-form.ts";
import { targetOf } from "./tty/call-lines.ts";

/** Text that is already HTML. Only `markup` creates it, so text from elsewhere is never taken for HTML. */
export class Html {
  readonly #text: string;

  constructor(parts: TemplateStringsArray, values: readonly Value[]) {
    this.#text = parts.map((part, at) => part + htmlOf(values[at])).join("");
  }

  toString(): string {
    return this.#text;
  }
}

type Value = string | number | Html | readonly (string | Html)[] | undefined;

/** Values are escaped for text and for quoted attributes, and control and direction characters are made visible. */
export const markup = (parts: TemplateStringsArray, ...values: readonly Value[]): Html =>
  new Html(parts, values);

function htmlOf(value: Value): string {
  if (value === undefined) return "";
  if (value instanceof Html) return value.toString();
  if (typeof value === "object") return value.map(htmlOf).join("");
  return escaped(String(value));
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "`": "&#96;",
};

const escaped = (text: string): string =>
  visible(text.toWellFormed()).replaceAll(/[&<>"'`]/g, (character) => ENTITIES[character] ?? "");

/** Texts are shortened because a page may be read on a phone; the JSON report has them whole. */
const MAX_TEXT = 12_000;

/** Returns the beginning and the end of a text, with the length of what was left out between them. */
export function cutText(text: string, longest = MAX_TEXT): string {
  if (text.length <= longest) return text;
  const half = Math.floor(longest / 2);
  const head = text.slice(0, half).toWellFormed();
  const tail = text.slice(-half).toWellFormed();
  return `${head}\n… ${text.length - 2 * half} characters are left out; harness report --json has them …\n${tail}`;
}

/** The colour only repeats the words. */
export const pill = ({ tone, text }: Worded): Html => markup`<span class="pill ${tone}">${text}</span>`;

interface Place {
  readonly number: number;
  readonly of: number;
}

/** The request, its result, its cost and its outcome. */
export function runCards(run: RunReport, place: Place): Html {
  const { end, task } = run;
  const heading = place.of === 1 ? "Task" : `Run ${place.number} of ${place.of}: task`;
  return markup`<section class="card">
      <h2>${heading}</h2>
      <p class="task">${cutText(task)}</p>
      <p class="soft">
        ${momentWords(run.started)} · ${run.mode} · ${run.model}
        (${run.provider})${run.resumed ? " · continues the session" : ""}
      </p>
    </section>
    <section class="card ${statusWords(run).tone}">
      <h2>Result</h2>
      <p>
        ${pill(statusWords(run))} <span class="soft">${end === null ? "" : `exit ${end.exit_code}`}</span>
      </p>
      ${end === null || end.reason === "" ? undefined : markup`<p>${end.reason}</p>`}
      ${end === null || end.answer === null ? undefined : markup`<p class="said">${cutText(end.answer)}</p>`}
      ${costs(run)}
    </section>
    ${requestsCard(run.requests)} ${planCard(run)}
    ${end === null ? undefined : changesCard(end.changes, end.tool_calls)}
    ${end === null ? undefined : besideCard(end)} ${end === null ? undefined : installedCard(end)}
    <section class="card">
      <h2>What happened</h2>
      ${timeBar(run)} ${run.turns.map((turn) => turnSection(turn, run.started))}
    </section>`;
}

/** The prompts of requests as bars, scaled to the largest one; undefined if none is known. */
function requestsCard(requests: readonly RequestReport[]): Html | undefined {
  const all = measured(requests);
  if (all.length === 0) return undefined;
  const largest = Math.max(1, ...all.map(({ prompt }) => promptSize(prompt)));
  return markup`<section class="card">
    <h2>Requests (${all.length})</h2>
    <p class="soft">${PROMPT_PARTS.map((part) => markup`<span class="key part-${part}">${part}</span>`)}</p>
    ${all.slice(0, MAX_REQUESTS).map((each) => requestBar(each, largest))}
    ${all.length > MAX_REQUESTS ? markup`<p class="soft">and ${all.length - MAX_REQUESTS} more: harness report --json</p>` : undefined}
  </section>`;
}

const requestBar = (request: MeasuredRequest, largest: number): Html =>
  markup`<p class="soft">${requestWords(request)}</p>
    <div class="bar" title="${partsIn(request.prompt).join(", ")}">
      ${PROMPT_PARTS.map(
        (part) =>
          markup`<span class="part-${part}" style="width:${((100 * request.prompt[part]) / largest).toFixed(1)}%"></span>`,
      )}
    </div>`;

/** The model's plan. */
function planCard({ plan }: RunReport): Html | undefined {
  if (plan.length === 0) return undefined;
  const { counts, steps } = planWords(plan);
  return markup`<section class="card">
    <h2>Plan</h2>
    <p class="soft">${counts}</p>
    <ul>
      ${steps.map(({ text, word }) => markup`<li>${pill(word)} ${text}</li>`)}
    </ul>
  </section>`;
}

function costs({ started, last, end, turns, price }: RunReport): Html {
  const usage = end?.usage;
  const cost = usage?.cost ?? null;
  const facts: readonly (readonly [string, string])[] = [
    ["Time", formatDuration(last - started)],
    ["Turns", String(end?.turns ?? turns.filter(({ turn }) => turn > 0).length)],
    ["Calls", end === null ? "unknown" : String(end.tool_calls)],
    ["Tokens", usage === undefined ? "unknown" : tokenWords(usage)],
    ["Cost", costWords(cost, price)],
  ];
  return markup`<dl class="facts">
    ${facts.map(
      ([name, value]) =>
        markup`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

const MAX_PATHS = 500;

function changesCard(changes: RunChanges | null, calls: number): Html | undefined {
  if (changes === null)
    return calls === 0
      ? undefined
      : markup`<section class="card held">
          <h2>Files</h2>
          <p>Unknown: the box was lost.</p>
        </section>`;
  const { added, modified, deleted, ignored, incomplete } = changes;
  const paths = [
    ...added.map((path) => ["+", "good", path] as const),
    ...modified.map((path) => ["~", "held", path] as const),
    ...deleted.map((path) => ["-", "bad", path] as const),
  ];
  const counts = countsOf(changes);
  const more = counts.added + counts.modified + counts.deleted - Math.min(paths.length, MAX_PATHS);
  const words = [
    `${counts.added} added, ${counts.modified} modified, ${counts.deleted} deleted`,
    ...(ignored > 0 ? [`and ${plural(ignored, "ignored file")}`] : []),
    ...(incomplete === true ? [UNSEEN] : []),
  ].join(", ");
  return markup`<section class="card">
    <h2>Files</h2>
    <p class="soft">${words}</p>
    <ul class="paths">
      ${paths
        .slice(0, MAX_PATHS)
        .map(([mark, tone, path]) => markup`<li><span class="${tone}">${mark}</span> ${path}</li>`)}
    </ul>
    ${more > 0 ? markup`<p class="soft">and ${more} more: harness report --json</p>` : undefined}
  </section>`;
}

/** Changes in the workspace beside the calls, and the paths to check. */
function besideCard(end: RunEnd): Html | undefined {
  const { moved, commits, looks, recorded } = besideWords(end);
  const lists = [
    ["Made in the box and moved out of the workspace", moved],
    ["Committed for commands in the box", commits],
    ["Check these before you run anything there", looks],
    ["Recorded: rules and hosts that would have been enough", recorded],
  ] as const;
  const filled = lists.filter(([, lines]) => lines.length > 0);
  if (filled.length === 0) return undefined;
  return markup`<section class="card held">
    ${filled.map(
      ([name, lines]) =>
        markup`<h2>${name} (${lines.length})</h2>
          <ul class="paths">
            ${lines.slice(0, MAX_PATHS).map((line) => markup`<li>${line}</li>`)}
          </ul>
          ${lines.length > MAX_PATHS ? markup`<p class="soft">and ${lines.length - MAX_PATHS} more: harness report --json</p>` : undefined}`,
    )}
  </section>`;
}

function installedCard(end: RunEnd): Html | undefined {
  const [counts, ...packages] = packageWords(end);
  if (counts === undefined) return undefined;
  return markup`<section class="card">
    <h2>Installed</h2>
    <p class="soft">${counts}</p>
    <ul class="paths">
      ${packages.map((line) => markup`<li>${line}</li>`)}
    </ul>
  </section>`;
}

/** How the time was spent. Calls that ran in parallel are each counted in full. */
function timeBar(run: RunReport): Html {
  const all = Math.max(1, run.last - run.started);
  const replyTimes = run.turns.flatMap(({ steps }) =>
    steps.map((step) => (step.kind === "said" ? step.ms : 0)),
  );
  const model = sum(replyTimes);
  const calls = sum(callsOf(run).map(({ end }) => end?.ms ?? 0));
  const scale = 100 / Math.max(all, model + calls);
  return markup`<div class="bar">
      <span class="model" style="width:${(model * scale).toFixed(1)}%"></span
      ><span class="calls" style="width:${(calls * scale).toFixed(1)}%"></span>
    </div>
    <p class="soft">
      <span class="key model">model ${formatDuration(model)}</span
      ><span class="key calls">calls ${formatDuration(calls)}</span
      ><span class="key">other ${formatDuration(Math.max(0, all - model - calls))}</span>
    </p>`;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function turnSection({ turn, at, steps }: TurnReport, started: number): Html {
  return markup`<section class="turn">
    <header>
      <h3>${turn === 0 ? "Before the first turn" : `Turn ${turn}`}</h3>
      <span class="soft">+${formatDuration(at - started)}</span>
    </header>
    ${steps.map((step) => markup`<div class="step${step.agent === null ? "" : " child"}">${stepOf(step)}</div>`)}
  </section>`;
}

const TONES = { quiet: "soft", warning: "held", error: "bad" } as const;

function stepOf(step: ReportStep): Html {
  switch (step.kind) {
    case "call":
      return callDetails(step);
    case "remark":
      return markup`<p class="${TONES[step.tone]}">${step.text}</p>`;
    case "said":
      return markup`${step.text === "" ? undefined : markup`<p class="said">${cutText(step.text)}</p>`}
        <p class="soft">model: ${formatDuration(step.ms)}, ${tokenWords(step.usage)}</p>`;
  }
}

const MAX_HEAD = 400;

/** One call: a summary line with its result; reasons, arguments and output are folded away. */
function callDetails(call: CallReport): Html {
  const { tool, args, end, verdict } = call;
  const target = cutText(targetOf(args), MAX_HEAD);
  const time = end === null || end.kind === "denied" || end.kind === "invalid" ? "" : formatDuration(end.ms);
  return markup`<details>
    <summary>
      <strong>${tool}</strong>
      ${pill(verdictWords(call))} ${end?.kind === "denied" ? undefined : pill(endWords(call))}
      <span class="soft">${time}${peakWords(end)}</span>
      ${target === "" ? undefined : markup`<code>${target}</code>`}
    </summary>
    <div class="inside">
      ${verdict === null || verdict.rules.length === 0 ? undefined : rulesOf(verdict)} ${argsOf(call, target)}
      ${
        end === null || end.text === ""
          ? undefined
          : markup`<p class="soft">
                What the model received${end.full === null ? "" : ` (the full output is kept as ${end.full})`}
              </p>
              <pre>${cutText(end.text)}</pre>`
      }
    </div>
  </details>`;
}

function rulesOf({ rules, judged }: NonNullable<CallReport["verdict"]>): Html {
  const [command] = judged?.commands ?? [];
  return markup`<ul>
    ${rules.map(({ id, reason, span: [from, to] }) => {
      const part = command?.slice(from, to) ?? "";
      const about =
        part === "" || part === command ? undefined : markup`: <code>${cutText(part, MAX_HEAD)}</code>`;
      return markup`<li>${reason} <span class="soft">(${id})</span>${about}</li>`;
    })}
  </ul>`;
}

/** The arguments as given, without what the summary line already shows in full. */
function argsOf({ args }: CallReport, shown: string): Html {
  const rows = Object.entries(args)
    .filter(([, value]) => value !== shown)
    .map(
      ([name, value]) =>
        markup`<p class="soft">${name}</p>
          <pre>${cutText(typeof value === "string" ? value : JSON.stringify(value, null, 2))}</pre>`,
    );
  return markup`${rows}`;
}
