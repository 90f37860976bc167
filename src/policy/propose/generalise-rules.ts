import type { CommandContext, CommandPolicy } from "../decide.ts";
import type { Effect } from "../effects/effect.ts";
import { placesFor, rulingOf } from "../judge-effects.ts";
import { pathTexts } from "../remember-rule.ts";
import { failedExamples } from "../rule-examples.ts";
import { readRules } from "../rule-reader.ts";
import { pathOf, type RuleForm } from "../rule.ts";
import { shellText } from "../shell/quote.ts";
import { asGlob, joined, type Shape, shapeOf } from "./run-specific.ts";

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
const pathsOf = ({ path }: RuleForm): readonly string[] => (typeof path === "string" ? [path] : (path ?? []));
const wordsOf = ({ prefix = [] }: RuleForm): readonly string[] =>
  prefix.map((word) => (typeof word === "string" ? word : (word[0] ?? "")));

/** Joins texts of one shape, with a pattern where they differ. */
const merged = (texts: readonly string[], write: Parameters<typeof joined>[1]): ReturnType<typeof joined> =>
  joined(
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
  const asked = members.map((form) => askedEffects(form, around));
  const all = asked.flat();
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
  const asked = members.flatMap((form) => askedEffects(form, around));
  if (!asked.every((effect) => effect.kind === "code" && OWN_CODE.has(effect.from))) return undefined;
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
