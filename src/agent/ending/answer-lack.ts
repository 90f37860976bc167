import { headWithin } from "../../core/text/bytes.ts";
import { visibleLine } from "../../core/text/visible.ts";
import type { Intent } from "../../core/messages.ts";
import type { EndedCall } from "../../core/session.ts";
import type { Demand } from "../next-reply.ts";
import { saysTestsPass } from "./claims.ts";
import type { Deeds, EndedCommand } from "./deeds.ts";
import { type NoAnswer, noAnswerIn, noAnswerNudge, noAnswerReason, saysOnlyDone } from "./no-answer.ts";

/** Finds what an answer lacks, what the model is told about it, and how the run ends if it stays so. Pure. */

/** How an answer is judged by what was done for it. */
export type Earned =
  | { readonly kind: "earned" }
  /** For the model: told once. */
  | { readonly kind: "nudge"; readonly text: string; readonly demand: Demand | "words" }
  | { readonly kind: "nothing_done"; readonly reason: string };

export const EARNED: Earned = { kind: "earned" };

/** The request, and the kind of model that answers it. */
export interface RequestFacts {
  readonly intent: Intent;
  readonly request: string;
  /** A model with few parameters: it often mistakes a look for the change, and empty words for an answer. */
  readonly isWeak: boolean;
  /** The request only wants something to be run, and to know the outcome. */
  readonly runs?: boolean;
  /** The request only wants information about the repository. */
  readonly looks?: boolean;
}

/**
 * What an answer lacks: any work, the answer itself, the requested change, a trial of the change, success of that
 * trial, a run when only a run was requested, or a run that confirms what the answer says about tests.
 */
export type Lack = "work" | NoAnswer | "change" | "trial" | "success" | "run" | "green";

/** If a call was refused, the refusal is the cause. A person can lift it, and a nudge would hide it. */
export function lackOf(
  answer: string,
  asked: RequestFacts,
  deeds: DeedFacts,
  calls: readonly Pick<EndedCall, "refused">[],
): Lack | undefined {
  const isRefused = calls.some(({ refused }) => refused);
  if (asked.intent === "change" && asked.runs === true) return lackOfRun(answer, asked, deeds, isRefused);
  const isLook = asked.intent === "repo" || (asked.intent === "change" && asked.looks === true);
  if (asked.intent === "change" && !isLook) return lackOfChange(answer, asked, deeds, isRefused);
  if (!isLook || isRefused) return undefined;
  if (!deeds.isGrounded) return "work";
  const none = noAnswerIn(answer, asked.request);
  return none ?? (asked.isWeak && saysOnlyDone(answer) ? "says done" : undefined);
}

/** The request is about running tests. */
const OF_TESTS = /\b(?:(?:unit |e2e |all )*tests|test suite|test-suite|specs)\b/i;

const NAMES_A_LOOK = /\b(?:ls|cat|head|tail|grep|rg|find|tree|pwd|echo|printf|wc|stat|which|git)\b/;

/** The command that counts as run for a request to run something. */
export function ranFor(
  { request, isWeak }: Pick<RequestFacts, "request" | "isWeak">,
  { ran, ranTests, triedSince }: Pick<Deeds, "ran" | "ranTests" | "triedSince">,
): EndedCommand | undefined {
  const look = NAMES_A_LOOK.test(request) && triedSince !== "nothing" ? triedSince : undefined;
  return (isWeak && OF_TESTS.test(request) ? ranTests : ran) ?? look;
}

/** A report that the command failed is an answer, too; a report of success is one only if it succeeded. */
function lackOfRun(
  answer: string,
  asked: RequestFacts,
  deeds: DeedFacts,
  isRefused: boolean,
): Lack | undefined {
  const { worked, greenTests } = deeds;
  if (isRefused) return undefined;
  const ran = ranFor(asked, deeds);
  if (ran === undefined && (asked.isWeak || !worked)) return "run";
  if (ran?.exitCode !== 0 && !greenTests && saysTestsPass(answer)) return "green";
  return noAnswerIn(answer, asked.request);
}

