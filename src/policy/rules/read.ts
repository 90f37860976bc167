import { nearest } from "../../core/spelling.ts";
import { whyTooBroad } from "./broad.ts";
import { EFFECT_NAMES, PATH_EFFECTS } from "./effect-names.ts";
import { RULE_KEYS, type RuleForm, ruleForm } from "./form.ts";
import { readPathPattern } from "./path-pattern.ts";
import type { Examples, RuleProblem, UserRule } from "./rule.ts";
import { readWildcard } from "./wildcard.ts";

/** Whose rules they are. A project may only tighten. */
export type Origin = "user" | "project";

export interface RulesRead {
  readonly examples: readonly Examples[];
  readonly problems: readonly RuleProblem[];
}

/** A list of rules as it was written, to rules. All problems, each with where it is. */
export function readRules(written: readonly unknown[], origin: Origin): RulesRead {
  const examples: Examples[] = [];
  const problems: RuleProblem[] = [];
  const ids = new Set<string>();
  for (const [index, each] of written.entries()) {
    const read = readRule(each, index, origin);
    if (Array.isArray(read)) problems.push(...read);
    else if (ids.has(read.rule.id))
      problems.push({ keys: [index, "id"], message: `id: another rule has the name ${read.rule.id}` });
    else {
      ids.add(read.rule.id);
      examples.push(read);
    }
  }
  return { examples, problems };
}

function readRule(written: unknown, index: number, origin: Origin): Examples | RuleProblem[] {
  const parsed = ruleForm.safeParse(written);
  if (!parsed.success)
    return parsed.error.issues.map((issue): RuleProblem => {
      const [key = ""] = issue.code === "unrecognized_keys" ? issue.keys : [];
      const keys = key === "" ? issue.path : [...issue.path, key];
      const message = key === "" ? found(issue.message, issue.path, written) : `unknown key; ${hint(key)}`;
      return {
        keys: [index, ...keys],
        message: [keys.map(String).join("."), message].filter(Boolean).join(": "),
      };
    });
  const problem = ({ key, message }: { readonly key: string; readonly message: string }): RuleProblem[] => [
    { keys: key === "" ? [index] : [index, key], message: key === "" ? message : `${key}: ${message}` },
  ];
  const mistake = mistakeIn(parsed.data, origin);
  if (mistake !== undefined) return problem(mistake);
  const rule = ruleFrom(parsed.data, `${origin}.${parsed.data.id ?? index + 1}`);
  if (typeof rule === "string") return problem({ key: "path", message: rule });
  const broad = whyTooBroad(rule);
  if (broad !== undefined) return problem(broad);
  return { rule, match: parsed.data.match ?? [], notMatch: parsed.data.notMatch ?? [] };
}

/** With what was found where the message says only what was expected. */
function found(message: string, path: readonly PropertyKey[], written: unknown): string {
  const [key] = path;
  const missing =
    path.length === 1 &&
    typeof written === "object" &&
    written !== null &&
    !Object.hasOwn(written, key ?? "");
  return missing ? `missing; ${message}` : message;
}

const hint = (key: string): string => {
  const near = nearest(
    key.toLowerCase().replaceAll(/[-_]/g, ""),
    RULE_KEYS.map((known) => known.toLowerCase()),
  );
  const known = RULE_KEYS.find((each) => each.toLowerCase() === near);
  return known === undefined ? `known keys: ${RULE_KEYS.join(", ")}` : `did you mean ${known}?`;
};

interface Mistake {
  readonly key: string;
  readonly message: string;
}

function mistakeIn(form: RuleForm, origin: Origin): Mistake | undefined {
  const { prefix, arg, effect, path, host, decision, exact, match = [] } = form;
  if ([prefix, arg, effect, path, host].every((each) => each === undefined))
    return { key: "", message: "the rule has no condition: give a prefix, arg, effect, path or host" };
  if (origin === "project" && decision === "allow")
    return { key: "decision", message: "a project's rule may only tighten: ask or deny" };
  if (exact === true && prefix === undefined)
    return { key: "exact", message: "belongs to a prefix, and there is none" };
  if (decision === "allow" && match.length === 0)
    return { key: "match", message: "missing; a rule that allows shows at least one command that it is for" };
  return mistakenEffect(form);
}

function mistakenEffect({ effect, path, host }: RuleForm): Mistake | undefined {
  const names = listOf(effect);
  if (names.length === 0) return undefined;
  const stranger = names.find((name) => !EFFECT_NAMES.includes(name));
  if (stranger !== undefined)
    return { key: "effect", message: `${stranger} is no effect; ${nearEffect(stranger)}` };
  if (path !== undefined && !names.some((name) => PATH_EFFECTS.has(name)))
    return { key: "path", message: `${names.join(", ")} has no path` };
  if (host !== undefined && !names.includes("network"))
    return { key: "host", message: `${names.join(", ")} has no host; network has` };
  return undefined;
}

const nearEffect = (name: string): string => {
  const near = nearest(name, EFFECT_NAMES);
  return near === undefined ? `known: ${EFFECT_NAMES.join(", ")}` : `did you mean ${near}?`;
};

const listOf = (value: string | readonly string[] | undefined): readonly string[] =>
  value === undefined ? [] : typeof value === "string" ? [value] : value;

const optional = <T>(list: readonly T[]): readonly T[] | null => (list.length === 0 ? null : list);

/** The rule, or what is wrong with its path. */
function ruleFrom(form: RuleForm, id: string): UserRule | string {
  const path = listOf(form.path).map((text) => ({ text, pattern: readPathPattern(text) }));
  const bad = path.find(({ pattern }) => pattern === undefined);
  if (bad !== undefined)
    return `${bad.text} is no pattern: names between slashes, without . and .., with * ? [a-z] in them, or **`;
  return {
    id,
    decision: form.decision,
    reason: form.reason,
    prefix: form.prefix?.map((each) => new Set(listOf(each))) ?? null,
    exact: form.exact === true,
    arg: optional(listOf(form.arg).map(readWildcard)),
    effect: optional(listOf(form.effect)),
    path: optional(path.flatMap(({ pattern }) => pattern ?? [])),
    host: optional(listOf(form.host).map((each) => readWildcard(each.toLowerCase()))),
  };
}
