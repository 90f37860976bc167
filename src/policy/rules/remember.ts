import { type CommandContext, type CommandPolicy, type Looked } from "../decide.ts";
import type { Effect } from "../effects/effect.ts";
import { type Called, isAside } from "../effects/called.ts";
import { rulingOf } from "../judge/effects.ts";
import type { Places } from "../judge/files.ts";
import { placesFor } from "../judge/places.ts";
import type { Ruling } from "../judge/ruling.ts";
import { below, isInside } from "../paths/normal.ts";
import { shellText } from "../shell/quote.ts";
import { isNeverAllowed, pathOf } from "./effect-names.ts";
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
  const trial = { text, context, policy };
  const plain = tried(drafts, trial);
  return plain.kind === "rules"
    ? plain
    : tried(
        drafts.map((draft) => ({ ...draft, rule: draft.withPaths })),
        trial,
      );
}

const refused = (reason: string): Remembered => ({ kind: "refused", reason });

/** A rule to be, and what may show what it is for. */
interface Draft {
  readonly rule: Pick<RuleForm, "prefix" | "exact" | "effect" | "path">;
  /** The same with its paths, where those lie outside. */
  readonly withPaths: Draft["rule"];
  readonly example: string;
}

interface Asked {
  readonly effect: Effect;
  readonly ruling: Ruling;
}

/** The rules to try, or why there are none. */
function draftsFor(text: string, { calls, effects }: Looked, places: Places): readonly Draft[] | string {
  const drafts = new Map<string, Draft>();
  const perCall = new Map<Called, Asked[]>();
  for (const effect of effects) {
    const ruling = rulingOf(effect, places);
    if (ruling.verdict !== "ask") continue;
    const never = neverFor(effect);
    if (never) return `no rule can allow it: ${ruling.reason} (${ruling.id})`;
    const called = calls[effect.call];
    if (called === undefined || isAside(called, effect.span)) {
      const draft = redirectDraft(effect, places);
      if (draft === undefined) return `a rule would hold for every command: ${ruling.reason} (${ruling.id})`;
      drafts.set(draft.example, draft);
    } else perCall.set(called, [...(perCall.get(called) ?? []), { effect, ruling }]);
  }
  for (const [called, asked] of perCall) {
    const draft = commandDraft(called, asked, { text, places });
    if (typeof draft === "string") return draft;
    drafts.set(draft.example, draft);
  }
  return [...drafts.values()];
}

const neverFor = (effect: Effect): boolean =>
  isNeverAllowed(effect.kind === "unknown" ? effect.doubt : effect.kind) ||
  (effect.kind === "code" && isNeverAllowed(`code.${effect.from}`));

/** `> file` is the shell's own deed: a rule for it names the file and no command, so only one of the workspace will do. */
function redirectDraft(effect: Effect, places: Places): Draft | undefined {
  const at = pathOf(effect);
  if (effect.kind !== "write" || at === null || places.facts(at, "write").kind !== "workspace")
    return undefined;
  const path = pathText(at, places);
  return path === undefined
    ? undefined
    : { ...both({ effect: "write", path }), example: `echo > ${shellText([path])}` };
}

function commandDraft(
  { words }: Called,
  asked: readonly Asked[],
  { text, places }: { readonly text: string; readonly places: Places },
): Draft | string {
  const vague = words.find(({ kind }) => kind !== "literal");
  if (vague !== undefined)
    return `only the shell will know what ${text.slice(...vague.span)} stands for: write it out`;
  const prefix = words.map(({ value }) => value);
  const example = shellText(prefix);
  const rule = { prefix, exact: true } as const;
  const paths = asked.flatMap(({ effect }) => (isInline(effect) ? [] : (pathOf(effect) ?? [])));
  const named = [...new Set(paths)].flatMap((path) => pathText(path, places) ?? []);
  return { ...both(rule), ...(named.length === 0 ? {} : { withPaths: { ...rule, path: named } }), example };
}

const both = (rule: Draft["rule"]): Pick<Draft, "rule" | "withPaths"> => ({ rule, withPaths: rule });

const isInline = (effect: Effect): boolean => effect.kind === "code" && effect.from === "inline";

/** A path as a rule names it; none for one that would be a pattern. */
function pathText(path: string, { workspace, home }: Places): string | undefined {
  if (/[*?[\]\\]/.test(path)) return undefined;
  if (isInside(workspace, path)) return below(workspace, path) || ".";
  return isInside(home, path) ? `~/${below(home, path)}`.replace(/\/$/, "") : path;
}

interface Trial {
  readonly text: string;
  readonly context: Omit<CommandContext, "mode">;
  readonly policy: CommandPolicy;
}

function tried(drafts: readonly Draft[], trial: Trial): Remembered {
  const { text, context, policy } = trial;
  const rules: RuleForm[] = [];
  const compiled: UserRule[] = [];
  for (const { rule, example } of drafts) {
    const made = finished(rule, text, trial) ?? finished(rule, example, trial);
    if (made === undefined) return refused(`no rule can hold exactly this: ${example}`);
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
  draft: Draft["rule"],
  match: string,
  { context, policy }: Trial,
): { readonly form: RuleForm; readonly rule: UserRule } | undefined {
  const form: RuleForm = { ...draft, decision: "allow", reason: REASON, match: [match] };
  const { examples } = readRules([form], "user");
  const [only] = examples;
  if (only === undefined || failedExamples(examples, policy, context).length > 0) return undefined;
  return { form, rule: only.rule };
}

const REASON = "approved as it stands";
