import type { Box } from "../../core/ports.ts";
import { isOfTests } from "../../core/test-files.ts";
import { textOfBytes } from "../../core/text/bytes.ts";
import { folderBefore } from "../../core/text/file-paths.ts";
import { visibleLine } from "../../core/text/visible.ts";
import { isCache } from "./run-changes.ts";

/*
 * What a request says about files by name, and whether that is so at the end: a deleted file is gone, a created file
 * exists, a file to be changed is changed. Small models empty a file that they should delete, or write to the old name
 * of one that they should rename, and say that it is done. Only plain English sentences that say exactly this are read:
 * a wrong demand would cost a finished run.
 */

export interface FilesWanted {
  /** Paths relative to the workspace. */
  readonly gone: readonly string[];
  /** For each entry, one of these names has to exist. */
  readonly there: readonly (readonly string[])[];
}

/** A longer text describes a task in which names may stand for anything. */
const MOST_CHARACTERS = 600;

const EXTENSIONS =
  "(?:[cm]?[jt]sx?|pyi?|rb|rs|go|java|kts?|c|cc|cpp|cxx|h|hpp|cs|php|pl|pm|lua|swift|scala|sh|bash|bats|sql|html?|css|scss|json5?|jsonl|ya?ml|toml|xml|svg|md|rst|adoc|txt|csv|tsv|lock|ini|cfg|conf|env|log|diff|patch|bak|orig|old|tmp|example|mk|cmake|gradle|vue|svelte|ipynb|tex|png|jpe?g|gif|pdf|zip|gz)";
const BARE = `(?:[\\w@+.-]+/)*[\\w@+.-]*\\.${EXTENSIONS}|(?:[\\w@+.-]+/)+[\\w@+.-]*`;
/** A name that can only be a file's: symbols may be renamed with the same words. */
const NAME = `(?:${BARE}|\`(?:${BARE})\`|"(?:${BARE})"|'(?:${BARE})')`;
/** Any name, when the sentence calls it a file. */
const ANY = `(?:[\\w@+./-]*\\w/?|\`[^\`\n]+\`|"[^"\n]+"|'[^'\n]+')`;
const ASKED = "^(?:(?:please|kindly|now|then|first|next),? )*(?:(?:can|could|would|will) you )?(?:please )?";
/** Without "script" and "module": those may be a script of package.json or a module of a language. */
const KIND = "(?:files?|folders?|director(?:y|ies))";
const ADJECTIVES = "(?:(?:new|old|empty|unused|small|simple|plain|text|markdown|json) )*";

const list = (name: string): string => `${name}(?:(?:, and |, | and )${name})*`;
const whole = (text: string): RegExp => new RegExp(`${ASKED}${text}$`, "i");
const begins = (text: string): RegExp => new RegExp(`${ASKED}${text}(?=$|[ ,:;])`, "i");

const DELETES = [
  whole(`(?:delete|remove|rm) (?:the |my )?${ADJECTIVES}${KIND} (${list(ANY)})`),
  whole(`(?:delete|remove|rm) (?:the |my )?${ADJECTIVES}(${list(NAME)})`),
];
const RENAMES = [
  whole(`(?:rename|move|mv) (?:the |my )?${KIND} (${ANY}) (?:to|into|as) (?:the )?(?:${KIND} )?(${ANY})`),
  whole(`(?:rename|move|mv) (?:the |my )?(${NAME}) (?:to|into|as) (?:the )?(?:${KIND} )?(${NAME})`),
];
const MAKES = "(?:create|make|write|add) (?:me )?(?:an? |the )?";
const CREATES = [
  begins(`${MAKES}${ADJECTIVES}(?:\\w+ )?file (?:called|named) (${ANY})`),
  begins(`${MAKES}${ADJECTIVES}(?:\\w+ )?(?:file|script|module) (?:(?:called|named) )?(${NAME})`),
  begins(`create (${NAME})`),
];

const match = (forms: readonly RegExp[], text: string): readonly string[] =>
  forms.flatMap((form) => form.exec(text)?.slice(1) ?? []).slice(0, 2);

