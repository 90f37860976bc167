import { type Decision, type MatchedRule, type Mode, strictest, VERDICTS } from "../../core/decision.ts";
import { type Finding, findingsOf, isContained, whyUnreadable } from "./findings.ts";
import { type LinkFacts, readingsOf } from "./readings.ts";
import type { Op, Surroundings } from "./place.ts";
import { ruledFindings } from "../rules/path-findings.ts";
import type { UserRules } from "../rules/rule.ts";

export interface PathContext extends Surroundings {
  readonly mode: Mode;
  readonly links?: LinkFacts;
  /** Of the user, and of a trusted project. */
  readonly rules?: UserRules;
}

export interface PathDecision extends Decision {
  /** As written, absolute and resolved; as it was given when it could not be read. */
  readonly path: string;
}

/** For the file tools: there, the mode is the consent to writes in the workspace. */
export function decidePath(path: string, op: Op, context: PathContext): PathDecision {
  const unreadable = whyUnreadable(path);
  if (unreadable !== undefined)
    return { decision: "deny", contained: false, rules: rulesOf([unreadable], path), path };
  const readings = readingsOf(path, op, context);
  const { rules = [], mode } = context;
  const findings = readings.flatMap(({ place, note }) => {
    const found = findingsOf(place, op, mode).map((each) => ({ ...each, reason: each.reason + note }));
    return ruledFindings(found, rules, { path: place.path, op, mode, around: context });
  });
  const verdict = strictest(findings.map((each) => each.verdict));
  return {
    decision: verdict === "ask" && context.mode === "danger-full-access" ? "allow" : verdict,
    contained: readings.every(({ place }) => isContained(place, op)),
    rules: rulesOf(findings, path),
    path: readings[0].place.path,
  };
}

/** What speaks against it, strictest first; when nothing does, what speaks for it. */
function rulesOf(findings: readonly Finding[], path: string): readonly MatchedRule[] {
  const against = findings.filter(({ verdict }) => verdict !== "allow");
  const told = against.length > 0 ? against : findings.slice(0, 1);
  const once = new Map(told.map((each) => [`${each.id} ${each.reason}`, each]));
  return [...once.values()]
    .toSorted((a, b) => rank(b) - rank(a))
    .map(({ id, reason }) => ({ id, reason, span: [0, path.length] }));
}

const rank = ({ verdict }: Finding): number => VERDICTS.indexOf(verdict);
