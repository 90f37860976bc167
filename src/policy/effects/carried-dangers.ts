/**
 * Dangers that a program carries along without being followed: `strace rm -rf ~`, `docker exec c sh -c '…'`,
 * `python3 -c 'os.system("…")'`. Such a command asks anyway; here only what is denied on its own is looked for.
 */
import { isBroad, isBroadElsewhere } from "../paths/broad-places.ts";
import { placeOfResolved } from "../paths/path-place.ts";
import { PROGRAM_WORDS } from "../program-words.generated.ts";
import type { Arg, Use } from "../programs/program-model.ts";
import type { Span } from "../shell/shell-syntax.ts";
import type { Effect } from "./effect.ts";

const HERE = new Set(PROGRAM_WORDS.carriers.here);
const RUNNERS = new Set(PROGRAM_WORDS.carriers.runners);
const WORDS_ELSEWHERE = PROGRAM_WORDS.carriers["elsewhere as words"];
const AS_WORDS = new Set([...RUNNERS, ...WORDS_ELSEWHERE]);
const ELSEWHERE = new Set([...PROGRAM_WORDS.carriers.elsewhere, ...WORDS_ELSEWHERE]);
const TEXT_OPTIONS = new Set(PROGRAM_WORDS.carriers["text options"]);
/** Options with which also well-known programs take the command that they start something by. */
const STARTING_OPTIONS = new Set(PROGRAM_WORDS.carriers["starting options"]);
const PROSE = new Set(PROGRAM_WORDS.carriers.prose);

type Words = readonly [Arg, ...Arg[]];

/** What else a command may run, and where it stands. */
export interface Carried {
  readonly commands: readonly Words[];
  readonly texts: readonly Arg[];
}

const NONE: Carried = { commands: [], texts: [] };
/** Bounds on what is looked at for one command. */
const MAX_CARRIED = 8;

/** Commands and shell texts among the words of a command, given the effects that are known of it. */
export function carriedBy(
  program: string,
  words: Words,
  found: readonly Effect[],
  input: Use["input"],
): Carried {
  const here = HERE.has(program);
  const carrier = here || ELSEWHERE.has(program) || RUNNERS.has(program) || isPackage(program, words);
  if (!carrier && !CLIENTS.has(program) && !found.some(mayRun)) return NONE;
  const args = words.slice(1);
  const programs = [
    ...(MAKES.has(program) ? recipes(found) : codeTexts(found)),
    ...scripts(program, found, args),
    ...consoles(found, args),
    ...escapesIn(program, found, input),
    ...(program === "sed" ? replacements(found, args) : []),
  ];
  if (!carrier && !found.some(isLoose)) {
    const texts = [...programs, ...startedBy(args, found)];
    return texts.length === 0 ? NONE : { commands: [], texts };
  }
  const loaded = loadedSpans(found);
  const texts = AS_WORDS.has(program)
    ? args.filter((_, at) => CALL.test(args[at - 1]?.value ?? ""))
    : args.flatMap((arg, at) =>
        textIn(arg, args[at - 1], carrier || loaded.has(arg.span[0]) || ESCAPE.test(arg.value)),
      );
  const named = here ? DANGEROUS_HERE : ELSEWHERE.has(program) ? DANGEROUS : DANGEROUS_RUN;
  const shells = input === "network";
  return {
    commands: args
      .slice(0, wordsBeforeNames(args))
      .flatMap((arg, at) => commandFrom(arg, args.slice(at + 1), named, shells))
      .slice(0, MAX_CARRIED),
    texts: [...texts, ...programs].slice(0, MAX_CARRIED),
  };
}

/** Only code, and what is not understood, can start what the words name. */
const mayRun = ({ kind }: Effect): boolean => kind === "code" || kind === "unknown";

/** Texts behind options by which a program that runs code starts something. */
const startedBy = (args: readonly Arg[], found: readonly Effect[]): readonly Arg[] =>
  found.some(({ kind }) => kind === "code")
    ? args.filter((_, at) => STARTING_OPTIONS.has(args[at - 1]?.value ?? ""))
    : [];

/** `npx -c TEXT`: a shell reads this one. */
const CALL = /^(?:-c|--call)$/;

