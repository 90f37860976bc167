import { CHANGE_KINDS, type Doubt, type EffectKind, type Place } from "../effects/effect.ts";
import type { Span } from "../shell/shell-syntax.ts";

/** A word as a program receives it. */
export interface Arg {
  /**
   * literal: exactly this. glob: a pattern for any number of names. dynamic: known to the shell only; unknown parts
   * are `UNKNOWN`.
   */
  readonly kind: "literal" | "glob" | "dynamic";
  readonly value: string;
  readonly span: Span;
  /** Source of a substitution in the word. `network`: some of its output came from there. */
  readonly feed?: "unknown" | "network";
  /** The unknown part is unquoted: it may become several words, or none. */
  readonly loose?: true;
  /** The value holds the usual home of the user in `~user`: a guess. */
  readonly user?: true;
  /** The value that a dynamic word has where nothing else sets its variables: `${x:-text}`. Only dangers are looked for in it. */
  readonly guess?: string;
}

/** Placeholder for an unknown part of a value. A text that contains this character itself is never allowed. */
export const UNKNOWN = "\uFFFC";

/** A value that may be this one or another; only dangers are looked for in it. */
export const isGuess = ({ kind, value }: Arg): boolean => kind === "dynamic" && !value.includes(UNKNOWN);

/**
 * The role of an argument:
 * data: no effect. pattern: data, and the operand with this role is dropped when an option gives the pattern.
 * read, write, delete: a path. tree: a path that is deleted with everything below it.
 * target: a path that is written, or written into. permissions: a path whose mode or owner changes.
 * in: the folder in which the program works. host: a host or an address of the network.
 * check: a file or folder whose tests run, or which a linter reads with the settings next to it: read, and code of the project.
 * code: a program in some language, as text. loads: a file of code, or of settings that run code.
 * project: a file of code to run. command: this and all following arguments are another command. shell: a text that a shell runs.
 */
export const ROLES = [
  "data",
  "pattern",
  "read",
  "write",
  "delete",
  "tree",
  "target",
  "permissions",
  "in",
  "host",
  "check",
  "code",
  "loads",
  "project",
  "command",
  "shell",
] as const;
export type Role = (typeof ROLES)[number];

/** An effect of an option or a whole program, whatever the words. For a repository: the kind of change. */
const FIXED = [
  ...CHANGE_KINDS,
  "network",
  "install",
  "settings",
  "check",
  "project",
  "input",
  "process",
  "privilege",
  "system",
  "ask",
] as const;
export type Fixed = (typeof FIXED)[number];

/** A further reader of a use: by its name, or with parameters that the row gives. */
export type NamedReader = string | readonly [name: string, parameter: CheckParameter];
export type CheckParameter = string | readonly string[] | Readonly<Record<string, string>>;

/** One program or sub-command, compiled by `bin/programs.ts` from a row of YAML; `README.md` explains the keys. */
export interface Model {
  /** Options by group; `read-arguments.ts` explains the groups. */
  readonly options?: Readonly<Record<string, string>>;
  /** `-20`: a number is an option. */
  readonly numbers?: boolean;
  readonly arguments?: {
    readonly first?: readonly Role[];
    /** Role of any number of arguments between the first and the last ones. */
    readonly rest?: Role;
    readonly last?: readonly Role[];
    /** Without arguments the program works on the current folder. */
    readonly here?: true;
  };
  readonly does?: readonly Fixed[];
  /** Options end at the first operand (env, xargs, ssh …). */
  readonly strict?: true;
  /**
   * Every option with more effects than reading has a row, with a role or as `asks`. Then a word that the shell may turn into
   * an option is harmless, as long as all options of the row only read.
   */
  readonly complete?: boolean;
  /** Long options with a single dash (`find -name`, `go test -run`): `-abc` is one option, never a bundle. */
  readonly singleDash?: true;
  /** Long options may be abbreviated to any unique prefix (getopt_long). */
  readonly abbreviates?: true;
  /** Any of these as the only argument makes the program print its version or help, and nothing else. */
  readonly tells: readonly string[];
  /** Even to print its version, the program obeys settings of the folder, or runs a program in it. */
  readonly local?: true;
  /**
   * Sub-commands by first operand, as numbers of models; options before it belong to this model. Any other operand is
   * not understood.
   */
  readonly commands?: Readonly<Record<string, number>>;
  /** The model for a first operand that is none of `commands` (a script of the project, a file). */
  readonly otherwise?: number;
  /** Other names of sub-commands. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** Readers that come before everything else; for a model with a reader they get no operands. */
  readonly first?: readonly NamedReader[];
  /**
   * Readers for what the row cannot express. They only add effects. For a program with `commands` they run only where no
   * sub-command is chosen: options before a sub-command are its `globals`.
   */
  readonly also?: readonly NamedReader[];
  /** Replaces the whole reading: for programs with a grammar of their own (find, sed, awk, tar, dd, test …). */
  readonly reader?: NamedReader;
}

/** An effect without its command: `span` and `by` default to the whole command and its program. */
export type FoundEffect = EffectKind & { readonly span?: Span; readonly by?: string; readonly call?: number };

export interface UsedOption {
  /** As in the table: `-o`, `--output`. */
  readonly name: string;
  readonly value: Arg | null;
  readonly span: Span;
}

interface KnownInput {
  readonly text: string;
  readonly span: Span;
  /** The program that prints the text may interpret some of its characters. */
  readonly rough?: true;
  /** The text stands for names of found files. */
  readonly found?: true;
}

