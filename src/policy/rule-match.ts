import { fitsWildcard, type Wildcard } from "../core/wording.ts";
import { programOf } from "./effects/call-effects.ts";
import type { Called } from "./effects/walk.ts";
import type { Effect } from "./effects/effect.ts";
import { mayFit, type PathPattern, surelyFits } from "./path-pattern.ts";
import { isCalled, isWhole, pathOf, type UserRule } from "./rule.ts";

export interface Around {
  readonly workspace: string;
  readonly home: string;
}

export const asksForCommand = ({ prefix, arg }: UserRule): boolean => prefix !== null || arg !== null;
export const asksForEffect = ({ effect, path, host }: UserRule): boolean =>
  effect !== null || path !== null || host !== null;

/** The command's words match those of the rule. A word that only the shell can expand matches nothing. */
export function fitsCommand(rule: UserRule, { words }: Called): boolean {
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
export const surelyHosts = (host: readonly Wildcard[], hosts: readonly string[]): boolean =>
  hosts.length > 0 && hosts.every((each) => fitsAny(host, hostName(each)));

export const surelyPath = (patterns: readonly PathPattern[], path: string | null, around: Around): boolean =>
  path !== null && patterns.some((each) => surelyFits(each, path, around));

const fitsAny = (patterns: readonly Wildcard[], text: string): boolean =>
  patterns.some((pattern) => fitsWildcard(pattern, text));

const hostName = (host: string): string => host.toLowerCase().replace(/\.$/, "");
