import { z } from "zod";
import { type Verdict, VERDICTS } from "../core/decision.ts";
import { lastName } from "../core/file-names.ts";
import { nearest, readWildcard, type Wildcard } from "../core/wording.ts";
import { CHANGE_KINDS, type Effect } from "./effects/effect.ts";
import { DOUBTS } from "./judge-effects.ts";
import { isBroad } from "./paths/broad-places.ts";
import { fixedPart, type PathPattern, readPathPattern, takesAll } from "./paths/path-pattern.ts";
import { RUNNING_OTHERS, RUNNING_WHAT_FOLLOWS } from "./programs/program-models.ts";

/** One rule with its patterns read. A condition that is null is not checked; all others must hold. */
export interface UserRule {
  /** `user.…` or `project.…`: the id in decisions. */
  readonly id: string;
  readonly decision: Verdict;
  readonly reason: string;
  /** The first words of a command, each with its alternatives. */
  readonly prefix: readonly ReadonlySet<string>[] | null;
  /** The prefix has to be the whole command. */
  readonly exact: boolean;
  /** An argument in any position. */
  readonly arg: readonly Wildcard[] | null;
  readonly effect: readonly string[] | null;
  readonly path: readonly PathPattern[] | null;
  readonly host: readonly Wildcard[] | null;
  /** Names of tools, with `*` for any text. Such a rule has no other condition, and concerns no command and no path. */
  readonly tool: readonly Wildcard[] | null;
}

/** In the order of the files; the order has no effect on decisions. */
export type UserRules = readonly UserRule[];

/** A problem in a rule: its position in the list, then the key to blame, if any. */
export interface RuleProblem {
  readonly keys: readonly PropertyKey[];
  readonly message: string;
}

/** A rule with the examples that a person wrote for it. */
export interface Examples {
  readonly rule: UserRule;
  readonly match: readonly string[];
  readonly notMatch: readonly string[];
}

/** Appends rules to the text of a TOML file; the existing text is unchanged. */
export function withRules(document: string, rules: readonly RuleForm[]): string {
  const end = document.includes("\r\n") ? "\r\n" : "\n";
  const before = document === "" || document.endsWith("\n") ? document : `${document}${end}`;
  const gap = before.trim() === "" ? "" : end;
  return before + gap + rules.map((rule) => tomlRule(rule).replaceAll("\n", end)).join(end);
}

/** One rule in TOML. */
export function tomlRule(rule: RuleForm): string {
  const entries = Object.entries(rule);
  const lines = RULE_KEYS.flatMap((key) => {
    const value: unknown = entries.find(([name]) => name === key)?.[1];
    return value === undefined ? [] : [`${key} = ${tomlValue(value)}`];
  });
  return `[[rule]]\n${lines.join("\n")}\n`;
}

