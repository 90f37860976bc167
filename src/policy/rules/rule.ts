import { z } from "zod";
import { type Verdict, VERDICTS } from "../../core/decision.ts";
import { CHANGE_KINDS, type Effect } from "../effects/effect.ts";
import { DOUBTS } from "../judge-effects.ts";
import type { PathPattern } from "./path-pattern.ts";

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

/** The text of a TOML file with rules put at its end; all that stood there stays as it is. */
export function withRules(document: string, rules: readonly RuleForm[]): string {
  const end = document.includes("\r\n") ? "\r\n" : "\n";
  const before = document === "" || document.endsWith("\n") ? document : `${document}${end}`;
  const gap = before.trim() === "" ? "" : end;
  return before + gap + rules.map((rule) => tomlRule(rule).replaceAll("\n", end)).join(end);
}

/** One rule as it stands in a TOML file. */
export function tomlRule(rule: RuleForm): string {
  const given = Object.entries(rule);
  const lines = RULE_KEYS.flatMap((key) => {
    const value: unknown = given.find(([name]) => name === key)?.[1];
    return value === undefined ? [] : [`${key} = ${tomlValue(value)}`];
  });
  return `[[rule]]\n${lines.join("\n")}\n`;
}

function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`;
  // JSON's escapes are TOML's too, but for one character that JSON leaves as it is.
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

/** What a rule may name: a kind, `code.…`, `repository.…`, or the id of a doubt. */
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

/** Effects that have a path for a rule to name. */
export const PATH_EFFECTS: ReadonlySet<string> = new Set(
  "read write delete permissions device code code.settings code.check code.project".split(" "),
);

/** What no rule allows: denied anyway, or nobody can say what it is that would be allowed. */
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

/** A tree goes with all that lies in it. */
export const isWhole = (effect: Effect): boolean =>
  (effect.kind === "delete" || effect.kind === "permissions") && effect.recursive;

/** A text with `*` for any text, between its stars. */
export type Wildcard = readonly string[];

export const readWildcard = (text: string): Wildcard => text.split("*");

/** In linear time: between first and last part, the leftmost place of each part is as good as any. */
export function fitsWildcard([first = "", ...rest]: Wildcard, text: string): boolean {
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= end;
}

const text = (what: string): z.ZodString =>
  z
    .string(`expected ${what}`)
    .min(1, `expected ${what}, found an empty text`)
    .refine((value) => !/[\0-\x1F\x7F]/.test(value), `expected ${what}, found a control character`);

const oneOrMore = (what: string): z.ZodType<string | string[]> =>
  z.union([text(what), z.array(text(what)).min(1)], `expected ${what}, or a list of such`);

const WORDS = 'expected the first words of a command, such as ["npm", "run", ["build", "lint"]]';
/** Of several lines perhaps: a program given as an argument. */
const oneWord = z.string(WORDS).regex(/^[^\0-\x08\x0B-\x1F\x7F]+$/, WORDS);
const word = z.union([oneWord, z.array(oneWord).min(1)], WORDS);
const shown = z.array(z.string("expected a command as text"), "expected a list of commands");

/** One rule as it is written. Keys that are not here are mistakes. */
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
    decision: z.enum(VERDICTS, `expected one of ${VERDICTS.join(", ")}`),
    reason: z
      .string("expected why the rule is there, in words")
      .refine((value) => value.trim() !== "", "expected why the rule is there, in words"),
    match: shown.optional(),
    notMatch: shown.optional(),
  },
  "expected a rule",
);

export type RuleForm = z.infer<typeof ruleForm>;
export const RULE_KEYS: readonly string[] = Object.keys(ruleForm.shape);
