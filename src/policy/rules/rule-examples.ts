import type { CommandDecision, CommandPolicy } from "../decide.ts";
import type { Examples, RuleProblem, UserRule } from "./rule.ts";

/** Rules hold in every workspace, and so do their examples: they are tried in one that is nobody's. */
const WORKSPACE = "/workspace";

/** Runs the examples, each with its own rule alone in workspace-write; the keys are those in the list of rules. */
export function failedExamples(
  list: readonly Examples[],
  policy: CommandPolicy,
  home: string,
): readonly RuleProblem[] {
  return list.flatMap(({ rule, match, notMatch }, index) => {
    const judge = (text: string): CommandDecision =>
      policy.decide(text, { workspace: WORKSPACE, home, mode: "workspace-write", rules: [rule] });
    const failed = (key: string, number: number, message: string): RuleProblem => ({
      keys: [index, key, number],
      message,
    });
    return [
      ...match.flatMap((text, number) => {
        const judged = judge(text);
        return decides(rule, judged)
          ? []
          : [failed("match", number, `match: ${unmatched(text, rule, judged)}`)];
      }),
      ...notMatch.flatMap((text, number) =>
        decides(rule, judge(text)) ? [failed("notMatch", number, `notMatch: ${shown(text)} is matched`)] : [],
      ),
    ];
  });
}

/** The rule applies; one that allows does so only where all of the text is allowed. */
const decides = (rule: UserRule, { decision, rules }: CommandDecision): boolean =>
  rules.some(({ id }) => id === rule.id) && (rule.decision !== "allow" || decision === "allow");

function unmatched(text: string, rule: UserRule, { decision, rules }: CommandDecision): string {
  const [first] = rules;
  const why = first === undefined || first.id === rule.id ? "" : `: ${first.reason} (${first.id})`;
  return rule.decision === "allow" && decision !== "allow"
    ? `${shown(text)} is still ${decision === "deny" ? "denied" : "asked about"}${why}`
    : `${shown(text)} is not matched`;
}

const shown = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
