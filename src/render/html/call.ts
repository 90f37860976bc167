import { formatDuration } from "../../core/bounds.ts";
import type { CallReport } from "../report/report.ts";
import { endWords, verdictWords } from "../report/words.ts";
import { targetOf } from "../tty/call-target.ts";
import { cutText } from "./cut.ts";
import { type Html, markup } from "./escape.ts";
import { pill } from "./pill.ts";

const LONGEST_HEAD = 400;

/** One call: in a line what it was and what came of it, and folded away why, with what, and what it said. */
export function callDetails(call: CallReport): Html {
  const { tool, args, end, verdict } = call;
  const target = cutText(targetOf(args), LONGEST_HEAD);
  const time = end === null || end.kind === "denied" || end.kind === "invalid" ? "" : formatDuration(end.ms);
  return markup`<details>
    <summary>
      <strong>${tool}</strong>
      ${pill(verdictWords(call))} ${end?.kind === "denied" ? undefined : pill(endWords(call))}
      <span class="soft">${time}</span>
      ${target === "" ? undefined : markup`<code>${target}</code>`}
    </summary>
    <div class="inside">
      ${verdict === null || verdict.rules.length === 0 ? undefined : rulesOf(verdict)} ${argsOf(call, target)}
      ${
        end === null || end.text === ""
          ? undefined
          : markup`<p class="soft">
                What the model was told${end.full === null ? "" : ` (all of it is kept as ${end.full})`}
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
        part === "" || part === command ? undefined : markup`: <code>${cutText(part, LONGEST_HEAD)}</code>`;
      return markup`<li>${reason} <span class="soft">(${id})</span>${about}</li>`;
    })}
  </ul>`;
}

/** As they were given, but for what the summary has shown whole. */
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
