import type { Mode } from "../../core/decision.ts";
import type { Effect } from "../effects/effect.ts";
import type { Called } from "../effects/walk.ts";
import type { Places } from "../judge/files.ts";
import type { Ruling } from "../judge/ruling.ts";
import type { Span } from "../shell/syntax.ts";
import { fitsAllow, vouches } from "./allow.ts";
import { asksForCommand, asksForEffect, fitsCommand, mayFitEffect } from "./match.ts";
import type { UserRule, UserRules } from "./rule.ts";

/** What is judged: one ruling for each effect, in the same order. */
export interface Judged {
  readonly calls: readonly Called[];
  readonly effects: readonly Effect[];
  readonly rulings: readonly Ruling[];
  readonly places: Places;
  readonly mode: Mode;
}

/** The rulings with those of users: what tightens is added, what allows takes the place of the ask that it covers. */
export function applyRules(rules: UserRules, judged: Judged): readonly Ruling[] {
  const rulings = [...judged.rulings];
  const extra: Ruling[] = [];
  for (const rule of rules) {
    if (rule.decision === "allow") extra.push(...allowed(rule, judged, rulings));
    else extra.push(...tightened(rule, judged));
  }
  return [...extra, ...rulings];
}

/** What it adds says nothing of containment: that is told by the effects. */
const rulingBy = ({ id, reason, decision }: UserRule, span: Span): Ruling => ({
  id,
  reason,
  span,
  verdict: decision,
  readOnly: decision,
  contained: true,
});

function tightened(rule: UserRule, { calls, effects, places }: Judged): readonly Ruling[] {
  const fitting = asksForCommand(rule) ? calls.map((called) => fitsCommand(rule, called)) : null;
  if (fitting?.includes(true) === false) return [];
  if (!asksForEffect(rule))
    return calls.filter((_, index) => fitting?.[index] === true).map(({ span }) => rulingBy(rule, span));
  return effects
    .filter(
      (effect) => (fitting === null || fitting[effect.call] === true) && mayFitEffect(rule, effect, places),
    )
    .map(({ span }) => rulingBy(rule, span));
}

/** Changes `rulings` where the rule vouches; answers the rule itself for commands that it fits and that need no rule. */
function allowed(rule: UserRule, judged: Judged, rulings: Ruling[]): readonly Ruling[] {
  if (!asksForCommand(rule)) {
    for (const [index, effect] of judged.effects.entries()) cover({ rule, judged, rulings }, index, effect);
    return [];
  }
  return judged.calls.flatMap((called, call) => {
    if (!fitsCommand(rule, called)) return [];
    const own = judged.effects.filter((effect) => effect.call === call);
    if (!fitsAllow(rule, called, own, judged.places)) return [];
    const asked = own.some((effect) => judged.rulings[judged.effects.indexOf(effect)]?.verdict === "ask");
    for (const [index, effect] of judged.effects.entries())
      if (effect.call === call) cover({ rule, judged, rulings }, index, effect);
    return asked ? [] : [rulingBy(rule, called.span)];
  });
}

interface Covering {
  readonly rule: UserRule;
  readonly judged: Judged;
  readonly rulings: Ruling[];
}

function cover({ rule, judged, rulings }: Covering, index: number, effect: Effect): void {
  const { calls, places, mode } = judged;
  const ruling = rulings[index];
  if (ruling?.verdict !== "ask" || (mode === "read-only" && effect.kind !== "read")) return;
  if (!vouches(rule, { effect, called: calls[effect.call], places })) return;
  const { span, contained } = ruling;
  rulings[index] = { ...rulingBy(rule, span), contained };
}
