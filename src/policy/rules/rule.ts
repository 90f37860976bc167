import type { Verdict } from "../../core/decision.ts";
import type { PathPattern } from "./path-pattern.ts";
import type { Wildcard } from "./wildcard.ts";

/** One rule, its patterns read. Where a condition is null, the rule does not ask for it; all others must hold. */
export interface UserRule {
  /** `user.…` or `project.…`, as decisions name it. */
  readonly id: string;
  readonly decision: Verdict;
  readonly reason: string;
  /** The first words of a command; each one of several. */
  readonly prefix: readonly ReadonlySet<string>[] | null;
  /** The prefix is the whole command. */
  readonly exact: boolean;
  /** An argument anywhere. */
  readonly arg: readonly Wildcard[] | null;
  readonly effect: readonly string[] | null;
  readonly path: readonly PathPattern[] | null;
  readonly host: readonly Wildcard[] | null;
}

/** In the order of their files; the order changes nothing. */
export type UserRules = readonly UserRule[];

/** A mistake in a rule: the rule's place in the list, then its key where one is to blame. */
export interface RuleProblem {
  readonly keys: readonly PropertyKey[];
  readonly message: string;
}

/** What a person wrote to show what a rule is for. */
export interface Examples {
  readonly rule: UserRule;
  readonly match: readonly string[];
  readonly notMatch: readonly string[];
}
