import { callsOf, type RunReport } from "../report/report.ts";
import { type Html, markup } from "./escape.ts";

/** What was refused, before anything else. */
export function refusalsCard(runs: readonly RunReport[]): Html | undefined {
  const refusals = runs.flatMap((run) => run.refusals);
  if (refusals.length === 0) return undefined;
  return markup`<section class="card bad" id="refused">
    <h2>Refused (${refusals.length})</h2>
    <ul>
      ${refusals.map(
        ({ tool, target, decision, rule, reason }) =>
          markup`<li>
            <strong>${tool}</strong> <code>${target}</code><br />
            <span class="bad">${decision === "deny" ? "denied" : "asked, and nobody let it run"}</span>:
            ${reason} <span class="soft">(${rule})</span>
          </li>`,
      )}
    </ul>
  </section>`;
}

/** Limits that were hit, and hosts that were tried. */
export function limitsCard(runs: readonly RunReport[]): Html | undefined {
  const limits = runs.flatMap((run) => run.limits);
  const hosts = runs.flatMap((run) => run.hosts.map((host) => ({ ...host, how: howOf(run, host.call) })));
  if (limits.length + hosts.length === 0) return undefined;
  return markup`<section class="card held">
    ${
      limits.length === 0
        ? undefined
        : markup`<h2>Limits hit (${limits.length})</h2>
            <ul>
              ${limits.map((limit) => markup`<li>${limit}</li>`)}
            </ul>`
    }
    ${
      hosts.length === 0
        ? undefined
        : markup`<h2>Hosts tried (${hosts.length})</h2>
            <ul>
              ${hosts.map(({ host, ran, how }) => markup`<li><code>${host}</code>: ${ran ? `the call was run and ended ${how}` : "the call was refused"}</li>`)}
            </ul>`
    }
  </section>`;
}

const howOf = (run: RunReport, name: string): string => {
  const end = callsOf(run).find(({ call }) => call === name)?.end;
  if (end === undefined || end === null) return "never";
  return end.cause === null ? end.kind : `${end.kind} (${end.cause})`;
};