function lackOfChange(
  answer: string,
  { request, isWeak }: RequestFacts,
  { worked, changed, acted, actedBeside }: DeedFacts,
  isRefused: boolean,
): Lack | undefined {
  if (isWeak ? acted : changed) return undefined;
  if (!isRefused && !worked) return "work";
  const none = isRefused || actedBeside ? undefined : noAnswerIn(answer, request);
  return none ?? (isWeak ? "change" : undefined);
}

type DeedFacts = Pick<
  Deeds,
  | "worked"
  | "isGrounded"
  | "changed"
  | "acted"
  | "actedBeside"
  | "ran"
  | "ranTests"
  | "triedSince"
  | "greenTests"
>;

const NUDGES: Readonly<Record<"change" | "repo", string>> = {
  change:
    "Nothing was read or changed so far, and nobody is there to answer questions. A change was asked for: call a tool now. Only calls do anything; what stands in the text of a reply is not run.",
  repo: "You looked at nothing of the repository, so this answer is a guess, and nobody is there to answer questions. Call a tool now to look (read_file, grep, list_dir), then answer from what you saw.",
};

const ONLY_LOOKED =
  "You looked, and changed nothing. A change was asked for: make it now with a call. If none is needed, say why in your final answer.";

/** How the run ends if its answer still lacks this. */
export function endWith(
  lack: Lack,
  { intent, runs, looks }: { readonly intent: Intent; readonly runs: boolean; readonly looks: boolean },
  deeds: Deeds,
): Earned {
  switch (lack) {
    case "change":
    case "trial":
      return EARNED;
    case "success":
      return { kind: "nothing_done", reason: failedTrial(deeds) };
    case "run":
      return { kind: "nothing_done", reason: notRun(deeds) };
    case "green":
      return { kind: "nothing_done", reason: `the answer says that tests pass, but ${failedRun(deeds.ran)}` };
    case "work":
      return intent === "change" ? { kind: "nothing_done", reason: "nothing was done" } : EARNED;
    default: {
      const what = intent === "change" && !runs && !looks ? "nothing was changed" : "there is no answer";
      const failed = runs && deeds.ran?.exitCode !== 0 ? `, and ${failedRun(deeds.ran)}` : "";
      return { kind: "nothing_done", reason: `${what}: ${noAnswerReason(lack)}${failed}` };
    }
  }
}

export function demandOf(lack: Lack, intent: Intent): Demand | "words" {
  if (lack === "green") return "words";
  if (lack === "trial" || lack === "run") return "run";
  return intent === "change" && lack !== "work" ? "act" : "call";
}

export const TRY_IT =
  "You changed files and ran nothing since, and nothing else checks them. Run what you changed now, with bash, and look at what it prints; then mend it, or give your final answer.";

const RUN_IT =
  "Nothing was run so far. Only calls do anything; what stands in the text of a reply is not run. Call bash now with the command that was asked for, then say what it printed and whether it succeeded.";
const NOT_GREEN =
  "Your answer says that tests pass, but the last command that you ran failed. Say what really came of it; that they fail, or cannot be run here, is an answer.";

const STILL_FAILS =
  "The last command that you ran failed, so you are not done. Mend what it shows and run it again; if the command itself was wrong, run a right one.";
/** Most bytes of a command that are quoted. */
export const NAMED = 300;

const notRun = ({ ran, worked }: Deeds): string =>
  ran === undefined ? (worked ? "nothing was run" : "nothing was done") : "no tests were run";

const failedTrial = ({ triedSince }: Deeds): string =>
  triedSince === "nothing" ? "nothing was tried" : failedRun(triedSince);

const failedRun = (ran: EndedCommand | undefined): string =>
  ran === undefined
    ? "nothing was run"
    : `the last command that the model ran failed (exit ${ran.exitCode}): \`${visibleLine(headWithin(ran.command, NAMED))}\``;

export function nudgeOf(lack: Lack, intent: Intent): string {
  switch (lack) {
    case "work":
      return NUDGES[intent === "change" ? "change" : "repo"];
    case "change":
      return ONLY_LOOKED;
    case "trial":
      return TRY_IT;
    case "success":
      return STILL_FAILS;
    case "run":
      return RUN_IT;
    case "green":
      return NOT_GREEN;
    default:
      return noAnswerNudge(lack);
  }
}
