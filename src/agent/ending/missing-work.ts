/** What an answer lacks, by the request and by what was done for it. Pure. */

import type { Intent } from "../../core/model-provider.ts";
import { headWithin } from "../../core/raw-data.ts";
import type { EndedCall } from "../../core/session.ts";
import { visibleLine } from "../../core/visible.ts";
import type { Demand } from "../next-reply.ts";
import {
  type NoAnswer,
  noAnswerIn,
  noAnswerNudge,
  noAnswerReason,
  saysOnlyDone,
  saysTestsPass,
} from "./answer-words.ts";
import type { Deeds, EndedCommand } from "./deeds.ts";

/** The request, and the kind of model that answers it. */
export interface RequestFacts {
  readonly intent: Intent;
  readonly request: string;
  /** A model with few parameters: it often mistakes a look for the change, and empty words for an answer. */
  readonly isWeak: boolean;
  /** The request only wants something to be run and to know the outcome, or only information about the repository. */
  readonly only?: "run" | "look" | undefined;
}

/** What the answer has to rest on: nothing that was done, for talk. */
type RequestKind = "run" | "look" | "change" | "talk";

function kindOf({ intent, only }: Pick<RequestFacts, "intent" | "only">): RequestKind {
  if (intent === "change") return only ?? "change";
  return intent === "repo" ? "look" : "talk";
}

