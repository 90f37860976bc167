import { clipped } from "../core/wording.ts";
import type { CommandDecision, CommandPolicy } from "./decide.ts";
import type { Examples, RuleProblem, UserRule } from "./rule.ts";

/** Rules and their examples hold in every workspace: examples are tried in a made-up one. */
const WORKSPACE = "/workspace";

/** Runs each example with its own rule alone in workspace-write; the keys are positions in the list of rules. */
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

/** The rule applies; a rule that allows only passes where the whole text is allowed. */
const decides = (rule: UserRule, { decision, rules }: CommandDecision): boolean =>
  rules.some(({ id }) => id === rule.id) && (rule.decision !== "allow" || decision === "allow");

function unmatched(text: string, rule: UserRule, { decision, rules }: CommandDecision): string {
  const [first] = rules;
  const why = first === undefined || first.id === rule.id ? "" : `: ${first.reason} (${first.id})`;
  return rule.decision === "allow" && decision !== "allow"
    ? `${shown(text)} is still ${decision === "deny" ? "denied" : "asked about"}${why}`
    : `${shown(text)} is not matched`;
}

const shown = (text: string): string => JSON.stringify(clipped(text, 80));