function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`;
  // JSON escapes are valid in TOML; JSON leaves one character unescaped that TOML does not allow.
  return JSON.stringify(value).replaceAll("\u007F", String.raw`\u007F`);
}

type Kind = Effect["kind"];
type CodeFrom = Extract<Effect, { readonly kind: "code" }>["from"];

const KINDS: Readonly<Record<Kind, true>> = {
  read: true,
  write: true,
  delete: true,
  permissions: true,
  code: true,
  network: true,
  install: true,
  repository: true,
  process: true,
  system: true,
  privilege: true,
  device: true,
  bomb: true,
  unknown: true,
};

const CODE = [
  "settings",
  "check",
  "project",
  "inline",
  "input",
  "fetched",
] as const satisfies readonly CodeFrom[];

/** Names that a rule may use for effects: a kind, `code.…`, `repository.…`, or the id of a doubt. */
export const EFFECT_NAMES: readonly string[] = [
  ...Object.keys(KINDS),
  ...CODE.map((from) => `code.${from}`),
  ...CHANGE_KINDS.map((change) => `repository.${change}`),
  ...DOUBTS,
];

export function isCalled(effect: Effect, name: string): boolean {
  if (effect.kind === name) return true;
  if (effect.kind === "unknown") return effect.doubt === name;
  if (effect.kind === "code") return name === `code.${effect.from}`;
  return effect.kind === "repository" && name === `repository.${effect.change}`;
}

/** Effects with a path that a rule can name. */
const PATH_EFFECTS: ReadonlySet<string> = new Set(
  "read write delete permissions device code code.settings code.check code.project".split(" "),
);

/** Effects that no rule can allow: always denied, or without a definite object. */
export const isNeverAllowed = (name: string): boolean =>
  /^(?:system|privilege|device|bomb|unknown|code\.(?:input|fetched)|(?:word|shell|env)\..*)$/.test(name);

export function pathOf(effect: Effect): string | null {
  switch (effect.kind) {
    case "read":
    case "write":
    case "delete":
    case "permissions":
    case "device":
    case "code":
      return effect.path;
    default:
      return null;
  }
}

/** A recursive effect covers everything below the path. */
export const isWhole = (effect: Effect): boolean =>
  (effect.kind === "delete" || effect.kind === "permissions") && effect.recursive;

const text = (what: string): z.ZodString =>
  z
    .string(`expected ${what}`)
    .min(1, `expected ${what}, found an empty string`)
    .refine((value) => !/[\0-\x1F\x7F]/.test(value), `expected ${what}, found a control character`);

const oneOrMore = (what: string): z.ZodType<string | string[]> =>
  z.union([text(what), z.array(text(what)).min(1)], `expected ${what}, or a list of these`);

const WORDS = 'expected the first words of a command, such as ["npm", "run", ["build", "lint"]]';
/** May have several lines: a program given as an argument. */
const oneWord = z.string(WORDS).regex(/^[^\0-\x08\x0B-\x1F\x7F]+$/, WORDS);
const word = z.union([oneWord, z.array(oneWord).min(1)], WORDS);
const shown = z.array(z.string("expected a command as text"), "expected a list of commands");

/** One rule as written. Unknown keys are errors. */
export const ruleForm = z.strictObject(
  {
    id: z
      .string("expected a name")
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "expected a name of letters, digits, dots and dashes")
      .optional(),
    prefix: z.array(word, WORDS).min(1, WORDS).optional(),
    exact: z.boolean("expected true or false").optional(),
    arg: oneOrMore("an argument, * for any text").optional(),
    effect: oneOrMore("the name of an effect").optional(),
    path: oneOrMore('a path, such as "src/**", "~/notes/**" or "/etc/hosts"').optional(),
    host: oneOrMore('a host, such as "example.com" or "*.example.com"').optional(),
    tool: oneOrMore('the name of a tool, such as "web_fetch" or "tracker__*"').optional(),
    decision: z.enum(VERDICTS, `expected one of ${VERDICTS.join(", ")}`),
    reason: z
      .string("expected the reason for the rule, in words")
      .refine((value) => value.trim() !== "", "expected the reason for the rule, in words"),
    match: shown.optional(),
    notMatch: shown.optional(),
  },
  "expected a rule",
);

export type RuleForm = z.infer<typeof ruleForm>;
export const RULE_KEYS: readonly string[] = Object.keys(ruleForm.shape);

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

const tooBroad = (key: string, message: string): TooBroad => ({ key, message });

/** The word without its folders, and also without its version: `/usr/bin/python3.12` becomes python. */
const plainNames = (word: string): readonly string[] => {
  const name = lastName(word);
  return [name, name.replace(/[-\d.]+$/, "") || name];
};

function broadPrefix({ prefix, exact, host, arg }: UserRule): TooBroad | undefined {
  if (prefix === null)
    return arg === null
      ? undefined
      : tooBroad("arg", "an argument alone names no program: give the prefix that it belongs to");
  const [programs = new Set<string>(), second] = prefix;
  for (const word of exact ? [] : programs) {
    const names = plainNames(word);
    if (names.some((name) => RUNNING_WHAT_FOLLOWS.has(name)))
      return tooBroad(
        "prefix",
        `${word} runs another command: give the words of that command, without ${word}`,
      );
    if (!names.some((name) => RUNNING_OTHERS.has(name))) continue;
    if (second === undefined && host === null)
      return tooBroad(
        "prefix",
        `${word} alone is too broad: it can run or fetch anything; give the next word too`,
      );
    const option = second === undefined ? undefined : [...second].find((each) => each.startsWith("-"));
    if (option !== undefined)
      return tooBroad(
        "prefix",
        `${word} ${option} is too broad: an option does not say what runs; give all words, and exact = true`,
      );
  }
  return undefined;
}

function broadEffect({ effect, path, host, prefix }: UserRule): TooBroad | undefined {
  const never = effect?.find(isNeverAllowed);
  if (never !== undefined) return tooBroad("effect", `no rule can allow ${never}`);
  if (prefix === null && path === null && host === null)
    return tooBroad("effect", "an effect alone is too broad to be allowed: add a prefix, a path or a host");
  const [stranger] = effect?.filter((name) => !PATH_EFFECTS.has(name) && name !== "network") ?? [];
  if (prefix === null && stranger !== undefined)
    return tooBroad(
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
    return tooBroad(
      "path",
      'a path alone is too broad to be allowed: say which effect, such as effect = "read"',
    );
  return path.some(takesInAll)
    ? tooBroad("path", 'matches nearly everything: name a folder further down, such as "build/**"')
    : undefined;
}

/** Any star other than `*.` in front of a domain. */
const takesMany = (each: Wildcard): boolean =>
  each.length > 1 && (each.length > 2 || each[0] !== "" || !/^\.[^.]+\.[^.]/.test(each[1] ?? ""));

function broadHost({ host }: UserRule): TooBroad | undefined {
  return host?.some(takesMany) === true
    ? tooBroad("host", 'matches too many hosts: give a name, or "*.example.com"')
    : undefined;
}

/** A rule may allow all tools of a server, whose names begin with the name that the user gave it, but not all tools. */
const broadTool = ({ tool }: UserRule): TooBroad | undefined =>
  tool?.some(([first = ""]) => first === "") === true
    ? tooBroad("tool", 'matches every tool: give a name, or "server__*"')
    : undefined;
