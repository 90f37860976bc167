/** Rules made from commands: the narrowest ones for a single command, a general one for several of one shape. */
import { pathBelow, isInside } from "../core/file-names.ts";
import { truncate } from "../core/wording.ts";
import type { CommandContext, CommandDecision, CommandPolicy, TextEffects } from "./decide.ts";
import { type Called, isAside } from "./effects/call-effects.ts";
import type { Effect } from "./effects/effect.ts";
import { type PolicyPlaces, placesFor, rulingOf } from "./judge-effects.ts";
import { asGlob, joinShapes, type Shape, shapeOf } from "./propose-grants.ts";
import {
  type Examples,
  isNeverAllowed,
  pathOf,
  readRules,
  type RuleForm,
  type RuleProblem,
  type UserRule,
} from "./rule.ts";
import { shellText } from "./shell/shell-syntax.ts";

export type Remembered =
  | { readonly kind: "rules"; readonly rules: readonly RuleForm[] }
  | { readonly kind: "refused"; readonly reason: string };

/**
 * The narrowest rules that allow exactly this command, each with its example; or why there are none. They are verified before
 * they are returned: together with the existing rules they allow the text in workspace-write.
 */
export function ruleFor(
  text: string,
  context: Omit<CommandContext, "mode">,
  policy: CommandPolicy,
): Remembered {
  const judged = policy.decide(text, { ...context, mode: "workspace-write" });
  const [first] = judged.rules;
  if (judged.decision === "deny") return refused(`it is denied: ${first?.reason} (${first?.id})`);
  if (judged.decision === "allow") return refused("it is allowed already");
  const looked = policy.look(text, context);
  const [flaw] = looked.flaws;
  if (flaw !== undefined) return refused(`no rule can allow it: ${flaw.reason} (${flaw.id})`);
  const drafts = draftsFor(text, looked, placesFor(context));
  if (typeof drafts === "string") return refused(drafts);
  return verifiedRules(drafts, { text, context, policy });
}

const refused = (reason: string): Remembered => ({ kind: "refused", reason });

interface Trial {
  readonly text: string;
  readonly context: Omit<CommandContext, "mode">;
  readonly policy: CommandPolicy;
}

/** Tries rules by words alone first, then rules with paths. */
function verifiedRules(drafts: readonly Draft[], trial: Trial): Remembered {
  let result: Remembered = refused("no rule can match exactly this");
  for (const level of [0, 1, 2]) {
    result = verifiedAtLevel(drafts, level, trial);
    if (result.kind === "rules") break;
  }
  return result;
}

function verifiedAtLevel(drafts: readonly Draft[], level: number, trial: Trial): Remembered {
  const { text, context, policy } = trial;
  const rules: RuleForm[] = [];
  const compiled: UserRule[] = [];
  for (const { rules: ways, example } of drafts) {
    const rule = ways[Math.min(level, ways.length - 1)] ?? ways[0];
    const made = withExample(rule, text, trial) ?? withExample(rule, example, trial);
    if (made === undefined)
      return refused(
        `no rule can match exactly this in every workspace: ${example}; write paths that begin with ~ or /`,
      );
    rules.push(made.form);
    compiled.push({ ...made.rule, id: `user.new-${rules.length}` });
  }
  const all = [...(context.rules ?? []), ...compiled];
  const judged = policy.decide(text, { ...context, mode: "workspace-write", rules: all });
  const [first] = judged.rules;
  return judged.decision === "allow"
    ? { kind: "rules", rules }
    : refused(`no rule can allow it: ${first?.reason} (${first?.id})`);
}

/** The rule with its example, if that example passes. */
function withExample(
  draft: DraftRule,
  match: string,
  { context, policy }: Trial,
): { readonly form: RuleForm; readonly rule: UserRule } | undefined {
  const form: RuleForm = { ...draft, decision: "allow", reason: REASON, match: [match] };
  const { examples } = readRules([form], "user");
  const [only] = examples;
  if (only === undefined || failedExamples(examples, policy, context.home).length > 0) return undefined;
  return { form, rule: only.rule };
}

const REASON = "approved as it stands";