/** `:!text` of vim, `.shell text` of sqlite3, `\\! text` of psql. */
const ESCAPE =
  /^(?:\+?:?(?:sil\w*!?\s+)?!|\+?:[\w%$,]*!|\.(?:shell|system)\s|\.(?:output|once|import)\s+["']?\||\\!)/;
/** The same on lines of stdin, with words that other programs have for it. */
const ESCAPE_LINE = /^\s*(?::?!|\.(?:shell|system)\s|\\!|(?:system|shell|exec)\s)(.*)$/gm;

/** Where values stand that a program starts as a command, or loads as code: they are not prose. */
const loadedSpans = (found: readonly Effect[]): ReadonlySet<number> =>
  new Set(
    found.flatMap((effect) =>
      effect.kind === "unknown" && effect.doubt === "option.loads-code" ? [effect.span[0]] : [],
    ),
  );

/** Clients whose commands on stdin can be those of a shell. */
const CLIENTS: ReadonlySet<string> = new Set(["ftp", "lftp", "sftp"]);

/** Shell texts on the lines of stdin, of which a program reads commands. */
function escapesIn(program: string, found: readonly Effect[], input: Use["input"]): readonly Arg[] {
  if (typeof input === "string" || input.text.length > MAX_TEXT) return [];
  const reads =
    CLIENTS.has(program) ||
    found.some(
      (effect) =>
        (effect.kind === "code" && effect.from === "input") ||
        (effect.kind === "unknown" && (effect.doubt === "command.escapes" || program === "dc")),
    );
  if (!reads) return [];
  return [...input.text.matchAll(ESCAPE_LINE)].map(([, text = ""]) => literal(text, input.span));
}

/** Programs that are not followed, in the language of the program that gets them. */
const scripts = (program: string, found: readonly Effect[], args: readonly Arg[]): readonly Arg[] =>
  program === "dc"
    ? args.flatMap(({ value, span }) =>
        [...value.matchAll(/!(.*)/g)].map(([, text = ""]) => literal(text, span)),
      )
    : found.some(
          (effect) =>
            effect.kind === "unknown" &&
            (effect.doubt === "command.escapes" ||
              (effect.doubt === "language.unknown" && LANGUAGES.has(program))),
        )
      ? args.flatMap(({ kind, value, span }) =>
          kind === "literal" && value.length <= MAX_TEXT ? dangersIn(value, span) : [],
        )
      : [];

/** Words before a program in some language: `iex -e TEXT`, `rails runner TEXT`, `wp eval TEXT`. */
const EVALUATING = /^(?:-{1,2}(?:e|eval|exec|execute|c|r|x|ex|command|expr|print|p)|eval|ev|runner)$/;
const EVALUATED = /^--(?:eval|execute|command|expr)=([^]*)$/;

/** The programs in words of a command that is not followed, or that runs code of the project. */
const consoles = (found: readonly Effect[], args: readonly Arg[]): readonly Arg[] =>
  found.some((effect) => isLoose(effect) || (effect.kind === "code" && effect.from === "project"))
    ? args.flatMap(({ kind, value, span }, at) => {
        const text = EVALUATING.test(args[at - 1]?.value ?? "") ? value : EVALUATED.exec(value)?.[1];
        return kind === "literal" && text !== undefined && text.length <= MAX_TEXT
          ? dangersIn(text, span)
          : [];
      })
    : [];

/** `s/x/text/e` of sed runs the line that it makes. */
const REPLACED = /s([^\w\s\\])(?:\\.|(?!\1).)*\1((?:\\.|(?!\1).)*)\1[gpiIm\d]*e/g;

const replacements = (found: readonly Effect[], args: readonly Arg[]): readonly Arg[] =>
  found.some(({ kind }) => kind === "code")
    ? args.flatMap(({ kind, value, span }) =>
        kind === "literal" && value.length <= MAX_TEXT
          ? [...value.matchAll(REPLACED)].map((match) => literal(match[2] ?? "", span))
          : [],
      )
    : [];

/** Their programs are not in a form known to be harmless, and can start others. */
const LANGUAGES: ReadonlySet<string> = new Set("deno bun mongosh mongo awk gawk mawk nawk mix".split(" "));

/** Whether commands in this program's words ask for the rights of another user on this machine. */
export const isElsewhere = (program: string): boolean => ELSEWHERE.has(program);

/** `npm exec` runs a program of a package; the words behind `npm run` belong to the script. */
const isPackage = (program: string, [, command]: Words): boolean =>
  command !== undefined && PACKAGE_RUNNERS.get(program)?.includes(command.value) === true;

const PACKAGE_RUNNERS: ReadonlyMap<string, readonly string[]> = new Map([
  ["npm", ["exec", "x"]],
  ["pnpm", ["exec", "dlx"]],
  ["yarn", ["exec", "dlx"]],
  ["bun", ["x"]],
  ["nx", ["exec"]],
]);

/** What is not understood may run its words. */
const isLoose = (effect: Effect): boolean => effect.kind === "unknown" && LOOSE.has(effect.doubt);

const LOOSE: ReadonlySet<string> = new Set([
  "command.unknown",
  "command.unfollowed",
  "command.escapes",
  "command.elsewhere",
  "option.unknown",
  "operand.unknown",
  "option.loads-code",
]);

/** Programs whose use with these words can be denied, or that run another command or text. */
const DANGEROUS =
  /^(?:(?:\/usr)?\/bin\/)?(?:rm|dd|mkfs(?:\.\w+)?|wipefs|shred|cp|mv|ln|tee|rimraf|del-cli|chmod|chown|chgrp|git|find|xargs|(?:ba|da|a|z|k)?sh|busybox|blkdiscard|(?:python|pypy)[\d.]*|perl|ruby|node|php|curl|wget)$/;
/** Behind a program of a package or an unknown one; `su` may be any word there. */
const DANGEROUS_RUN = new RegExp(`${DANGEROUS.source}|^(?:sudo|doas|pkexec)$`);
const DANGEROUS_HERE = new RegExp(`${DANGEROUS.source}|^(?:sudo|doas|su|pkexec|reboot|poweroff|halt)$`);

/** A shell without arguments runs what it is given. */
const SHELL = /^(?:(?:\/usr)?\/bin\/)?(?:ba|da|a|z|k)?sh$/;

/** They need no arguments. */
const ALONE = /^(?:reboot|poweroff|halt)$/;

function commandFrom(name: Arg, rest: readonly Arg[], named: RegExp, fed: boolean): readonly Words[] {
  const complete = rest.length > 0 || (fed && SHELL.test(name.value)) || ALONE.test(name.value);
  return name.kind === "literal" && complete && named.test(name.value) ? [[name, ...rest]] : [];
}

/** Up to `install` or the like: what follows names packages. */
function wordsBeforeNames(args: readonly Arg[]): number {
  const at = args.findIndex(({ value }) => /^(?:un)?install$|^(?:add|remove|search|info|show)$/.test(value));
  return at === -1 ? args.length : at;
}

/** A shell text as a word of its own, or as the value of an option or setting. */
function textIn(arg: Arg, before: Arg | undefined, carrier: boolean): readonly Arg[] {
  const { kind, value } = arg;
  if (kind !== "literal" || !/\s/.test(value) || value.length > MAX_TEXT) return [];
  const option = before?.kind === "literal" && before.value.startsWith("-") ? before.value : "";
  const named = /^(-{1,2}[\w-]+)=/.exec(value)?.[1] ?? option;
  if (!carrier && PROSE.has(named)) return [];
  const setting = settingIn(value);
  if (setting !== null) return [{ ...arg, value: setting }];
  return carrier || TEXT_OPTIONS.has(option) || STARTING_OPTIONS.has(option)
    ? [{ ...arg, value: value.replace(ESCAPE, "") }]
    : [];
}

/** The command in `key=command`; an alias of git without a mark is one of its own commands. */
function settingIn(value: string): string | null {
  const [, name = "", mark, setting] = /^([\w.-]+)=(?:exec=)?(!?)([^]+)$/.exec(value) ?? [];
  if (setting === undefined) return null;
  return name.startsWith("alias.") && mark === "" ? `git ${setting}` : unquoted(setting);
}

/** The value in `key='value'` of a settings file. */
const unquoted = (text: string): string => /^(["'])([^"']*)\1$/.exec(text)?.[2] ?? text;

/** Longest text that is looked at. */
const MAX_TEXT = 10_000;

/** Words with which programs in any language start others, and with which they delete folders. */
const STARTS =
  /\b(?:system|popen\w*|subprocess|child_process|exec\w*|spawn\w*|shell_exec|passthru|proc_open|Popen|check_call|check_output|call|call-process|shell-command|start-process|getline|getoutput|getstatusoutput|run|run-program|shell|sh|qx|open3|Command|cmd|System|do shell script)\b|`|%x|\.!|\bopen\b.*["'][^"'\n]*\|["']/;
const REMOVES =
  /\b(?:rm_?tree|rmSync|rmdirSync|rm_rf|rm_r|rm|rmdir|remove_dir_all|remove_tree|removeSync|emptyDirSync|rimraf(?:\.sync)?|delete_tree|remove_entry_secure|unlink|delete-directory)\s*\(?\s*(?:\w+\.)?(?:Path\(|expanduser\(|os\.path\.expanduser\()?\s*(["'])([^"'\n]*)\1/g;

/** Whether a program on the command line runs what it reads from stdin. */
export const runsStdin = (found: readonly Effect[]): boolean =>
  found.some((effect) => {
    const text = textOf(effect);
    return text !== null && EVALUATES.test(text) && STDIN.test(text);
  });

/** Whether a program on the command line evaluates what it fetches. Behind a dot, `exec` belongs to a pattern. */
export const runsDownload = (program: string, found: readonly Effect[]): boolean =>
  found.some((effect) => {
    const text = textOf(effect);
    return (
      text !== null &&
      DOWNLOADS.test(text) &&
      ((/^(?:python|pypy)/.test(program) && /(?<![.\w])exec\s*\(/.test(text)) || EVALS.test(text))
    );
  });

const DOWNLOADS = /\burlopen\(|\brequests\.get\(|\bhttpx\.get\(|\bfetch\(|\bURI\.open\(|\bhttps?:\/\//;
const EVALS =
  /(?<![.\w])eval\b\s*\(?\s*(?:["']?https?:|(?:await\s|\w+[.(])*(?:get|open|urlopen|fetch|read|file_get_contents)\b)|\.then\(eval\)/;

const EVALUATES = /\b(?:exec|eval|instance_eval|compile|Function|system|execSync)\b/;
const STDIN = /\bstdin\b|\$<|<>|\bgets\b|readFileSync\(\s*0/i;

/** Shell texts inside of programs given as text: quoted strings, and lists of quoted words. */
function codeTexts(found: readonly Effect[]): readonly Arg[] {
  return found.flatMap((effect) => {
    const text = textOf(effect);
    if (text === null) return [];
    const { span } = effect;
    return dangersIn(text, span);
  });
}

const dangersIn = (text: string, span: Span, depth = 0): readonly Arg[] => [
  ...(depth < 2 && ESCAPED_QUOTE.test(text)
    ? stringsIn(text)
        .filter((each) => ESCAPED_QUOTE.test(each))
        .flatMap((each) => dangersIn(each.replaceAll(/\\(.)/g, "$1"), span, depth + 1))
    : []),
  ...removed(text, span),
  ...(HOME_REMOVED.test(text) ? [literal("rm -rf -- ~", span)] : []),
  ...(STARTS.test(text) ? started(text, span) : []),
];

const ESCAPED_QUOTE = /\\["'`]/;

/** The home folder, as a function of the language gives it. */
const HOME_REMOVED =
  /\b(?:rmtree|rmSync|rmdirSync|rm_rf|rm_r|remove_dir_all|remove_tree)\s*\(?\s*(?:require\(["'](?:node:)?os["']\)\.|\w+\.)*(?:Path\.home\(\)|homedir\(\)|Dir\.home|process\.env\.HOME|\$?(?:ENV|environ)[[{]["']?HOME["']?[\]}])\s*[),]/;

/** The text of a program that is given as text. */
function textOf(effect: Effect): string | null {
  if (effect.kind !== "code" || (effect.from !== "inline" && effect.from !== "input")) return null;
  const text = effect.text ?? effect.guess;
  return text === undefined || text.length > MAX_TEXT ? null : text;
}

const MAKES: ReadonlySet<string> = new Set(["make", "gmake"]);
const RECIPE = /^(?:\t[-@+]*|[^\t#=]*?:[^=;]*;[-@+\s]*)(.*)$|\$\(shell\s([^)]*)\)|!=(.*)$/gm;

/** The shell texts in rules of make. */
const recipes = (found: readonly Effect[]): readonly Arg[] =>
  found.flatMap((effect) =>
    [...(textOf(effect) ?? "").matchAll(RECIPE)]
      .map(([, recipe, shell, value]) => recipe ?? shell ?? value ?? "")
      .filter((each) => LOOKS.test(each))
      .map((each) => literal(each, effect.span)),
  );

const removed = (text: string, span: Span): readonly Arg[] =>
  [...text.matchAll(REMOVES)].map(([, , path = ""]) => literal(`rm -rf -- ${quoted(path)}`, span));

/** A tilde in front stays outside of the quotes, as the programs expand it. */
const quoted = (path: string): string => {
  const home = /^~(?=\/|$)/.test(path);
  if (path === "~") return path;
  return home ? `~/'${path.slice(2)}'` : `'${path}'`;
};

const LIST = /(?:(["'])[^"'\n]*\1\s*,\s*\[?\s*)+(["'])[^"'\n]*\2/g;
const STRING = /"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`|(?:%x|\bq[qx]?\s*)[({[]([^)}\]]*)/g;

function started(text: string, span: Span): readonly Arg[] {
  const lists = [...text.matchAll(LIST)].map(([list]) =>
    [...list.matchAll(STRING)].map((match) => match.slice(1).join("")).join(" "),
  );
  return [...lists, ...stringsIn(text)]
    .map((each) => each.replace(/^\s*\|-?|-?\|\s*$/g, ""))
    .filter((each) => LOOKS.test(each))
    .map((each) => literal(each, span));
}

/** A text with a command that can be denied. */
const LOOKS =
  /(?:^|[\s;&|(/])(?:rm|dd|mkfs\S*|wipefs|shred|chmod|chown|chgrp|git|find|sudo|(?:ba|da|z|k)?sh|reboot|shutdown|poweroff|halt|cp|mv|ln|tee|install)(?:$|[\s;&|)])/;

export const looksDangerous = (text: string): boolean => LOOKS.test(text);

/** The quoted strings of a program in any language. */
export const stringsIn = (text: string): readonly string[] =>
  text.length > MAX_TEXT ? [] : [...text.matchAll(STRING)].map((match) => match.slice(1).join(""));

const literal = (value: string, span: Span): Arg => ({ kind: "literal", value, span });

interface Around {
  readonly workspace: string;
  readonly home: string;
}

/** Of the effects of carried commands, only those that are denied wherever they stand. */
export function isCarriedDanger(effect: Effect, { workspace, home }: Around, elsewhere: boolean): boolean {
  switch (effect.kind) {
    case "delete":
    case "permissions":
      if (effect.path === null) return false;
      return elsewhere ? isBroadElsewhere(effect.path, home) : isBroad(effect.path, { workspace, home });
    case "write":
      return effect.path !== null && isTrap(effect.path, { workspace, home }, elsewhere);
    case "code":
      return effect.from === "fetched";
    case "repository":
      return effect.change === "rewritten" || effect.change === "forced";
    case "device":
    case "system":
    case "bomb":
    // What follows in a pipe may run what it prints.
    case "network":
      return true;
    case "privilege":
      return !elsewhere;
    case "unknown":
      return effect.doubt === "shell.unseen";
    default:
      return false;
  }
}

function isTrap(path: string, around: Around, elsewhere: boolean): boolean {
  if (/[*?[]/.test(path)) return false;
  const place = placeOfResolved(path, "write", around);
  return place.kind === "device" || (!elsewhere && (place.protected !== null || place.trap !== null));
}