const sentencesOf = (request: string): readonly string[] =>
  request.split(/(?<=[.!?;])\s+|\n+/).map((part) => part.trim().replace(/[.!?;]+$/, ""));

/** Empty when the request says more than such sentences can. */
export function filesWanted(request: string): FilesWanted {
  const gone: string[] = [];
  const there: string[][] = [];
  if (request.length > MOST_CHARACTERS) return { gone, there };
  for (const sentence of sentencesOf(request)) {
    const [deleted = ""] = match(DELETES, sentence);
    for (const name of deleted.split(/, and |, | and /)) gone.push(...below(name));
    const [from = "", to = ""] = match(RENAMES, sentence);
    for (const old of below(from)) {
      const names = below(to).flatMap((name) => namesOfMoved(old, name));
      if (names.length === 0) continue;
      gone.push(old);
      there.push(names);
    }
    const [made = ""] = match(CREATES, sentence);
    for (const name of below(made)) there.push([name]);
  }
  // One sentence may want gone what another wants created.
  return { gone: gone.filter((name) => !there.some((names) => names.includes(name))), there };
}

/** The path relative to the workspace; none for a path elsewhere or a pattern. */
function below(given: string): readonly string[] {
  const name = given.replaceAll(/^[`"']|[`"']$/g, "").replace(/^(?:\.\/)+/, "");
  const isElsewhere = /^[/~]|(?:^|\/)\.\.?(?:\/|$)|\/\//.test(name);
  return name === "" || isElsewhere || /[*?[\]{}$\\\s:]/.test(name) ? [] : [name];
}

const baseOf = (file: string): string => file.replace(/\/$/, "").split("/").at(-1) ?? file;

/** A file moved into a folder keeps its name; a bare name may mean one beside the old file. */
function namesOfMoved(old: string, to: string): readonly string[] {
  if (to.endsWith("/")) return [to + baseOf(old)];
  return [...new Set([to, `${to}/${baseOf(old)}`, folderBefore(old.replace(/\/$/, "")) + to])];
}

/** Files that are called by a word; which file it is has to be looked up. */
const CALLED: readonly (readonly [word: string, names: readonly string[]])[] = [
  ["readme", ["readme", "readme.*"]],
  [
    "changelog",
    ["changelog", "changelog.*", "history", "history.*", "changes", "changes.*", "news", "news.*"],
  ],
  ["licen[sc]e", ["license", "license.*", "licence", "licence.*", "copying", "copying.*"]],
  ["contributing", ["contributing", "contributing.*"]],
  ["makefile", ["makefile", "gnumakefile"]],
  ["dockerfile", ["dockerfile"]],
];
const PLACE = `(?:the |my |our |this )?(${NAME}|${CALLED.map(([word]) => word).join("|")})(?: file)?`;
/** Without sentences that add a link or the like: what follows "to" is then its target, not the file to change. */
const ADDS =
  "(?:add|append|insert|write)\\b(?:(?!\\b(?:links?|references?|pointers?|paths?|imports?|support|redirects?)\\b).)*?";
const PLACES = [
  whole(
    `(?:fix|correct|change|update|edit|improve|rewrite|reword|replace|add|append|insert|write|set|remove|delete|drop|bump|increase|raise|document|mention|describe|sort|refactor|simplify)\\b.*? (?:in|into|at the (?:end|top|bottom|beginning) of) ${PLACE}`,
  ),
  whole(`${ADDS} to ${PLACE}`),
  whole(`(?:remove|delete|drop)\\b.*? from ${PLACE}`),
  whole(
    `(?:update|edit|rewrite|improve|reformat|translate|shorten|extend|complete|refactor|simplify) ${PLACE}`,
  ),
];
const ON_CONDITION = /\b(?:if|unless|where|when|wherever|instead|like|as)\b/i;
/** The file only explains what is meant: its code is tested, called or documented elsewhere. */
const MEANT_BY =
  /\b(?:tests?|specs?|benchmarks?|documentation|docs|examples?|mocks?|stubs?|wrappers?|bindings?|typings)\b.* (?:for|of)\b|\b(?:with|by|using|via|of|for|from|to|calls?|uses?|callers|than) (?:all |each |every )?(?:of )?(?:the|these|those|its)\b.* in\b/i;
const REPAIRS = /^\W*(?:please )?(?:fix|correct)\b/i;

/** The files that a request wants changed. A failing test is left out, because its cause may be elsewhere. */
export function filesToChange(request: string): readonly string[] {
  if (request.length > MOST_CHARACTERS) return [];
  return sentencesOf(request)
    .filter((sentence) => !ON_CONDITION.test(sentence) && !MEANT_BY.test(sentence))
    .flatMap((sentence) => {
      const [named = ""] = match(PLACES, sentence);
      const known = CALLED.some(([word]) => new RegExp(`^${word}$`, "i").test(named));
      const files = known ? [named.toLowerCase()] : below(named);
      return files.filter((file) => !(isOfTests(file) && REPAIRS.test(sentence)));
    });
}

const TIME_MS = 10_000;
const KEEP = { head: 16_384, tail: 0 };
const NEVER = new AbortController().signal;

/** Wanted files that exist and were not changed. When a name stands for several files, any of them will do. */
export async function untouchedOf(request: string, open: () => Promise<Box>): Promise<readonly string[]> {
  const wanted = filesToChange(request);
  if (wanted.length === 0) return [];
  const box = await open();
  const { all, incomplete } = await box.changes();
  if (incomplete) return [];
  const changed = [...all].flatMap(({ path: file }) => (isCache(file) ? [] : [`/${file}`]));
  const left: string[] = [];
  for (const name of wanted) {
    const names = CALLED.find(([word]) => new RegExp(`^${word}$`).test(name))?.[1];
    const there = await filesCalled(names ?? [baseOf(name)], box);
    const meant = names === undefined ? there.filter((file) => `/${file}`.endsWith(`/${name}`)) : there;
    const [first] = meant;
    if (first === undefined || meant.some((file) => changed.some((each) => each.endsWith(`/${file}`))))
      continue;
    left.push(`${visibleLine(first)} was not changed`);
  }
  return left;
}

/** Files with these names, those nearest to the workspace's root first. */
async function filesCalled(names: readonly string[], box: Box): Promise<readonly string[]> {
  const patterns = names.flatMap((name, at) => [...(at === 0 ? [] : ["-o"]), "-iname", name]);
  const pruned = ["(", "-name", ".git", "-o", "-name", "node_modules", ")", "-prune", "-o"];
  const words = ["find", ".", ...pruned, "-type", "f", "(", ...patterns, ")", "-print0"];
  const { stdout } = await box.exec({ words, timeoutMs: TIME_MS, keep: KEEP }, NEVER);
  const files = textOfBytes(stdout.head).split("\0").slice(0, -1);
  return files
    .map((file) => file.replace(/^\.\//, ""))
    .toSorted((a, b) => a.split("/").length - b.split("/").length);
}

/** What is not as the request says, for the model and for people; undefined when everything is. */
export async function notAsNamed(request: string, open: () => Promise<Box>): Promise<string | undefined> {
  const { gone, there } = filesWanted(request);
  if (gone.length + there.length === 0) return undefined;
  const box = await open();
  const isThere = async (name: string): Promise<boolean> =>
    (await box.stat(`${box.workspace}/${name.replace(/\/$/, "")}`)).kind === "ok";
  const wrong: string[] = [];
  for (const name of gone) if (await isThere(name)) wrong.push(`${visibleLine(name)} is still there`);
  for (const names of there) {
    const found = await Promise.all(names.map(isThere));
    if (!found.includes(true) && !(await isMadeElsewhere(names, box)))
      wrong.push(`${visibleLine(names[0] ?? "")} is not there`);
  }
  return wrong.length === 0 ? undefined : wrong.join(", ");
}

/** Whether the file was made in another folder, which the request may name, or with its language's extension. */
async function isMadeElsewhere(names: readonly string[], box: Box): Promise<boolean> {
  const { all } = await box.changes();
  for (const { path: file, what } of all) {
    const isThis = (name: string): boolean =>
      `/${file}`.endsWith(`/${name}`) || baseOf(file).startsWith(`${name}.`);
    if (what !== "deleted" && names.some(isThis)) return true;
  }
  return false;
}
