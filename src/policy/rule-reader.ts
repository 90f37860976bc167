import { lastName } from "../core/file-names.ts";
import { nearest, readWildcard, type Wildcard } from "../core/wording.ts";
import { isBroad } from "./judge-effects.ts";
import { RUNNING_OTHERS, RUNNING_WHAT_FOLLOWS } from "./programs/program-table.ts";
import { fixedPart, type PathPattern, readPathPattern, takesAll } from "./path-pattern.ts";
import {
  EFFECT_NAMES,
  type Examples,
  isNeverAllowed,
  PATH_EFFECTS,
  RULE_KEYS,
  type RuleForm,
  ruleForm,
  type RuleProblem,
  type UserRule,
} from "./rule.ts";

/** Origin of the rules. Whether a project's allow rules count is decided elsewhere. */
export type Origin = "user" | "project";

interface RulesRead {
  readonly examples: readonly Examples[];
  readonly problems: readonly RuleProblem[];
}

/** Reads a list of rules. Reports all problems, each with its position. */
export function readRules(written: readonly unknown[], origin: Origin): RulesRead {
  const examples: Examples[] = [];
  const problems: RuleProblem[] = [];
  const ids = new Set<string>();
  for (const [index, each] of written.entries()) {
    const read = readRule(each, index, origin);
    if (Array.isArray(read)) problems.push(...read);
    else if (ids.has(read.rule.id))
      problems.push({ keys: [index, "id"], message: `id: another rule already has the id ${read.rule.id}` });
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
      const message =
        key === "" ? withMissing(issue.message, issue.path, written) : `unknown key; ${hint(key)}`;
      return {
        keys: [index, ...keys],
        message: [keys.map(String).join("."), message].filter(Boolean).join(": "),
      };
    });
  const problem = ({ key, message }: { readonly key: string; readonly message: string }): RuleProblem[] => [
    { keys: key === "" ? [index] : [index, key], message: key === "" ? message : `${key}: ${message}` },
  ];
  const mistake = mistakeIn(parsed.data);
  if (mistake !== undefined) return problem(mistake);
  const rule = ruleFrom(parsed.data, `${origin}.${parsed.data.id ?? index + 1}`);
  if (typeof rule === "string") return problem({ key: "path", message: rule });
  const broad = whyTooBroad(rule);
  if (broad !== undefined) return problem(broad);
  return { rule, match: parsed.data.match ?? [], notMatch: parsed.data.notMatch ?? [] };
}

/** Tells if the value is missing: the message only names the expected one. */
function withMissing(message: string, path: readonly PropertyKey[], written: unknown): string {
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

function mistakeIn(form: RuleForm): Mistake | undefined {
  const { prefix, arg, effect, path, host, decision, exact, match = [], tool } = form;
  const others = Object.entries({
    prefix,
    arg,
    effect,
    path,
    host,
    exact,
    match: form.match,
    notMatch: form.notMatch,
  });
  if (tool !== undefined) {
    const second = others.find(([, value]) => value !== undefined);
    return (
      second && { key: second[0], message: "a rule with the condition tool can have no other condition" }
    );
  }
  if ([prefix, arg, effect, path, host].every((each) => each === undefined))
    return { key: "", message: "the rule has no condition: give a prefix, arg, effect, path, host or tool" };
  if (exact === true && prefix === undefined)
    return { key: "exact", message: "needs a prefix, and the rule has none" };
  if (decision === "allow" && match.length === 0)
    return {
      key: "match",
      message: "missing; a rule that allows needs at least one example of a command that it matches",
    };
  return mistakenEffect(form);
}

function mistakenEffect({ effect, path, host }: RuleForm): Mistake | undefined {
  const names = listOf(effect);
  if (names.length === 0) return undefined;
  const stranger = names.find((name) => !EFFECT_NAMES.includes(name));
  if (stranger !== undefined)
    return { key: "effect", message: `${stranger} is not an effect; ${nearEffect(stranger)}` };
  if (path !== undefined && !names.some((name) => PATH_EFFECTS.has(name)))
    return { key: "path", message: `${names.join(", ")} has no path` };
  if (host !== undefined && !names.includes("network"))
    return { key: "host", message: `${names.join(", ")} has no host; only network has one` };
  return undefined;
}

const nearEffect = (name: string): string => {
  const near = nearest(name, EFFECT_NAMES);
  return near === undefined ? `known: ${EFFECT_NAMES.join(", ")}` : `did you mean ${near}?`;
};

const listOf = (value: string | readonly string[] | undefined): readonly string[] =>
  value === undefined ? [] : typeof value === "string" ? [value] : value;

const optional = <T>(list: readonly T[]): readonly T[] | null => (list.length === 0 ? null : list);

/** The rule, or the problem with its path. */
function ruleFrom(form: RuleForm, id: string): UserRule | string {
  const path = listOf(form.path).map((text) => ({ text, pattern: readPathPattern(text) }));
  const bad = path.find(({ pattern }) => pattern === undefined);
  if (bad !== undefined)
    return `${bad.text} is not a valid pattern: write names separated by slashes, without . and ..; a name may contain * ? [a-z], or be **`;
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
    tool: optional(listOf(form.tool).map(readWildcard)),
  };
}

