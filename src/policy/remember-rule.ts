import { below, isInside } from "../core/file-names.ts";
import type { CommandContext, CommandPolicy, TextEffects } from "./decide.ts";
import { isAside } from "./effects/call-effects.ts";
import type { Called } from "./effects/walk.ts";
import type { Effect } from "./effects/effect.ts";
import { type Places, placesFor, rulingOf } from "./judge-effects.ts";
import { shellText } from "./shell/quote.ts";
import { failedExamples } from "./rule-examples.ts";
import { readRules } from "./rule-reader.ts";
import { isNeverAllowed, pathOf, type RuleForm, type UserRule } from "./rule.ts";

export type Remembered =
  | { readonly kind: "rules"; readonly rules: readonly RuleForm[] }
  | { readonly kind: "refused"; readonly reason: string };

/**
 * The narrowest rules that allow exactly this command, each with its example; or why there are none. They are verified before
 * they are returned: together with the existing rules they allow the text in workspace-write.
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
  return verifiedRules(drafts, { text, context, policy });
}

const refused = (reason: string): Remembered => ({ kind: "refused", reason });

interface Trial {
  readonly text: string;
  readonly context: Omit<CommandContext, "mode">;
  readonly policy: CommandPolicy;
}

/** Tries rules by words alone first, then rules with paths. */
function verifiedRules(drafts: readonly Draft[], trial: Trial): Remembered {
  let result: Remembered = refused("no rule can match exactly this");
  for (const level of [0, 1, 2]) {
    result = verifiedAtLevel(drafts, level, trial);
    if (result.kind === "rules") break;
  }
  return result;
}

function verifiedAtLevel(drafts: readonly Draft[], level: number, trial: Trial): Remembered {
  const { text, context, policy } = trial;
  const rules: RuleForm[] = [];
  const compiled: UserRule[] = [];
  for (const { rules: ways, example } of drafts) {
    const rule = ways[Math.min(level, ways.length - 1)] ?? ways[0];
    const made = withExample(rule, text, trial) ?? withExample(rule, example, trial);
    if (made === undefined)
      return refused(
        `no rule can match exactly this in every workspace: ${example}; write paths that begin with ~ or /`,
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

/** The rule with its example, if that example passes. */
function withExample(
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

type DraftRule = Pick<RuleForm, "prefix" | "exact" | "effect" | "path">;

/** A draft of a rule, and texts that may serve as its example. */
interface Draft {
  /** Variants: words alone, then with paths, then with paths from `~` or `/`. */
  readonly rules: readonly [DraftRule, ...DraftRule[]];
  readonly example: string;
}

/** One draft for each command or redirect that is asked about, or why there is none. */
function draftsFor(text: string, { calls, effects }: TextEffects, places: Places): readonly Draft[] | string {
  const drafts = new Map<string, Draft>();
  const askedByCommand = new Map<Called, Effect[]>();
  for (const effect of effects) {
    const { verdict, reason, id } = rulingOf(effect, places);
    if (verdict !== "ask") continue;
    if (isNever(effect)) return `no rule can allow it: ${reason} (${id})`;
    const called = calls[effect.call];
    if (called === undefined || isAside(called, effect.span)) {
      const draft = redirectDraft(effect, places);
      if (draft === undefined) return `a rule for this would apply to every command: ${reason} (${id})`;
      drafts.set(draft.example, draft);
    } else askedByCommand.set(called, [...(askedByCommand.get(called) ?? []), effect]);
  }
  for (const [called, askedEffects] of askedByCommand) {
    const draft = commandDraft(called, askedEffects, { text, places });
    if (typeof draft === "string") return draft;
    drafts.set(draft.example, draft);
  }
  return [...drafts.values()];
}

const isNever = (effect: Effect): boolean =>
  isNeverAllowed(effect.kind === "unknown" ? effect.doubt : effect.kind) ||
  (effect.kind === "code" && isNeverAllowed(`code.${effect.from}`));

/**
 * `> file` is an effect of the shell: a rule for it names a file and no command, so only a file of the workspace is
 * accepted.
 */
function redirectDraft(effect: Effect, places: Places): Draft | undefined {
  const at = pathOf(effect);
  if (effect.kind !== "write" || at === null || places.facts(at, "write").kind !== "workspace")
    return undefined;
  const [path] = pathTexts([at], { ...places, relative: true });
  if (path === undefined) return undefined;
  return { rules: [{ effect: "write", path }], example: `echo > ${shellText([path])}` };
}

function commandDraft(
  { words }: Called,
  asked: readonly Effect[],
  { text, places }: { readonly text: string; readonly places: Places },
): Draft | string {
  const vague = words.find(({ kind }) => kind !== "literal");
  if (vague !== undefined)
    return `the value of ${text.slice(...vague.span)} is known only at run time: write it out`;
  const prefix = words.map(({ value }) => value);
  const rule = { prefix, exact: true } as const;
  const paths = asked.flatMap((effect) => (isInline(effect) ? [] : (pathOf(effect) ?? [])));
  const named = [true, false].map((relative) => pathTexts(paths, { ...places, relative }));
  const withPaths = named.filter((path) => path.length > 0).map((path) => ({ ...rule, path }));
  return { rules: [rule, ...withPaths], example: shellText(prefix) };
}

const isInline = (effect: Effect): boolean => effect.kind === "code" && effect.from === "inline";

interface Naming {
  readonly workspace: string;
  readonly home: string;
  /** Paths in the workspace, relative to it. */
  readonly relative: boolean;
}

/** Paths as a rule writes them, without those that would be patterns. */
export const pathTexts = (paths: readonly string[], { workspace, home, relative }: Naming): string[] =>
  [...new Set(paths)]
    .filter((path) => !/[*?[\]\\]/.test(path))
    .map((path) => {
      if (relative && isInside(workspace, path)) return below(workspace, path) || ".";
      return isInside(home, path) ? `~/${below(home, path)}`.replace(/\/$/, "") : path;
    });
