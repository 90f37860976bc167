import type { Mode } from "../../core/decision.ts";
import type { Finding } from "../paths/findings.ts";
import type { Op } from "../paths/place.ts";
import type { Around } from "./match.ts";
import { mayFit, surelyFits } from "./path-pattern.ts";
import type { UserRule, UserRules } from "./rule.ts";

export interface PathAsked {
  readonly path: string;
  readonly op: Op;
  readonly mode: Mode;
  readonly around: Around;
}

/** Asks that a rule may take away. The others say that nobody knows where it leads, or that the mode forbids it. */
const COVERED: ReadonlySet<string> = new Set(["path.system", "path.home", "path.outside", "path.secret"]);

const covers = ({ id, verdict }: Finding): boolean => verdict === "ask" && COVERED.has(id);

/** The findings of one place with those of users: rules about paths alone, and about the operation. */
export function ruledFindings(
  findings: readonly Finding[],
  rules: UserRules,
  asked: PathAsked,
): readonly Finding[] {
  const told = rules.filter((rule) => concerns(rule, asked));
  if (told.length === 0) return findings;
  const allow = told.find(({ decision }) => decision === "allow");
  const left =
    allow === undefined ? findings : [findingOf(allow), ...findings.filter((each) => !covers(each))];
  return [...left, ...told.filter(({ decision }) => decision !== "allow").map(findingOf)];
}

const findingOf = ({ id, reason, decision }: UserRule): Finding => ({ id, reason, verdict: decision });

function concerns(
  { prefix, arg, host, effect, path, decision }: UserRule,
  { path: at, op, around, mode }: PathAsked,
): boolean {
  if (prefix !== null || arg !== null || host !== null) return false;
  if (effect?.includes(op) === false) return false;
  if (decision !== "allow")
    return path === null || path.some((each) => mayFit(each, at, { whole: false, around }));
  const mayWrite = op === "read" || mode !== "read-only";
  return effect !== null && mayWrite && path?.some((each) => surelyFits(each, at, around)) === true;
}
