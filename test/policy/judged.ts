import type { Mode, Verdict } from "../../src/core/decision.ts";
import { CommandPolicy } from "../../src/policy/decide.ts";
import { type Origin, readRules, type RuleForm, type UserRules } from "../../src/policy/rule.ts";
import { HOME, WORKSPACE } from "../fixtures/policy/corpus.ts";
export const AROUND = { workspace: WORKSPACE, home: HOME };

export const policy = new CommandPolicy();

export type Written = Partial<RuleForm>;

/** Rules in short form; fields that every rule needs are filled in. Their examples are not run. */
export function rulesFrom(list: readonly Written[], origin: Origin = "user"): UserRules {
  const full = list.map((rule) => ({
    reason: "because",
    ...(rule.decision === "allow" ? { match: ["x"] } : {}),
    ...rule,
  }));
  const { examples, problems } = readRules(full, origin);
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  return examples.map(({ rule }) => rule);
}

export const verdict = (text: string, rules: UserRules, mode: Mode = "workspace-write"): Verdict =>
  policy.decide(text, { ...AROUND, mode, rules }).decision;