/** What was answered, and what was done for it. */
interface Claim {
  readonly answer: string;
  readonly facts: RequestFacts;
  readonly deeds: DeedFacts;
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
  | "lastTests"
>;

interface Requirement {
  readonly of: RequestKind;
  /** It is required after a refusal, too. Others are not: a person can lift the refusal, and a nudge would hide it. */
  readonly evenRefused?: true;
  readonly lacks: (claim: Claim) => Lack | false | undefined;
}

/** What a request requires of its answer. The first row of its kind that finds something lacking decides. */
const REQUIRED: readonly Requirement[] = [
  { of: "look", lacks: ({ deeds }) => !deeds.isGrounded && "work" },
  { of: "look", lacks: ({ answer, facts }) => noAnswerIn(answer, facts.request) },
  { of: "look", lacks: ({ answer, facts }) => facts.isWeak && saysOnlyDone(answer) && "says done" },
  { of: "run", lacks: (claim) => !hasRun(claim) && "run" },
  // A report that the command failed is an answer, too; a report of success is one only if it succeeded.
  { of: "run", lacks: (claim) => !hasSucceeded(claim) && saysTestsPass(claim.answer) && "green" },
  { of: "run", lacks: ({ answer, facts }) => noAnswerIn(answer, facts.request) },
  { of: "change", lacks: (claim) => !hasChanged(claim) && !claim.deeds.worked && "work" },
  {
    of: "change",
    lacks: (claim) =>
      hasChanged(claim) || claim.deeds.actedBeside
        ? undefined
        : noAnswerIn(claim.answer, claim.facts.request),
  },
  { of: "change", evenRefused: true, lacks: (claim) => claim.facts.isWeak && !hasChanged(claim) && "change" },
];

export function missingForRequest(
  answer: string,
  facts: RequestFacts,
  deeds: DeedFacts,
  calls: readonly Pick<EndedCall, "refused">[],
): Lack | undefined {
  const kind = kindOf(facts);
  const isRefused = calls.some(({ refused }) => refused);
  for (const { of, evenRefused, lacks } of REQUIRED) {
    if (of !== kind || (isRefused && evenRefused !== true)) continue;
    const lack = lacks({ answer, facts, deeds });
    if (lack !== false && lack !== undefined) return lack;
  }
  return undefined;
}

const hasChanged = ({ facts: { isWeak }, deeds: { acted, changed } }: Claim): boolean =>
  isWeak ? acted : changed;

/** There may be nothing to run, and a model that is believed has seen that. */
const hasRun = ({ facts, deeds }: Claim): boolean =>
  commandForRequest(facts, deeds) !== undefined || (!facts.isWeak && deeds.worked);

const hasSucceeded = ({ facts, deeds }: Claim): boolean =>
  commandForRequest(facts, deeds)?.exitCode === 0 || deeds.lastTests?.exitCode === 0;

/** The request is about running tests. */
const OF_TESTS = /\b(?:(?:unit |e2e |all )*tests|test suite|test-suite|specs)\b/i;

const NAMES_A_LOOK = /\b(?:ls|cat|head|tail|grep|rg|find|tree|pwd|echo|printf|wc|stat|which|git)\b/;

/** The command that counts as run for a request to run something. */
export function commandForRequest(
  { request, isWeak }: Pick<RequestFacts, "request" | "isWeak">,
  { ran, ranTests, triedSince }: Pick<Deeds, "ran" | "ranTests" | "triedSince">,
): EndedCommand | undefined {
  const look = NAMES_A_LOOK.test(request) && triedSince !== "nothing" ? triedSince : undefined;
  return (isWeak && OF_TESTS.test(request) ? ranTests : ran) ?? look;
}

const NO_WORK: Readonly<Record<"change" | "look", string>> = {
  change:
    "Nothing was read or changed so far, and nobody is there to answer questions. A change was asked for: call a tool now. Only calls do anything; what stands in the text of a reply is not run.",
  look: "You looked at nothing of the repository, so this answer is a guess, and nobody is there to answer questions. Call a tool now to look (read_file, grep, list_dir), then answer from what you saw.",
};

export const TRY_IT =
  "You changed files and ran nothing since, and nothing else checks them. Run what you changed now, with bash, and look at what it prints; then mend it, or give your final answer.";

interface LackRow {
  /** For the model, once. */
  readonly text: string | ((wants: "change" | "look") => string);
  /** What its next reply has to be. */
  readonly demand: Demand | "words";
  /** Why the run ends if it is still lacking; undefined when it does not end for this. */
  readonly reason: (facts: RequestFacts, deeds: Deeds) => string | undefined;
}

const LACKS = {
  /** Any call that succeeded. */
  work: {
    text: (wants) => NO_WORK[wants],
    demand: "call",
    reason: ({ intent }) => (intent === "change" ? "nothing was done" : undefined),
  },
  change: {
    text: "You looked, and changed nothing. A change was asked for: make it now with a call. If none is needed, say why in your final answer.",
    demand: "act",
    reason: () => undefined,
  },
  /** A command after the last change. */
  trial: { text: TRY_IT, demand: "run", reason: () => undefined },
  /** The success of that command. */
  success: {
    text: "The last command that you ran failed, so you are not done. Mend what it shows and run it again; if the command itself was wrong, run a right one.",
    demand: "act",
    reason: (_, { triedSince }) =>
      triedSince === "nothing" ? "nothing was tried" : failedCommand(triedSince),
  },
  /** The run that was requested. */
  run: {
    text: "Nothing was run so far. Only calls do anything; what stands in the text of a reply is not run. Call bash now with the command that was asked for, then say what it printed and whether it succeeded.",
    demand: "run",
    reason: (_, { ran, worked }) =>
      ran === undefined ? (worked ? "nothing was run" : "nothing was done") : "no tests were run",
  },
  /** A run that confirms what the answer says about tests. */
  green: {
    text: "Your answer says that tests pass, but the last command that you ran failed. Say what really came of it; that they fail, or cannot be run here, is an answer.",
    demand: "words",
    reason: (_, { ran }) => `the answer says that tests pass, but ${failedCommand(ran)}`,
  },
} satisfies Readonly<Record<string, LackRow>>;

/** What an answer lacks: one of these, or the answer itself. */
export type Lack = keyof typeof LACKS | NoAnswer;

const isRow = (lack: Lack): lack is keyof typeof LACKS => Object.hasOwn(LACKS, lack);

const noAnswerRow = (form: NoAnswer): LackRow => ({
  text: noAnswerNudge(form),
  demand: "act",
  reason: (facts, { ran }) => {
    const what = kindOf(facts) === "change" ? "nothing was changed" : "there is no answer";
    const failed = facts.only === "run" && ran?.exitCode !== 0 ? `, and ${failedCommand(ran)}` : "";
    return `${what}: ${noAnswerReason(form)}${failed}`;
  },
});

/** What speaks against an answer. */
export interface Objection {
  /** For the model, while a turn is left. */
  readonly told?: {
    readonly text: () => string;
    /** What its next reply has to be: a call, or words. */
    readonly demand: Demand | "words";
    /** It is told only once under this name. */
    readonly once?: string;
  };
  /** Why the run ends otherwise; left out when it does not end for this. */
  readonly reason?: string | undefined;
}

/** What the model is told about a lack, and how the run ends if it is told no more. */
export function objectionTo(lack: Lack, facts: RequestFacts, deeds: Deeds): Objection {
  const { text, demand, reason }: LackRow = isRow(lack) ? LACKS[lack] : noAnswerRow(lack);
  // A model that was only asked to look is never told that a change was asked for.
  const wants = facts.intent === "change" && facts.only !== "look" ? "change" : "look";
  return {
    told: {
      text: () => (typeof text === "string" ? text : text(wants)),
      demand: demand === "act" && wants === "look" ? "call" : demand,
      once: isRow(lack) ? lack : "answer",
    },
    reason: reason(facts, deeds),
  };
}

/** Most bytes of a command or an output that are quoted. */
const MAX_QUOTED = 300;

/** On one line, between backticks. */
export const quotedText = (text: string): string => `\`${visibleLine(headWithin(text, MAX_QUOTED))}\``;

const failedCommand = (ran: EndedCommand | undefined): string =>
  ran === undefined
    ? "nothing was run"
    : `the last command that the model ran failed (exit ${ran.exitCode}): ${quotedText(ran.command)}`;
