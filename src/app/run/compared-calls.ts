import type { RecordedCall } from "./recorded-conversation.ts";
import { firstDifference, type Rerun } from "./replay-run.ts";

/** What a call of the past came to then, beside what it comes to now. */

export const isSameCall = (one: RecordedCall, other: RecordedCall): boolean =>
  one.agent === other.agent &&
  one.tool === other.tool &&
  JSON.stringify(one.args) === JSON.stringify(other.args);

/** What a replay has otherwise than the request had, which tells why its calls may come to something else. */
export interface Otherwise {
  readonly network: boolean;
  readonly fullAccess: boolean;
  readonly ownWord: boolean;
}

/** A call of then beside what it came to now. */
export function compared(then: RecordedCall, now: RecordedCall | undefined, otherwise: Otherwise): Rerun {
  const about = { call: then.call, command: shown(then) };
  const [before, after] = [ended(then), now === undefined ? null : ended(now)];
  const not = { ...about, outcome: "not run", then: before, now: null, difference: null } as const;
  if (now === undefined) return { ...not, reason: "the conversation did not come to it" };
  const changed = verdictChange(then, now);
  const difference = differenceOf(then, now);
  if (changed === "" && difference === null && isSameEnd(then, now))
    return { ...about, outcome: "same", then: before, now: after, difference, reason: "" };
  const reason = [changed, why(then, now, otherwise)].filter(Boolean).join("; ");
  return { ...about, outcome: "differs", then: before, now: after, difference, reason };
}

/** How far a command came that somebody ended is of that moment alone; and one that was killed has no end to be compared. */
const wasEnded = ({ end: then }: RecordedCall, { end: now }: RecordedCall): boolean =>
  then === null || (then.kind === "cancelled" && now?.kind === "cancelled");

const differenceOf = (then: RecordedCall, now: RecordedCall): Rerun["difference"] =>
  wasEnded(then, now)
    ? null
    : (firstDifference(withoutNames(then.end?.text), withoutNames(now.end?.text)) ?? null);

const isSameEnd = (then: RecordedCall, now: RecordedCall): boolean =>
  wasEnded(then, now) || (then.end?.kind === now.end?.kind && then.end?.exit_code === now.end?.exit_code);

function verdictChange({ verdict: then }: RecordedCall, { verdict: now }: RecordedCall): string {
  if (then === null || now === null || (then.decision === now.decision && then.runs === now.runs)) return "";
  const words = ({ decision, runs }: typeof then): string => `${decision}, ${runs ? "run" : "not run"}`;
  return `judged otherwise: then ${words(then)}; now ${words(now)}`;
}

function why({ verdict: then }: RecordedCall, { verdict: now }: RecordedCall, otherwise: Otherwise): string {
  if (then?.by === "person" && then.runs && now?.runs === false && !otherwise.ownWord)
    return "a person's yes that stands in a file allows nothing";
  if (otherwise.fullAccess) return "it had full access then, and a replay has workspace-write";
  return otherwise.network ? "it could reach a network then, and a replay has none" : "";
}

/** The names of whole outputs are of one session alone. They stand near the word: a bundle's texts are anybody's. */
export const withoutNames = (text = ""): string =>
  text.replaceAll(/\b(show_full\b[^\n]{0,200}?)\b[a-z0-9]{6,}\b/g, "$1…");

export const ended = ({ end }: RecordedCall): Rerun["then"] =>
  end === null ? null : { kind: end.kind, exit_code: end.exit_code };

export function shown({ tool, args }: RecordedCall): string {
  const { command, path: file } = args;
  const about =
    typeof command === "string" ? command : typeof file === "string" ? file : JSON.stringify(args);
  return tool === "bash" ? about : `${tool} ${about}`;
}
