import type { Mode } from "../core/decision.ts";
import { fitsWildcard, type Wildcard } from "../core/wording.ts";
import type { Ruling } from "./containment.ts";
import { type Called, isAside, programOf } from "./effects/call-effects.ts";
import type { Effect } from "./effects/effect.ts";
import type { PathFacts, PolicyPlaces } from "./judge-effects.ts";
import { resolvePath } from "./paths/normal-path.ts";
import { type Around, mayFit, type PathPattern, surelyFits } from "./paths/path-pattern.ts";
import { isCalled, isNeverAllowed, isWhole, pathOf, type UserRule, type UserRules } from "./rule.ts";
import type { Span } from "./shell/shell-syntax.ts";

/** Input of the judgement: one ruling for each effect, in the same order. */
interface Judged {
  readonly calls: readonly Called[];
  readonly effects: readonly Effect[];
  readonly rulings: readonly Ruling[];
  readonly places: PolicyPlaces;
  readonly mode: Mode;
}

/** Applies users' rules: tightening rules are added; an allow rule replaces the ask that it covers. */
export function applyRules(rules: UserRules, judged: Judged): readonly Ruling[] {
  const rulings = [...judged.rulings];
  const extra: Ruling[] = [];
  for (const rule of rules) {
    if (rule.tool !== null) continue;
    if (asksForCommand(rule) && !judged.calls.some((called) => fitsCommand(rule, called))) continue;
    if (rule.decision === "allow") extra.push(...applyAllow(rule, judged, rulings));
    else extra.push(...applyTightening(rule, judged));
  }
  const covered = rulings.filter((ruling, index) => ruling !== judged.rulings[index]);
  const others = rulings.filter((ruling, index) => ruling === judged.rulings[index]);
  return [...extra, ...covered, ...others];
}

/** Added rulings carry no containment of their own: the effects decide that. */
const rulingBy = ({ id, reason, decision }: UserRule, span: Span): Ruling => ({
  id,
  reason,
  span,
  verdict: decision,
  readOnly: decision,
  contained: "always",
});

function applyTightening(rule: UserRule, { calls, effects, places }: Judged): readonly Ruling[] {
  const fitting = asksForCommand(rule) ? calls.map((called) => fitsCommand(rule, called)) : null;
  if (!asksForEffect(rule))
    return calls.filter((_, index) => fitting?.[index] === true).map(({ span }) => rulingBy(rule, span));
  return effects
    .filter(
      (effect) => (fitting === null || fitting[effect.call] === true) && mayFitEffect(rule, effect, places),
    )
    .map(({ span }) => rulingBy(rule, span));
}

/**
 * Replaces the rulings that the rule covers. Returns the rule itself for commands that match it and need no
 * rule.
 */
function applyAllow(rule: UserRule, judged: Judged, rulings: Ruling[]): readonly Ruling[] {
  const { calls, effects, places } = judged;
  const covering = { rule, judged, rulings };
  if (!asksForCommand(rule)) {
    for (const index of effects.keys()) cover(covering, index);
    return effects
      .filter(
        (effect, index) => judged.rulings[index]?.verdict === "allow" && coversEffect(rule, judged, effect),
      )
      .map(({ span }) => rulingBy(rule, span));
  }
  const byCommand = effectsOf(calls.length, effects);
  return calls.flatMap((called, call) => {
    if (!fitsCommand(rule, called)) return [];
    const indices = byCommand[call] ?? [];
    const does = indices.flatMap((index) => effects[index] ?? []);
    if (!fitsAllow(rule, called, does, places)) return [];
    for (const index of indices) cover(covering, index);
    return indices.some((index) => judged.rulings[index]?.verdict === "ask")
      ? []
      : [rulingBy(rule, called.span)];
  });
}

const coversEffect = (rule: UserRule, { places }: Judged, effect: Effect): boolean =>
  covers(rule, { effect, called: undefined, places });

/** Indices of each command's effects. */
function effectsOf(count: number, effects: readonly Effect[]): readonly (readonly number[])[] {
  const byCommand: number[][] = Array.from({ length: count }, () => []);
  for (const [index, { call }] of effects.entries()) byCommand[call]?.push(index);
  return byCommand;
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
  if (!covers(rule, { effect, called: calls[effect.call], places })) return;
  const { span, contained } = ruling;
  rulings[index] = { ...rulingBy(rule, span), contained };
}

interface Claim {
  readonly effect: Effect;
  /** The command that has the effect; undefined where the shell itself has it. */
  readonly called: Called | undefined;
  readonly places: PolicyPlaces;
}