type DraftRule = Pick<RuleForm, "prefix" | "exact" | "effect" | "path">;

/** A draft of a rule, and texts that may serve as its example. */
interface Draft {
  /** Variants: words alone, then with paths, then with paths from `~` or `/`. */
  readonly rules: readonly [DraftRule, ...DraftRule[]];
  readonly example: string;
}

/** One draft for each command or redirect that is asked about, or why there is none. */
function draftsFor(
  text: string,
  { calls, effects }: TextEffects,
  places: PolicyPlaces,
): readonly Draft[] | string {
  const drafts = new Map<string, Draft>();
  const askedByCommand = new Map<Called, Effect[]>();
  for (const effect of effects) {
    const { verdict, reason, id } = rulingOf(effect, places);
    if (verdict !== "ask") continue;
    if (isNever(effect)) return `no rule can allow it: ${reason} (${id})`;
    const called = calls[effect.call];
    if (called === undefined || isAside(called, effect.span)) {
      const draft = redirectDraft(effect, places);
      if (draft === undefined) return `a rule for this would apply to every command: ${reason} (${id})`;
      drafts.set(draft.example, draft);
    } else askedByCommand.set(called, [...(askedByCommand.get(called) ?? []), effect]);
  }
  for (const [called, askedEffects] of askedByCommand) {
    const draft = commandDraft(called, askedEffects, { text, places });
    if (typeof draft === "string") return draft;
    drafts.set(draft.example, draft);
  }
  return [...drafts.values()];
}

const isNever = (effect: Effect): boolean =>
  isNeverAllowed(effect.kind === "unknown" ? effect.doubt : effect.kind) ||
  (effect.kind === "code" && isNeverAllowed(`code.${effect.from}`));

/**
 * `> file` is an effect of the shell: a rule for it names a file and no command, so only a file of the workspace is
 * accepted.
 */
function redirectDraft(effect: Effect, places: PolicyPlaces): Draft | undefined {
  const at = pathOf(effect);
  if (effect.kind !== "write" || at === null || places.facts(at, "write").kind !== "workspace")
    return undefined;
  const [path] = pathTexts([at], { ...places, relative: true });
  if (path === undefined) return undefined;
  return { rules: [{ effect: "write", path }], example: `echo > ${shellText([path])}` };
}

function commandDraft(
  { words }: Called,
  effects: readonly Effect[],
  { text, places }: { readonly text: string; readonly places: PolicyPlaces },
): Draft | string {
  const vague = words.find(({ kind }) => kind !== "literal");
  if (vague !== undefined)
    return `the value of ${text.slice(...vague.span)} is known only at run time: write it out`;
  const prefix = words.map(({ value }) => value);
  const rule = { prefix, exact: true } as const;
  const paths = effects.flatMap((effect) => (isInline(effect) ? [] : (pathOf(effect) ?? [])));
  const named = [true, false].map((relative) => pathTexts(paths, { ...places, relative }));
  const withPaths = named.filter((path) => path.length > 0).map((path) => ({ ...rule, path }));
  return { rules: [rule, ...withPaths], example: shellText(prefix) };
}

const isInline = (effect: Effect): boolean => effect.kind === "code" && effect.from === "inline";

interface Naming {
  readonly workspace: string;
  readonly home: string;
  /** Paths in the workspace, relative to it. */
  readonly relative: boolean;
}

/** Paths as a rule writes them, without those that would be patterns. */
const pathTexts = (paths: readonly string[], { workspace, home, relative }: Naming): string[] =>
  [...new Set(paths)]
    .filter((path) => !/[*?[\]\\]/.test(path))
    .map((path) => {
      if (relative && isInside(workspace, path)) return pathBelow(workspace, path) || ".";
      return isInside(home, path) ? `~/${pathBelow(home, path)}`.replace(/\/$/, "") : path;
    });

/*
 * Merges rules that differ only in what belongs to one run (a hash, a date, a temporary name). That takes at least two
 * recorded ones: a single one does not show which of its parts vary.
 */

type Around = Pick<CommandContext, "workspace" | "home"> & { readonly policy: CommandPolicy };