/** Why an allow rule cannot be intended as written, and the key to blame. */
interface TooBroad {
  readonly key: string;
  readonly message: string;
}

function whyTooBroad(rule: UserRule): TooBroad | undefined {
  if (rule.decision !== "allow") return undefined;
  if (rule.tool !== null) return broadTool(rule);
  return broadPrefix(rule) ?? broadEffect(rule) ?? broadPath(rule) ?? broadHost(rule);
}

const blame = (key: string, message: string): TooBroad => ({ key, message });

/** The word without its folders, and also without its version: `/usr/bin/python3.12` becomes python. */
const plainNames = (word: string): readonly string[] => {
  const name = lastName(word);
  return [name, name.replace(/[-\d.]+$/, "") || name];
};

function broadPrefix({ prefix, exact, host, arg }: UserRule): TooBroad | undefined {
  if (prefix === null)
    return arg === null
      ? undefined
      : blame("arg", "an argument alone names no program: give the prefix that it belongs to");
  const [programs = new Set<string>(), second] = prefix;
  for (const word of exact ? [] : programs) {
    const names = plainNames(word);
    if (names.some((name) => RUNNING_WHAT_FOLLOWS.has(name)))
      return blame("prefix", `${word} runs another command: give the words of that command, without ${word}`);
    if (!names.some((name) => RUNNING_OTHERS.has(name))) continue;
    if (second === undefined && host === null)
      return blame(
        "prefix",
        `${word} alone is too broad: it can run or fetch anything; give the next word too`,
      );
    const option = second === undefined ? undefined : [...second].find((each) => each.startsWith("-"));
    if (option !== undefined)
      return blame(
        "prefix",
        `${word} ${option} is too broad: an option does not say what runs; give all words, and exact = true`,
      );
  }
  return undefined;
}

function broadEffect({ effect, path, host, prefix }: UserRule): TooBroad | undefined {
  const never = effect?.find(isNeverAllowed);
  if (never !== undefined) return blame("effect", `no rule can allow ${never}`);
  if (prefix === null && path === null && host === null)
    return blame("effect", "an effect alone is too broad to be allowed: add a prefix, a path or a host");
  const [stranger] = effect?.filter((name) => !PATH_EFFECTS.has(name) && name !== "network") ?? [];
  if (prefix === null && stranger !== undefined)
    return blame(
      "effect",
      `${stranger} has no path and no host: add the prefix of the command that may do it`,
    );
  return undefined;
}

/** A made-up workspace, so that the pattern itself is judged. */
const NOWHERE = { workspace: "/home/user/projects/this", home: "/home/user" } as const;

const takesInAll = (each: PathPattern): boolean =>
  (each.fixed < each.names.length && takesAll(each) && isBroad(fixedPart(each, NOWHERE), NOWHERE)) ||
  each.names.length === 0 ||
  fixedPart(each, NOWHERE) === "/";

function broadPath({ path, effect, prefix, exact }: UserRule): TooBroad | undefined {
  if (path === null || exact) return undefined;
  if (effect === null && prefix === null)
    return blame(
      "path",
      'a path alone is too broad to be allowed: say which effect, such as effect = "read"',
    );
  return path.some(takesInAll)
    ? blame("path", 'matches nearly everything: name a folder further down, such as "build/**"')
    : undefined;
}

/** Any star other than `*.` in front of a domain. */
const takesMany = (each: Wildcard): boolean =>
  each.length > 1 && (each.length > 2 || each[0] !== "" || !/^\.[^.]+\.[^.]/.test(each[1] ?? ""));

function broadHost({ host }: UserRule): TooBroad | undefined {
  return host?.some(takesMany) === true
    ? blame("host", 'matches too many hosts: give a name, or "*.example.com"')
    : undefined;
}

/** A rule may allow all tools of a server, whose names begin with the name that the user gave it, but not all tools. */
const broadTool = ({ tool }: UserRule): TooBroad | undefined =>
  tool?.some(([first = ""]) => first === "") === true
    ? blame("tool", 'matches every tool: give a name, or "server__*"')
    : undefined;