/** One use of a program, as `also` and readers get it. */
export interface Use {
  /** The program's name in the table; for a sub-command both names: `git log`. */
  readonly program: string;
  /** Without the program's (and sub-command's) own name. */
  readonly args: readonly Arg[];
  /** Empty for readers. */
  readonly options: readonly UsedOption[];
  /** Options of the programs above a sub-command (`git -C x` before `log`). */
  readonly globals: readonly UsedOption[];
  readonly operands: readonly Arg[];
  /** Source of stdin. `network`: something earlier in the pipe came from there. `project`: a file that lies inside. */
  readonly input: "nothing" | "unknown" | "network" | "project" | KnownInput;
  readonly span: Span;
  /** The command is started by another one, or is a part of one. */
  readonly nested: boolean;
  /** Absolute path of an argument, relative to the command's folder. */
  place(arg: Arg): Place;
  /** The command's folder. */
  readonly folder: Place;
  readonly home: string;
  /** Effects of another command line that the program runs, as in `find -exec`; the first word is the program. */
  command(
    args: readonly Arg[],
    at?: { readonly folder?: Place; readonly input?: Use["input"] },
  ): readonly FoundEffect[];
  /**
   * Whether this program lies in `node_modules` of the command's folder or of one above it, or in their `.venv` if it is
   * named as `.venv/bin/NAME`, or whether they have the folder `.tox` or `.nox`; false where nobody has looked.
   */
  installed(name: string): boolean;
  /** With this value the variable only lets code run that lies in the workspace, the box or its system. */
  tame(name: string, value: string | null): boolean;
  /** Effects of a text that a shell runs. */
  shell(text: Arg): readonly FoundEffect[];
  doubt(doubt: Doubt, arg: Arg, what?: string): FoundEffect;
  /** The same use with other operands. */
  withOperands(operands: readonly Arg[]): Use;
}

/** The context of a use; the walk over the tree supplies it. */
export interface UseContext {
  readonly nested: boolean;
  readonly input: Use["input"];
  readonly folder: Place;
  readonly home: string;
  /** The same surroundings in another folder. */
  movedTo(folder: Place): UseContext;
  place(arg: Arg, from: Place): Place;
  command(
    words: readonly Arg[],
    at: { readonly folder: Place; readonly input: Use["input"] },
  ): readonly FoundEffect[];
  tame(name: string, value: string | null, folder: Place): boolean;
  installed(name: string, folder: Place): boolean;
  shell(text: Arg, at: { readonly folder: Place; readonly input: Use["input"] }): readonly FoundEffect[];
}

/** A program's name and its arguments. */
export interface Call {
  readonly program: string;
  readonly name: Arg;
  readonly args: readonly Arg[];
  readonly globals: readonly UsedOption[];
}

interface Understood {
  readonly options: readonly UsedOption[];
  readonly operands: readonly Arg[];
}

/** One use in one place. A class, since one is made for each command, and its methods are made once. */
export class UseAt implements Use {
  readonly program: string;
  readonly name: Arg;
  readonly args: readonly Arg[];
  readonly globals: readonly UsedOption[];
  readonly options: readonly UsedOption[];
  readonly operands: readonly Arg[];
  readonly input: Use["input"];
  readonly folder: Place;
  readonly home: string;
  readonly nested: boolean;
  readonly span: Span;
  readonly #around: UseContext;

  constructor(call: Call, { options, operands }: Understood, around: UseContext) {
    const { name, args } = call;
    this.program = call.program;
    this.name = name;
    this.args = args;
    this.globals = call.globals;
    this.options = options;
    this.operands = operands;
    this.input = around.input;
    this.folder = around.folder;
    this.home = around.home;
    this.nested = around.nested;
    this.span = [name.span[0], Math.max(args[args.length - 1]?.span[1] ?? 0, name.span[1])];
    this.#around = around;
  }

  place(arg: Arg): Place {
    return this.#around.place(arg, this.folder);
  }

  command(words: readonly Arg[], at: Parameters<Use["command"]>[1] = {}): readonly FoundEffect[] {
    const { folder = this.folder, input = this.input } = at;
    return this.#around.command(words, { folder, input });
  }

  tame(name: string, value: string | null): boolean {
    return this.#around.tame(name, value, this.folder);
  }

  installed(name: string): boolean {
    return this.#around.installed(name, this.folder);
  }

  shell(text: Arg): readonly FoundEffect[] {
    return this.#around.shell(text, { folder: this.folder, input: this.input });
  }

  doubt(doubt: Doubt, arg: Arg, what = arg.value): FoundEffect {
    return { kind: "unknown", doubt, what, span: arg.span };
  }

  withOperands(operands: readonly Arg[]): Use {
    const { options } = this;
    const around = this.#around;
    return new UseAt(this, { options, operands }, around);
  }
}

export interface OptionSpec {
  readonly name: string;
  readonly takes: "nothing" | "value" | "maybe";
  readonly role: Role;
  /** Role of all operands where the option is given. */
  readonly turns: Role | null;
  readonly fixed: Fixed | null;
}

export interface OptionTable {
  readonly named: ReadonlyMap<string, OptionSpec>;
  readonly numbers: boolean;
  /** The row is complete, and none of its options does more than read: a word that becomes an option is harmless. */
  readonly tame: boolean;
}

/** Effects of a use that its own grammar finds, or that come in addition to its options and arguments. */
export type UseReader = (use: Use, options: OptionTable) => readonly FoundEffect[];
