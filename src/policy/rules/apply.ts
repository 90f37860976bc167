import type { Mode } from "../../core/decision.ts";
import type { Effect } from "../effects/effect.ts";
import type { Called } from "../effects/called.ts";
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
    if (asksForCommand(rule) && !judged.calls.some((called) => fitsCommand(rule, called))) continue;
    if (rule.decision === "allow") extra.push(...allowed(rule, judged, rulings));
    else extra.push(...tightened(rule, judged));
  }
  const covered = rulings.filter((ruling, index) => ruling !== judged.rulings[index]);
  const others = rulings.filter((ruling, index) => ruling === judged.rulings[index]);
  return [...extra, ...covered, ...others];
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
  const { calls, effects, places } = judged;
  const covering = { rule, judged, rulings };
  if (!asksForCommand(rule)) {
    for (const index of effects.keys()) cover(covering, index);
    return effects
      .filter((effect, index) => judged.rulings[index]?.verdict === "allow" && names(rule, judged, effect))
      .map(({ span }) => rulingBy(rule, span));
  }
  const own = effectsOf(calls.length, effects);
  return calls.flatMap((called, call) => {
    if (!fitsCommand(rule, called)) return [];
    const indices = own[call] ?? [];
    const does = indices.flatMap((index) => effects[index] ?? []);
    if (!fitsAllow(rule, called, does, places)) return [];
    for (const index of indices) cover(covering, index);
    return indices.some((index) => judged.rulings[index]?.verdict === "ask")
      ? []
      : [rulingBy(rule, called.span)];
  });
}

const names = (rule: UserRule, { places }: Judged, effect: Effect): boolean =>
  vouches(rule, { effect, called: undefined, places });

/** The places of each command's effects. */
function effectsOf(count: number, effects: readonly Effect[]): readonly (readonly number[])[] {
  const own: number[][] = Array.from({ length: count }, () => []);
  for (const [index, { call }] of effects.entries()) own[call]?.push(index);
  return own;
}

interface Covering {
  readonly rule: UserRule;
  readonly judged: Judged;
  readonly rulings: Ruling[];
}

function cover({ rule, judged, rulings }: Covering, index: number): void {
  const { calls, effects, places, mode } = judged;
  const [ruling, effect] = [rulings[index], effects[index]];
  if (effect === undefined || ruling?.verdict !== "ask" || (mode === "read-only" && effect.kind !== "read"))
    return;
  if (!vouches(rule, { effect, called: calls[effect.call], places })) return;
  const { span, contained } = ruling;
  rulings[index] = { ...rulingBy(rule, span), contained };
}
