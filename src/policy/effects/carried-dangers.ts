/**
 * Dangers that a program carries along without being followed: `strace rm -rf ~`, `docker exec c sh -c '…'`,
 * `python3 -c 'os.system("…")'`. Such a command asks anyway; here only what is denied on its own is looked for.
 */
import { isBroad, isBroadElsewhere } from "../paths/broad-places.ts";
import { placeOfResolved } from "../paths/path-place.ts";
import { PROGRAM_WORDS } from "../program-words.generated.ts";
import type { Arg } from "../programs/program-model.ts";
import type { Span } from "../shell/shell-syntax.ts";
import type { Effect } from "./effect.ts";

const HERE = new Set(PROGRAM_WORDS.carriers.here);
const RUNNERS = new Set(PROGRAM_WORDS.carriers.runners);
const WORDS_ELSEWHERE = PROGRAM_WORDS.carriers["elsewhere as words"];
const AS_WORDS = new Set([...RUNNERS, ...WORDS_ELSEWHERE]);
const ELSEWHERE = new Set([...PROGRAM_WORDS.carriers.elsewhere, ...WORDS_ELSEWHERE]);
const TEXT_OPTIONS = new Set(PROGRAM_WORDS.carriers["text options"]);
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
export function carriedBy(program: string, words: Words, found: readonly Effect[]): Carried {
  const here = HERE.has(program);
  const carrier = here || ELSEWHERE.has(program) || RUNNERS.has(program) || isPackage(program, words);
  const programs = codeTexts(found);
  if (!carrier && !found.some(isLoose))
    return programs.length === 0 ? NONE : { commands: [], texts: programs };
  const args = words.slice(1);
  const texts = AS_WORDS.has(program) ? [] : args.flatMap((arg, at) => textIn(arg, args[at - 1], carrier));
  const named = here ? DANGEROUS_HERE : DANGEROUS;
  return {
    commands: args.flatMap((arg, at) => commandFrom(arg, args.slice(at + 1), named)).slice(0, MAX_CARRIED),
    texts: [...texts, ...programs].slice(0, MAX_CARRIED),
  };
}

/** Whether commands in this program's words ask for the rights of another user on this machine. */
export const isElsewhere = (program: string): boolean => ELSEWHERE.has(program);

/** `npm exec` runs a program of a package; the words behind `npm run` belong to the script. */
const isPackage = (program: string, [, command]: Words): boolean =>
  program === "npm" && (command?.value === "exec" || command?.value === "x");

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
  /^(?:(?:\/usr)?\/bin\/)?(?:rm|dd|mkfs(?:\.\w+)?|wipefs|shred|chmod|chown|chgrp|git|find|xargs|(?:ba|da|a|z|k)?sh|busybox|blkdiscard|(?:python|pypy)[\d.]*|perl|ruby|node|php|curl|wget)$/;
const DANGEROUS_HERE = new RegExp(`${DANGEROUS.source}|^(?:sudo|doas|su|pkexec)$`);

const commandFrom = (name: Arg, rest: readonly Arg[], named: RegExp): readonly Words[] =>
  name.kind === "literal" && rest.length > 0 && named.test(name.value) ? [[name, ...rest]] : [];

/** A shell text as a word of its own, or as the value of an option or setting. */
function textIn(arg: Arg, before: Arg | undefined, carrier: boolean): readonly Arg[] {
  const { kind, value } = arg;
  if (kind !== "literal" || !/\s/.test(value) || value.length > MAX_TEXT) return [];
  const option = before?.kind === "literal" && before.value.startsWith("-") ? before.value : "";
  const named = /^(-{1,2}[\w-]+)=/.exec(value)?.[1] ?? option;
  if (!carrier && PROSE.has(named)) return [];
  const setting = /^[\w.-]+=(?:exec=)?!?([^]+)$/.exec(value)?.[1];
  if (setting !== undefined) return [{ ...arg, value: setting }];
  return carrier || TEXT_OPTIONS.has(option) ? [{ ...arg, value: value.replace(/^:?!/, "") }] : [];
}

/** Longest text that is looked at. */
const MAX_TEXT = 10_000;

/** Words with which programs in any language start others, and with which they delete folders. */
const STARTS =
  /\b(?:system|popen\w*|subprocess|child_process|exec\w*|spawn\w*|shell_exec|passthru|proc_open|Popen|check_call|check_output|call|run|sh|qx|open3|Command|cmd|System)\b|`|%x/;
const REMOVES =
  /\b(?:rm_?tree|rmSync|rmdirSync|rm_rf|rm_r|rm|rmdir|remove_dir_all|remove_tree|removeSync|emptyDirSync|rimraf(?:\.sync)?|delete_tree|remove_entry_secure|unlink)\s*\(?\s*(?:\w+\.)?(?:Path\(|expanduser\(|os\.path\.expanduser\()?\s*(["'])([^"'\n]*)\1/g;

/** Shell texts inside of programs given as text: quoted strings, and lists of quoted words. */
function codeTexts(found: readonly Effect[]): readonly Arg[] {
  return found.flatMap((effect) => {
    if (effect.kind !== "code" || effect.text === undefined || effect.text.length > MAX_TEXT) return [];
    if (effect.from !== "inline" && effect.from !== "input") return [];
    const { text, span } = effect;
    return [...removed(text, span), ...(STARTS.test(text) ? started(text, span) : [])];
  });
}

const removed = (text: string, span: Span): readonly Arg[] =>
  [...text.matchAll(REMOVES)].map(([, , path = ""]) => literal(`rm -rf -- ${quoted(path)}`, span));

/** A tilde in front stays outside of the quotes, as the programs expand it. */
const quoted = (path: string): string => {
  const home = /^~(?=\/|$)/.test(path);
  return home ? `~'${path.slice(1)}'` : `'${path}'`;
};

const LIST = /(?:(["'])[^"'\n]*\1\s*,\s*\[?\s*)+(["'])[^"'\n]*\2/g;
const STRING = /"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`|%x[({[]([^)}\]]*)/g;

function started(text: string, span: Span): readonly Arg[] {
  const lists = [...text.matchAll(LIST)].map(([list]) =>
    [...list.matchAll(STRING)].map((match) => match.slice(1).join("")).join(" "),
  );
  const strings = [...text.matchAll(STRING)].map((match) => match.slice(1).join(""));
  return [...lists, ...strings].filter((each) => LOOKS.test(each)).map((each) => literal(each, span));
}

/** A text with a command that can be denied. */
const LOOKS =
  /(?:^|[\s;&|(/])(?:rm|dd|mkfs\S*|wipefs|shred|chmod|chown|chgrp|git|find|sudo|(?:ba|da|z|k)?sh|reboot|shutdown|poweroff|halt)(?:$|[\s;&|)])/;

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
