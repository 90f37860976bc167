import type { CommandContext, CommandPolicy } from "../decide.ts";
import { placesFor } from "../judge/places.ts";
import { type Draft, draftsFor, type DraftRule } from "./drafts.ts";
import { failedExamples } from "./examples.ts";
import type { RuleForm } from "./form.ts";
import { readRules } from "./read.ts";
import type { UserRule } from "./rule.ts";

export type Remembered =
  | { readonly kind: "rules"; readonly rules: readonly RuleForm[] }
  | { readonly kind: "refused"; readonly reason: string };

/**
 * The narrowest rules that let exactly this command through, each with its example; or why there are none. They are tried
 * before they are given: with them, and the rules there are, the text is allowed in workspace-write.
 */
export function ruleFor(
  text: string,
  context: Omit<CommandContext, "mode">,
  policy: CommandPolicy,
): Remembered {
  const judged = policy.decide(text, { ...context, mode: "workspace-write" });
  const [first] = judged.rules;
  if (judged.decision === "deny") return refused(`it is denied: ${first?.reason} (${first?.id})`);
  if (judged.decision === "allow") return refused("it is allowed already");
  const looked = policy.look(text, context);
  const [flaw] = looked.flaws;
  if (flaw !== undefined) return refused(`no rule can allow it: ${flaw.reason} (${flaw.id})`);
  const drafts = draftsFor(text, looked, placesFor(context));
  if (typeof drafts === "string") return refused(drafts);
  return tried(drafts, { text, context, policy });
}

const refused = (reason: string): Remembered => ({ kind: "refused", reason });

interface Trial {
  readonly text: string;
  readonly context: Omit<CommandContext, "mode">;
  readonly policy: CommandPolicy;
}

/** By words alone where that does, else with paths. */
function tried(drafts: readonly Draft[], trial: Trial): Remembered {
  let result: Remembered = refused("no rule can hold exactly this");
  for (const level of [0, 1, 2]) {
    result = triedAs(drafts, level, trial);
    if (result.kind === "rules") break;
  }
  return result;
}

function triedAs(drafts: readonly Draft[], level: number, trial: Trial): Remembered {
  const { text, context, policy } = trial;
  const rules: RuleForm[] = [];
  const compiled: UserRule[] = [];
  for (const { rules: ways, example } of drafts) {
    const rule = ways[Math.min(level, ways.length - 1)] ?? ways[0];
    const made = finished(rule, text, trial) ?? finished(rule, example, trial);
    if (made === undefined)
      return refused(
        `no rule can hold exactly this in every workspace: ${example}; name paths from ~ or from /`,
      );
    rules.push(made.form);
    compiled.push({ ...made.rule, id: `user.new-${rules.length}` });
  }
  const all = [...(context.rules ?? []), ...compiled];
  const judged = policy.decide(text, { ...context, mode: "workspace-write", rules: all });
  const [first] = judged.rules;
  return judged.decision === "allow"
    ? { kind: "rules", rules }
    : refused(`no rule can allow it: ${first?.reason} (${first?.id})`);
}

/** The rule with its example, where that one example passes. */
function finished(
  draft: DraftRule,
  match: string,
  { context, policy }: Trial,
): { readonly form: RuleForm; readonly rule: UserRule } | undefined {
  const form: RuleForm = { ...draft, decision: "allow", reason: REASON, match: [match] };
  const { examples } = readRules([form], "user");
  const [only] = examples;
  if (only === undefined || failedExamples(examples, policy, context.home).length > 0) return undefined;
  return { form, rule: only.rule };
}

const REASON = "approved as it stands";
