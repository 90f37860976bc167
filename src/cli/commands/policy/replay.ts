import { Flags } from "@oclif/core";
import { judgedAgain, type PastVerdicts } from "../../../app/project/policy-commands.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { DURATION_FORM, parseDuration } from "../../../core/wording.ts";
import { changedVerdict } from "../../../render/policy-lines.ts";
import { stdout } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { judgingFor } from "../../settings.ts";

export class PolicyReplay extends HarnessCommand {
  static override summary = "Judge the commands of past sessions again, and list the verdicts that change.";
  static override description =
    "Each command is judged for the same workspace and in the same mode as before, under the present rules. Nothing is run.";
  static override flags = {
    since: Flags.string({
      description: "judge only later commands; an age such as 2h or 7d, or a date",
      helpValue: "TIME",
    }),
  };
  static override examples = ["harness policy replay", "harness policy replay --since 7d --json"];

  async run(): Promise<void> {
    const { flags } = await this.parse(PolicyReplay);
    const since = flags.since === undefined ? Number.NEGATIVE_INFINITY : sinceMoment(flags.since, Date.now());
    const { counts, changed, judged } = await judgedAgain(
      this.host,
      since,
      await judgingFor(this.host, flags),
    );
    const total = { judged: 0, changed: 0 };
    for await (const each of changed) {
      total.changed += 1;
      if (flags.json) answerJson(each);
      else answer(`${changedVerdict(each, stdout)}\n`);
    }
    total.judged = judged();
    if (flags.json) answerJson({ summary: { ...total, ...counts } });
    else answer(summary(total, counts));
  }
}

function summary(
  total: { readonly judged: number; readonly changed: number },
  counts: PastVerdicts["counts"],
): string {
  const { sessions, skipped, unreadable, torn } = counts;
  if (sessions === 0) return "there are no sessions yet";
  const aside = [
    [skipped, "other lines skipped"],
    [unreadable, "lines that are not JSON"],
    [torn, "files with an incomplete last line"],
  ] as const;
  const sums = aside.flatMap(([count, what]) => (count === 0 ? [] : [`${what}: ${count}`]));
  const { judged, changed } = total;
  return [
    `sessions: ${sessions}; commands judged: ${judged}; verdicts that change: ${changed}`,
    ...sums,
  ].join("; ");
}

const DAY_MS = 86_400_000;

/** The moment that `--since` names: a time before now, or a date. */
export function sinceMoment(text: string, now: number): number {
  const days = /^(\d{1,6}(?:\.\d+)?)d$/i.exec(text.trim())?.[1];
  const ago = days === undefined ? parseDuration(text) : Number(days) * DAY_MS;
  if (ago !== undefined) return now - ago;
  const date = /^\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?$/.test(text.trim())
    ? Date.parse(text)
    : Number.NaN;
  if (!Number.isNaN(date)) return date;
  throw new HarnessError(
    EXIT.usage,
    `--since ${text}: expected ${DURATION_FORM}, 7d, or a date such as 2026-01-31`,
    "harness policy replay --since 7d",
  );
}