/**
 * Merges rules of one shape. `holds`: whether everything recorded still runs under the whole list; if not, the rules
 * stay as they are.
 */
export function generalised(
  forms: readonly RuleForm[],
  around: Around,
  holds: (list: readonly RuleForm[]) => boolean,
): readonly RuleForm[] {
  let list = forms;
  for (const members of clusters(forms)) {
    for (const form of [byPaths, byArgument].flatMap((make) => make(members, around) ?? [])) {
      const next = list.flatMap((each) =>
        members[0] === each ? [form] : members.includes(each) ? [] : [each],
      );
      if (!isSound(form, around) || !holds(next)) continue;
      list = next;
      break;
    }
  }
  return list;
}

type Members = readonly [RuleForm, RuleForm, ...RuleForm[]];

/** Groups of at least two rules of one shape. */
function clusters(forms: readonly RuleForm[]): readonly Members[] {
  const byShape = new Map<string, RuleForm[]>();
  for (const form of forms) {
    const { effect, path, exact } = form;
    const texts = form.prefix === undefined ? pathsOf(form) : wordsOf(form);
    const key = JSON.stringify([
      form.prefix === undefined,
      effect,
      exact,
      path === undefined,
      texts.map(keyOf),
    ]);
    byShape.set(key, [...(byShape.get(key) ?? []), form]);
  }
  return [...byShape.values()].flatMap(([first, second, ...others]) =>
    first === undefined || second === undefined ? [] : [[first, second, ...others] as const],
  );
}

const keyOf = (text: string): string => shapeOf(text).key;
export const pathsOf = ({ path }: RuleForm): readonly string[] =>
  typeof path === "string" ? [path] : (path ?? []);
export const wordsOf = ({ prefix = [] }: RuleForm): readonly string[] =>
  prefix.map((word) => (typeof word === "string" ? word : (word[0] ?? "")));

/** Joins texts of one shape, with a pattern where they differ. */
const merged = (
  texts: readonly string[],
  write: Parameters<typeof joinShapes>[1],
): ReturnType<typeof joinShapes> =>
  joinShapes(
    texts.map((text): Shape => shapeOf(text)),
    write,
  );

/** A rule that names paths by globs, if the commands are asked about only because they change and read paths. */
function byPaths(members: Members, around: Around): RuleForm | undefined {
  const [first] = members;
  if (first.prefix === undefined) {
    const { text } = merged(members.flatMap(pathsOf), asGlob);
    return withExamples({ ...first, path: text }, members);
  }
  const effectsOf = members.map((form) => askedEffects(form, around));
  const all = effectsOf.flat();
  const paths = all.flatMap((effect) => pathOf(effect) ?? []);
  if (all.some(({ kind }) => !OF_PATHS.has(kind)) || paths.length < all.length) return undefined;
  const written = pathTexts(paths, { ...around, relative: true });
  const globs = [...grouped(written)].map((texts) => merged(texts, asGlob).text);
  const { exact: _, ...others } = first;
  return withExamples(
    {
      ...others,
      prefix: fixedWords(members),
      effect: [...new Set(all.map(({ kind }) => kind))],
      path: globs,
    },
    members,
  );
}

const OF_PATHS: ReadonlySet<string> = new Set(["read", "write", "delete", "permissions"]);

const grouped = (texts: readonly string[]): Iterable<readonly string[]> => Map.groupBy(texts, keyOf).values();

/**
 * A rule with a pattern for one argument, for code of the project that has another name each time; the words before it
 * stay.
 */
function byArgument(members: Members, around: Around): RuleForm | undefined {
  const [first] = members;
  const prefix = fixedWords(members);
  if (prefix.length < 2 || prefix[1]?.startsWith("-") === true || first.path !== undefined) return undefined;
  const effects = members.flatMap((form) => askedEffects(form, around));
  if (!effects.every((effect) => effect.kind === "code" && OWN_CODE.has(effect.from))) return undefined;
  const words = wordsOf(first).map((_, at) => members.map((form) => wordsOf(form)[at] ?? ""));
  const [varying] = words.flatMap((texts) => {
    const { text, differs } = merged(texts, () => "*");
    return differs && !texts.some((each) => each.includes("*")) ? [text] : [];
  });
  if (varying === undefined) return undefined;
  const { exact: _, ...others } = first;
  return withExamples({ ...others, prefix, arg: varying }, members);
}