/**
 * Whether an allow rule covers an asked effect of a matching command. It covers what the rule names: words, paths,
 * hosts. For the rest of the command it only covers effects in the workspace. See docs/policy-rules.md.
 */
function covers(rule: UserRule, claim: Claim): boolean {
  const { effect, called } = claim;
  if (rule.effect !== null && !rule.effect.some((name) => isCalled(effect, name))) return false;
  return rule.prefix === null
    ? coversNamed(rule, claim)
    : called !== undefined &&
        !isAside(called, effect.span) &&
        coversOwn(rule, { ...claim, called, pinned: rule.prefix.length });
}

/** For a rule that names no command: covers only what it names. */
function coversNamed({ path, host }: UserRule, { effect, places }: Claim): boolean {
  if (effect.kind === "network") return host !== null && surelyHosts(host, effect.hosts);
  if (effect.kind === "device" || (effect.kind === "code" && !isOfFile(effect))) return false;
  return path !== null && surelyPath(path, pathOf(effect), places);
}

/** For a rule that names a command: `pinned` of its words are fixed. */
type OwnClaim = Claim & { readonly called: Called; readonly pinned: number };

function coversOwn(rule: UserRule, claim: OwnClaim): boolean {
  const { effect } = claim;
  switch (effect.kind) {
    case "read":
    case "write":
    case "delete":
    case "permissions":
      return coversPath(rule, effect, claim.places);
    case "code":
      return coversCode(rule, effect, claim);
    case "unknown":
      return coversDoubt(rule, effect, claim);
    case "network":
      return rule.host === null
        ? isOwn(claim) && (rule.exact || effect.hosts.length === 0)
        : surelyHosts(rule.host, effect.hosts);
    case "install":
    case "process":
      return isOwn(claim);
    case "repository":
      return isOwn(claim) && (effect.change !== "lost" || rule.exact || isNamed(rule, effect));
    default:
      return false;
  }
}

