import { z } from "zod";
import { type Verdict, VERDICTS } from "../core/decision.ts";
import type { Wildcard } from "../core/wording.ts";
import { CHANGE_KINDS, type Effect } from "./effects/effect.ts";
import { DOUBTS } from "./judge-effects.ts";
import type { PathPattern } from "./path-pattern.ts";

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
export const PATH_EFFECTS: ReadonlySet<string> = new Set(
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
