import type { Effect } from "../effects/effect.ts";
import type { Called } from "../effects/walk.ts";
import type { PathFacts, Places } from "../judge/files.ts";
import { resolvePath } from "../paths/normal.ts";
import type { Span } from "../shell/syntax.ts";
import { isCalled, isNeverAllowed, pathOf } from "./effect-names.ts";
import { surelyHosts, surelyPath } from "./match.ts";
import type { UserRule } from "./rule.ts";

export interface Claim {
  readonly effect: Effect;
  /** The command that has the effect; none where the shell itself has it. */
  readonly called: Called | undefined;
  readonly places: Places;
}

/**
 * Whether an allow rule vouches for an asked effect of a command that it fits. It does for what it names: its words, its
 * paths, its hosts; for the rest of the command only as far as the workspace reaches. See docs/policy-rules.md.
 */
export function vouches(rule: UserRule, claim: Claim): boolean {
  const { effect, called } = claim;
  if (rule.effect !== null && !rule.effect.some((name) => isCalled(effect, name))) return false;
  if (rule.prefix !== null && (called === undefined || isAside(effect, called))) return false;
  switch (effect.kind) {
    case "read":
    case "write":
    case "delete":
    case "permissions":
      return vouchesPath(rule, effect, claim.places);
    case "code":
      return vouchesCode(rule, effect, claim);
    case "network":
      return rule.host === null
        ? isOwn(rule, effect, called) && (rule.exact || effect.hosts.length === 0)
        : surelyHosts(rule.host, effect.hosts);
    case "unknown":
      return called !== undefined && vouchesDoubt(rule, effect, { called, places: claim.places });
    case "install":
    case "process":
      return isOwn(rule, effect, called);
    case "repository":
      return isOwn(rule, effect, called) && (effect.change !== "lost" || rule.exact || isNamed(rule, effect));
    case "system":
    case "privilege":
    case "device":
    case "bomb":
      return false;
  }
}

/** Nothing in the command is left to the shell, or to a program that fills names in: its words are what they look like. */
function isPlain(rule: UserRule, { words }: Called): boolean {
  return words.every(
    ({ kind, value }) =>
      !value.includes("{}") &&
      (kind === "literal" || (kind === "glob" && !rule.exact && /^[^*?[@+!]/.test(value))),
  );
}

const isAside = ({ span }: Effect, { aside }: Called): boolean =>
  aside.some(([from, to]) => from === span[0] && to === span[1]);

const isNamed = ({ effect: named }: UserRule, { change }: { readonly change: string }): boolean =>
  named?.includes(`repository.${change}`) === true;

type PathEffect = Extract<Effect, { readonly kind: "read" | "write" | "delete" | "permissions" }>;

function vouchesPath({ path, prefix }: UserRule, { kind, path: at }: PathEffect, places: Places): boolean {
  if (at === null) return false;
  if (path !== null) return surelyPath(path, at, places);
  const facts = places.facts(at, kind === "read" ? "read" : "write");
  return prefix !== null && facts.secret === null && INSIDE.has(facts.kind);
}

const INSIDE: ReadonlySet<PathFacts["kind"]> = new Set(["workspace", "temp", "sink"]);

type CodeEffect = Extract<Effect, { readonly kind: "code" }>;

function vouchesCode(rule: UserRule, effect: CodeEffect, { called, places }: Claim): boolean {
  switch (effect.from) {
    case "inline":
      return rule.exact;
    case "settings":
    case "check":
    case "project":
      if (rule.path !== null) return surelyPath(rule.path, effect.path, places);
      return rule.prefix !== null && places.isProject(effect.path) && isSameFile(effect, called, places);
    default:
      return false;
  }
}

/** `./run.sh` of a rule is that of the workspace, wherever a `cd` went. */
function isSameFile({ path, by }: CodeEffect, called: Called | undefined, { workspace }: Places): boolean {
  const name = called?.words[0]?.value ?? by;
  return (
    !name.includes("/") || name.startsWith("/") || path === `${workspace}/${name.replace(/^(?:\.\/)+/, "")}`
  );
}

type DoubtEffect = Extract<Effect, { readonly kind: "unknown" }>;

/** What is not understood is vouched for where the words in question are words of the rule. */
function vouchesDoubt(
  rule: UserRule,
  { doubt, span }: DoubtEffect,
  { called, places }: { readonly called: Called; readonly places: Places },
): boolean {
  if (rule.prefix === null || isNeverAllowed(doubt)) return false;
  const pinned = rule.prefix.length;
  switch (doubt) {
    case "command.unknown":
      return called.words.slice(pinned).every(({ value }) => staysInside(value, places));
    case "command.elsewhere":
      return (
        called.words[0]?.value.startsWith("/") === true && rule.prefix[0]?.has(called.words[0].value) === true
      );
    default:
      return isPinned(span, called, pinned);
  }
}

/** What looks like a path, in a word for a program that nobody knows, is one: it leads outside or to a secret, or not. */
function staysInside(word: string, places: Places): boolean {
  const path = word.startsWith("-") ? word.slice(word.indexOf("=") + 1) : word;
  const facts = places.facts(resolvePath(places.workspace, path), "read");
  const outside = /^\/|(?:^|\/)\.\.(?:\/|$)/.test(path) && !INSIDE.has(facts.kind) && facts.kind !== "system";
  return !outside && facts.secret === null;
}

/** It comes with the command as such or with a word of the rule, not with an option that the rule leaves free. */
const isOwn = ({ prefix }: UserRule, { span: [from, to] }: Effect, called: Called | undefined): boolean =>
  prefix !== null &&
  called?.words.slice(0, prefix.length).some(({ span }) => span[0] < to && from < span[1]) === true;

/** All words that the span touches are among the first ones. */
function isPinned([from, to]: Span, { words }: Called, pinned: number): boolean {
  const touched = words.map(({ span }) => span[0] < to && from < span[1]);
  return touched.includes(true) && !touched.slice(pinned).includes(true);
}

/** Where the rule asks for effects, the command has them; nothing of it is left to the shell. */
export function fitsAllow(
  rule: UserRule,
  called: Called,
  effects: readonly Effect[],
  places: Places,
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