/** The command's words are exact: nothing is left to shell expansion or to a program that adds names. */
function isPlain(rule: UserRule, { words }: Called): boolean {
  return words.every(
    ({ kind, value }) =>
      !value.includes("{}") &&
      (kind === "literal" || (kind === "glob" && !rule.exact && /^[^*?[@+!]/.test(value))),
  );
}

const isNamed = ({ effect: named }: UserRule, { change }: { readonly change: string }): boolean =>
  named?.includes(`repository.${change}`) === true;

type PathEffect = Extract<Effect, { readonly kind: "read" | "write" | "delete" | "permissions" }>;

function coversPath({ path }: UserRule, { kind, path: at }: PathEffect, places: PolicyPlaces): boolean {
  if (at === null) return false;
  if (path !== null) return surelyPath(path, at, places);
  const facts = places.facts(at, kind === "read" ? "read" : "write");
  return facts.secret === null && INSIDE.has(facts.kind);
}

const INSIDE: ReadonlySet<PathFacts["kind"]> = new Set(["workspace", "temp", "sink"]);

type CodeEffect = Extract<Effect, { readonly kind: "code" }>;

const isOfFile = ({ from }: CodeEffect): boolean =>
  from === "settings" || from === "check" || from === "project";

function coversCode(rule: UserRule, effect: CodeEffect, { called, places }: OwnClaim): boolean {
  if (effect.from === "inline") return rule.exact;
  if (!isOfFile(effect)) return false;
  return rule.path === null
    ? places.isProject(effect.path) && isSameFile(effect, called, places)
    : surelyPath(rule.path, effect.path, places);
}

/** `./run.sh` in a rule is the workspace's, whatever `cd` came before. */
function isSameFile({ path }: CodeEffect, { words }: Called, { workspace }: PolicyPlaces): boolean {
  const name = words[0]?.value ?? "";
  return (
    !name.includes("/") || name.startsWith("/") || path === `${workspace}/${name.replace(/^(?:\.\/)+/, "")}`
  );
}

type DoubtEffect = Extract<Effect, { readonly kind: "unknown" }>;

/** Vouches for an effect that is not understood if its words are words of the rule. */
function coversDoubt({ prefix }: UserRule, { doubt, span }: DoubtEffect, claim: OwnClaim): boolean {
  const { called, pinned, places } = claim;
  if (isNeverAllowed(doubt)) return false;
  if (doubt !== "command.unknown" && doubt !== "command.elsewhere") return isPinned(span, called, pinned);
  const name = called.words[0]?.value ?? "";
  const isNamed = doubt === "command.unknown" || (name.startsWith("/") && prefix?.[0]?.has(name) === true);
  return isNamed && called.words.slice(pinned).every(({ value }) => staysInside(value, places));
}

/** A word that looks like a path is treated as one even for unknown programs: it must not lead outside or to a secret. */
function staysInside(word: string, places: PolicyPlaces): boolean {
  const path = word.startsWith("-") ? word.slice(word.indexOf("=") + 1) : word;
  const facts = places.facts(resolvePath(places.workspace, path), "read");
  const outside = /^\/|(?:^|\/)\.\.(?:\/|$)/.test(path) && !INSIDE.has(facts.kind) && facts.kind !== "system";
  return !outside && facts.secret === null;
}

/** The effect comes from the command as such or from a word of the rule, not from an option that the rule leaves open. */
const isOwn = ({ effect, called, pinned }: OwnClaim): boolean =>
  called.words.slice(0, pinned).some(({ span: [from, to] }) => from < effect.span[1] && effect.span[0] < to);

/** All words that the span touches are among the first `pinned` ones. */
function isPinned([from, to]: Span, { words }: Called, pinned: number): boolean {
  const touched = words.map(({ span }) => span[0] < to && from < span[1]);
  return touched.includes(true) && !touched.slice(pinned).includes(true);
}

/** The command's words are exact, and it has each effect, path and host that the rule names. */
function fitsAllow(
  rule: UserRule,
  called: Called,
  effects: readonly Effect[],
  places: PolicyPlaces,
): boolean {
  const { effect: names, path, host } = rule;
  const named = (effect: Effect): boolean => names === null || names.some((name) => isCalled(effect, name));
  const has = (test: (effect: Effect) => boolean): boolean =>
    effects.some((effect) => named(effect) && test(effect));
  return (
    isPlain(rule, called) &&
    (names === null || has(() => true)) &&
    (path === null || has((effect) => surelyPath(path, pathOf(effect), places))) &&
    (host === null || has((effect) => effect.kind === "network" && surelyHosts(host, effect.hosts)))
  );
}

export const asksForCommand = ({ prefix, arg }: UserRule): boolean => prefix !== null || arg !== null;
export const asksForEffect = ({ effect, path, host }: UserRule): boolean =>
  effect !== null || path !== null || host !== null;

/** The command's words match those of the rule. A word that only the shell can expand matches nothing. */
function fitsCommand(rule: UserRule, { words }: Called): boolean {
  const { prefix, arg, exact } = rule;
  if (prefix !== null) {
    if (words.length < prefix.length || (exact && words.length > prefix.length)) return false;
    for (const [index, known] of prefix.entries()) {
      const word = words[index];
      if (word?.kind !== "literal") return false;
      if (!known.has(word.value) && !(index === 0 && isProgram(rule, known, word.value))) return false;
    }
  }
  return arg === null || words.slice(1).some(({ kind, value }) => kind === "literal" && fitsAny(arg, value));
}

/** An allow rule takes a program in a system folder for its plain name; a tightening rule takes any path. */
function isProgram({ decision }: UserRule, known: ReadonlySet<string>, value: string): boolean {
  if (!value.includes("/")) return false;
  const [name, trusted] = programOf(value);
  return (trusted || decision !== "allow") && known.has(name);
}

/** Every condition of a tightening rule on an effect: a possible match counts. */
export function mayFitEffect(
  { effect: names, path, host }: UserRule,
  effect: Effect,
  around: Around,
): boolean {
  if (names !== null && !names.some((name) => isCalled(effect, name))) return false;
  if (path !== null) {
    const at = pathOf(effect);
    if (at === null || !path.some((each) => mayFit(each, at, { whole: isWhole(effect), around })))
      return false;
  }
  return (
    host === null || (effect.kind === "network" && effect.hosts.some((each) => fitsAny(host, hostName(each))))
  );
}

/** All hosts are among those of the rule, and there is at least one. */
const surelyHosts = (host: readonly Wildcard[], hosts: readonly string[]): boolean =>
  hosts.length > 0 && hosts.every((each) => fitsAny(host, hostName(each)));

const surelyPath = (patterns: readonly PathPattern[], path: string | null, around: Around): boolean =>
  path !== null && patterns.some((each) => surelyFits(each, path, around));

const fitsAny = (patterns: readonly Wildcard[], text: string): boolean =>
  patterns.some((pattern) => fitsWildcard(pattern, text));

const hostName = (host: string): string => host.toLowerCase().replace(/\.$/, "");