const OWN_CODE: ReadonlySet<string> = new Set(["project", "check"]);

/** The first words that all rules share. */
function fixedWords(members: Members): string[] {
  const lists = members.map(wordsOf);
  const [first = []] = lists;
  const end = first.findIndex((word, at) => lists.some((words) => words[at] !== word));
  return first.slice(0, end === -1 ? first.length : end);
}

const MAX_EXAMPLES = 4;

/** Adds the recorded commands as examples, and a command with a name of another form as one that must not match. */
function withExamples(form: RuleForm, members: Members): RuleForm {
  const { notMatch: _, ...others } = form;
  const match = [...new Set(members.flatMap((each) => each.match ?? []))].slice(0, MAX_EXAMPLES);
  const [first] = members;
  const other = (texts: readonly string[], at: (form: RuleForm) => readonly string[]): readonly string[] =>
    texts.map(
      (_, index) =>
        merged(
          members.map((each) => at(each)[index] ?? ""),
          () => "other",
        ).text,
    );
  const beyond =
    first.prefix === undefined
      ? `echo > ${shellText(other(pathsOf(first), pathsOf))}`
      : shellText(other(wordsOf(first), wordsOf).map((word) => word.replaceAll("*", "")));
  // An argument may be any text that fits its pattern, so one of another form must begin differently.
  const strange = form.arg === undefined ? beyond : shellText([...wordsOf(form), "../other"]);
  return { ...others, match, notMatch: [strange] };
}

/** The effects that a person would be asked about in the command of an exact rule. */
function askedEffects(form: RuleForm, { policy, ...around }: Around): readonly Effect[] {
  const places = placesFor(around);
  const { effects } = policy.look(shellText(wordsOf(form)), around);
  return effects.filter((effect) => rulingOf(effect, places).verdict === "ask");
}

function isSound(form: RuleForm, { policy, home }: Around): boolean {
  const { examples, problems } = readRules([form], "user");
  return problems.length === 0 && failedExamples(examples, policy, home).length === 0;
}

/** Rules and their examples hold in every workspace: examples are tried in a made-up one. */
const WORKSPACE = "/workspace";

/** Runs each example with its own rule alone in workspace-write; the keys are positions in the list of rules. */
export function failedExamples(
  list: readonly Examples[],
  policy: CommandPolicy,
  home: string,
): readonly RuleProblem[] {
  return list.flatMap(({ rule, match, notMatch }, index) => {
    const judge = (text: string): CommandDecision =>
      policy.decide(text, { workspace: WORKSPACE, home, mode: "workspace-write", rules: [rule] });
    const failed = (key: string, number: number, message: string): RuleProblem => ({
      keys: [index, key, number],
      message,
    });
    return [
      ...match.flatMap((text, number) => {
        const judged = judge(text);
        return decides(rule, judged)
          ? []
          : [failed("match", number, `match: ${unmatched(text, rule, judged)}`)];
      }),
      ...notMatch.flatMap((text, number) =>
        decides(rule, judge(text))
          ? [failed("notMatch", number, `notMatch: ${quoteText(text)} is matched`)]
          : [],
      ),
    ];
  });
}

/** The rule applies; a rule that allows only passes where the whole text is allowed. */
const decides = (rule: UserRule, { decision, rules }: CommandDecision): boolean =>
  rules.some(({ id }) => id === rule.id) && (rule.decision !== "allow" || decision === "allow");

function unmatched(text: string, rule: UserRule, { decision, rules }: CommandDecision): string {
  const [first] = rules;
  const why = first === undefined || first.id === rule.id ? "" : `: ${first.reason} (${first.id})`;
  return rule.decision === "allow" && decision !== "allow"
    ? `${quoteText(text)} is still ${decision === "deny" ? "denied" : "asked about"}${why}`
    : `${quoteText(text)} is not matched`;
}

const quoteText = (text: string): string => JSON.stringify(truncate(text, 80));
