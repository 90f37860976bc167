import { roleEffects } from "./argument-roles.ts";
import { type Arg, type FoundEffect, isGuess, UNKNOWN, type Use, type UseReader } from "./program-model.ts";
import { fillPlaceholders, mostOf } from "./search-programs.ts";

const MARK: readonly string[] = ["{}"];
const OPERATORS: ReadonlySet<string> = new Set(["(", ")", "!", ",", "-not", "-a", "-and", "-o", "-or"]);

class FindReader {
  readonly #found: FoundEffect[] = [];
  readonly #starts: Arg[] = [];
  readonly #narrowing = new Narrowing();
  readonly #use: Use;
  #at = 0;

  constructor(use: Use) {
    this.#use = use;
  }

  read(): readonly FoundEffect[] {
    this.#options();
    this.#paths();
    while (this.#at < this.#use.args.length) this.#predicate(this.#next());
    if (!this.#narrowing.closed) this.#doubtful(this.#here(), "(");
    return this.#found;
  }

  #next(): Arg {
    this.#at += 1;
    return this.#use.args[this.#at - 1] as Arg;
  }

  #here(): Arg {
    return this.#use.args.at(-1) ?? { kind: "literal", value: ".", span: this.#use.span };
  }

  #doubtful(arg: Arg, what: string = arg.value): void {
    this.#found.push(this.#use.doubt("operand.unknown", arg, what));
  }

  #options(): void {
    const { args } = this.#use;
    for (; this.#at < args.length; this.#at += 1) {
      const { value, kind } = args[this.#at] as Arg;
      if (kind !== "literal") return;
      if (value === "-D") this.#at += 1;
      else if (!/^-(?:[HLP]|O\d|-)$/.test(value)) return;
    }
  }

  #paths(): void {
    const { args } = this.#use;
    for (; this.#at < args.length; this.#at += 1) {
      const arg = args[this.#at] as Arg;
      if (arg.value.startsWith("-") && arg.value !== "-") break;
      if (arg.kind === "literal" && OPERATORS.has(arg.value)) break;
      this.#unclear(arg);
      this.#starts.push(arg);
    }
    if (this.#starts.length === 0) this.#starts.push({ kind: "literal", value: ".", span: this.#use.span });
    for (const start of this.#starts) this.#found.push(...roleEffects("read", start, this.#use));
  }

  /** An unknown word may be any part of an expression. */
  #unclear(arg: Arg): void {
    if (isOpen(arg)) this.#found.push(this.#use.doubt("word.dynamic", arg));
    if (arg.kind === "glob" && /^[*?[]/.test(arg.value))
      this.#found.push(this.#use.doubt("word.leading-glob", arg));
  }

  #predicate(arg: Arg): void {
    const { value, kind } = arg;
    if (kind !== "literal")
      this.#found.push(this.#use.doubt(kind === "glob" ? "word.leading-glob" : "word.dynamic", arg));
    else if (OPERATORS.has(value)) this.#operator(arg);
    else if (PLAIN.has(value)) this.#narrowing.test(value, undefined);
    else if (VALUED.has(value) || TIMED.test(value)) this.#narrowing.test(value, this.#value(arg));
    else if (COMPARED.test(value)) this.#compared(arg);
    else this.#action(arg);
  }

  #operator(arg: Arg): void {
    switch (arg.value) {
      case "(":
        return this.#narrowing.open();
      case ")":
        if (!this.#narrowing.close()) this.#doubtful(arg);
        return;
      case "!":
      case "-not":
        return this.#narrowing.not();
      case "-o":
      case "-or":
      case ",":
        return this.#narrowing.or();
      default:
    }
  }

  /** The value of a predicate. If it could become several words, one of them could be another predicate. */
  #value(of: Arg): Arg | undefined {
    const value = this.#use.args[this.#at];
    this.#at += 1;
    if (value === undefined) this.#doubtful(of, `${of.value} without a value`);
    else if (value.loose === true) this.#found.push(this.#use.doubt("word.dynamic", value));
    else if (value.kind === "glob" && !isNoPredicate(value.value))
      this.#found.push(this.#use.doubt("word.leading-glob", value));
    return value;
  }

  #compared(arg: Arg): void {
    const value = this.#value(arg);
    if (value !== undefined) this.#found.push(...roleEffects("read", value, this.#use));
    this.#narrowing.test(arg.value, value);
  }

  #action(arg: Arg): void {
    const { value } = arg;
    const writes = Object.hasOwn(WRITING, value) ? WRITING[value] : undefined;
    if (value === "-delete") this.#delete(arg);
    else if (value === "-files0-from") this.#listed(arg);
    else if (writes !== undefined) this.#write(arg, writes);
    else if (Object.hasOwn(RUNNING, value)) this.#run(arg, RUNNING[value] === true);
    else if (/^-O\d$|^-[HLP]$/.test(value)) return;
    else this.#doubtful(arg);
  }

  #delete({ span }: Arg): void {
    const all = this.#narrowing.remaining === null;
    for (const start of this.#starts)
      for (const found of all ? [start] : this.#below(start))
        this.#found.push({ kind: "delete", path: this.#use.place(found), recursive: all, forced: all, span });
  }

  /** The starting points come from a file. */
  #listed(arg: Arg): void {
    const value = this.#value(arg);
    if (value !== undefined) this.#found.push(...roleEffects("read", value, this.#use));
    const start: Arg = { kind: "dynamic", value: UNKNOWN, span: arg.span };
    this.#starts.push(start);
    this.#found.push({ kind: "read", path: null, span: arg.span });
  }

  #write(arg: Arg, count: number): void {
    const file = this.#value(arg);
    if (file !== undefined) this.#found.push(...roleEffects("target", file, this.#use));
    if (count > 1) this.#value(arg);
  }

  #run(arg: Arg, inItsFolder: boolean): void {
    const { args } = this.#use;
    const from = this.#at;
    while (this.#at < args.length && !this.#endsCommand(from)) this.#at += 1;
    if (this.#at >= args.length) this.#doubtful(arg, `${arg.value} without a terminator`);
    const words = args.slice(from, this.#at);
    this.#at += 1;
    for (const word of words) this.#unclear(word);
    if (words.length === 0) this.#doubtful(arg);
    const found = this.#command(words, inItsFolder);
    this.#found.push(...found);
    // Below the start there may be another project.
    if (inItsFolder && found.some(({ kind }) => kind === "code" || kind === "repository"))
      this.#found.push(this.#use.doubt("option.unknown", arg));
  }

  #endsCommand(from: number): boolean {
    const { args } = this.#use;
    const value = args[this.#at]?.value;
    return value === ";" || (value === "+" && this.#at > from && args[this.#at - 1]?.value === "{}");
  }

  #command(words: readonly Arg[], inItsFolder: boolean): readonly FoundEffect[] {
    if (!inItsFolder) {
      const [finds, doubts] = mostOf(
        this.#starts.flatMap((start) => this.#below(start)),
        this.#use,
      );
      return [...doubts, ...this.#widened(this.#use.command(fillPlaceholders(words, MARK, finds)), finds)];
    }
    const [start, ...others] = this.#starts;
    const folder = start === undefined || others.length > 0 ? null : this.#use.place(start);
    const here: Arg = { kind: "literal", value: ".", span: this.#use.span };
    return this.#use.command(fillPlaceholders(words, MARK, this.#below(here)), { folder });
  }

  /** If the expression excludes nothing, found files are deleted at every depth. */
  #widened(found: readonly FoundEffect[], finds: readonly Arg[]): readonly FoundEffect[] {
    if (this.#narrowing.remaining !== null) return found;
    const all = new Set(finds.map((find) => this.#use.place(find)));
    return found.map((each) =>
      each.kind === "delete" && each.path !== null && all.has(each.path)
        ? { ...each, recursive: true }
        : each,
    );
  }

  /** Stands for the paths found below a start. */
  #below({ kind, value, span }: Arg): readonly Arg[] {
    const { remaining } = this.#narrowing;
    const folder = `${value.replace(/\/+$/, "")}/*`;
    const paths = remaining === null ? [folder] : remaining.map((name) => `${folder}/${name}`);
    return paths.map((path) => ({ kind: kind === "dynamic" ? kind : "glob", value: path, span }));
  }
}

/** Whether the argument may be any word. */
const isOpen = (arg: Arg): boolean =>
  arg.loose === true || (arg.kind === "dynamic" && (arg.value.startsWith(UNKNOWN) || isGuess(arg)));

/** Whether no word that the pattern can become is part of an expression. */
const isNoPredicate = (pattern: string): boolean =>
  /\.[A-Za-z]\w*$/.test(pattern) || /^[^-*?[(!,]/.test(pattern);

/** Files below a start that the expression has not excluded: all (null), or those of some names. */
type RemainingFiles = readonly string[] | null;

interface Group {
  /** The files left before the group. */
  readonly before: RemainingFiles;
  readonly negated: boolean;
  /** The files that the alternatives so far leave; undefined before the first one ends. */
  ended: RemainingFiles | undefined;
}

/** Reads an expression from left to right to know which files each action gets. Approximate, in favour of more files. */
class Narrowing {
  remaining: RemainingFiles = null;
  #negated = false;
  readonly #groups: Group[] = [{ before: null, negated: false, ended: undefined }];

  not(): void {
    this.#negated = !this.#negated;
  }

  open(): void {
    this.#groups.push({ before: this.remaining, negated: this.#negated, ended: undefined });
    this.#negated = false;
  }

  /** `-o` and `,`: the next alternative starts from the files left before the group. */
  or(): void {
    const group = this.#groups.at(-1);
    if (group === undefined) return;
    group.ended = joinRemaining(group.ended, this.remaining);
    this.remaining = group.before;
    this.#negated = false;
  }

  /** Returns false where no group is open. */
  close(): boolean {
    const group = this.#groups.pop();
    if (group === undefined || this.#groups.length === 0) return false;
    this.remaining = group.negated ? group.before : joinRemaining(group.ended, this.remaining);
    this.#negated = false;
    return true;
  }

  get closed(): boolean {
    return this.#groups.length === 1;
  }

  test(name: string, value: Arg | undefined): void {
    const negated = this.#negated;
    this.#negated = false;
    if (negated) return;
    const names = NARROWING.has(name) || name.startsWith("-newer") ? SOME : byName(name, value);
    if (names !== null && (this.remaining === null || this.remaining === SOME)) this.remaining = names;
  }
}

/** Some files of unknown names. */
const SOME: RemainingFiles = ["*found*"];
const MAX_NAMES = 8;

/**
 * The name that a pattern matches, in the form in which names are judged; a path pattern loses its leading wildcards.
 */
function byName(name: string, value: Arg | undefined): RemainingFiles {
  if (!NAMING.has(name) || value === undefined || !/[A-Za-z0-9]/.test(value.value)) return null;
  const plain = name.endsWith("regex")
    ? value.value.replaceAll(".*", "*").replaceAll(/\\(.)/g, "$1").replace(/\$$/, "")
    : value.value;
  const about = plain.replace(/^(?:(?:\.|\*+)\/)+/, "");
  if (!/[A-Za-z0-9]/.test(about) || /[()|+\\]/.test(about)) return SOME;
  return [name.startsWith("-i") ? about.toLowerCase() : about];
}

function joinRemaining(one: RemainingFiles | undefined, other: RemainingFiles): RemainingFiles {
  if (one === undefined || one === other) return other;
  if (one === null || other === null) return null;
  return one.length + other.length > MAX_NAMES ? SOME : [...one, ...other];
}

/** Words of find's expressions. */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Predicates without a value that only test or print. */
const PLAIN =
  words(`-daystart -depth -d -follow -ignore_readdir_race -noignore_readdir_race -mount -xdev -nowarn
  -warn -noleaf -empty -executable -readable -writable -true -false -nogroup -nouser -print -print0 -ls -prune -quit
  -help --help -version --version`);

/** Predicates with one value that is only compared with or printed. */
const VALUED =
  words(`-maxdepth -mindepth -regextype -amin -atime -cmin -ctime -fstype -gid -group -ilname -iname
  -inum -ipath -iregex -iwholename -links -lname -mmin -mtime -name -path -perm -regex -size -type -uid -used -user
  -wholename -xtype -context -printf`);

/** Predicates whose value is a file that is read. */
const COMPARED = /^-(?:[ac]?newer|samefile|newer[aBcm][aBcm])$/;

/** `-newermt '1 day ago'`: the value is a time. */
const TIMED = /^-newer[aBcm]t$/;

/** Actions that write a file; the values after the first are data. */
const WRITING: Readonly<Record<string, number>> = {
  "-fprint": 1,
  "-fprint0": 1,
  "-fls": 1,
  "-fprintf": 2,
};

/** Actions that run a command; true: in the folder of the found file. */
const RUNNING: Readonly<Record<string, boolean>> = {
  "-exec": false,
  "-ok": false,
  "-execdir": true,
  "-okdir": true,
};

/** Tests that keep some of the files, whatever their value. */
const NARROWING =
  words(`-empty -amin -atime -cmin -ctime -mmin -mtime -newer -anewer -cnewer -samefile -size -inum
  -used -lname -ilname -nouser -nogroup`);

/** Tests by name: they keep the names that match their pattern. */
const NAMING = words("-name -iname -path -ipath -wholename -iwholename -regex -iregex");
/** The readers of this file, by the names that rows use. */
export const FIND_READERS: Readonly<Record<string, UseReader>> = {
  find: (use) => new FindReader(use).read(),
};
