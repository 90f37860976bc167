import { CHANGE_KINDS, type Doubt, type EffectKind, type Place } from "../effects/effect.ts";
import type { Span } from "../shell/shell-syntax.ts";

/** A word as a program gets it. */
export interface Arg {
  /** literal: exactly this. glob: a pattern, any number of names. dynamic: only the shell will know; unknown parts are `UNKNOWN`. */
  readonly kind: "literal" | "glob" | "dynamic";
  readonly value: string;
  readonly span: Span;
  /** A substitution is in it: what that gives. `network`: something in it came from there. */
  readonly feed?: "unknown" | "network";
  /** What is unknown in it stands unquoted: it may become several words, or none. */
  readonly loose?: true;
}

/** Stands for what is not known in a value. A text that contains it is never allowed: the character gate sees to that. */
export const UNKNOWN = "\uFFFC";

/** A value that may be this one, or another: dangers are looked for in it. */
export const isGuess = ({ kind, value }: Arg): boolean => kind === "dynamic" && !value.includes(UNKNOWN);

/**
 * What an argument means to its program:
 * data: nothing outside. pattern: data, but the operand of that name goes when an option gives it.
 * read, write, delete: a path. tree: a path deleted with all below it. target: written, or written into. permissions: a path whose mode or owner changes.
 * in: the folder where the program works. host: a host or an address of the network.
 * check: a file or folder whose tests run, or which a linter reads with the settings next to it: read, and code of the project.
 * code: a program in some language, as text. loads: a file of code or of settings that run code. project: a file of code to run.
 * command: this and all that follow are a command of its own. shell: a text that a shell runs.
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

/** An effect that comes with an option or a program as a whole, whatever the words. Of a repository: what changes. */
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

/** More about a use than options and arguments say: a reader by its name, or one that is made from what the row gives it. */
export type Check = string | readonly [name: string, given: CheckParameter];
export type CheckParameter = string | readonly string[] | Readonly<Record<string, string>>;

/** One program, or one sub-command, as `bin/programs.ts` makes it from a row of the YAML files; `README.md` tells the keys. */
export interface Model {
  /** Words by group; `option-groups.ts` says what a group means. */
  readonly options?: Readonly<Record<string, string>>;
  /** `-20`: a number as an option. */
  readonly numbers?: boolean;
  readonly arguments?: {
    readonly first?: readonly Role[];
    /** Any number of these between the first and the last ones. */
    readonly rest?: Role;
    readonly last?: readonly Role[];
    /** Without arguments it works on the current folder. */
    readonly here?: true;
  };
  readonly does?: readonly Fixed[];
  /** Options end at the first operand (env, xargs, ssh …). */
  readonly strict?: true;
  /**
   * No option is left out that does more than read: those stand in the row with a role or as asks. Then a word that the
   * shell may turn into an option does no harm, as long as all options of the row only read.
   */
  readonly complete?: boolean;
  /** Single-dash long options (`find -name`, `go test -run`): `-abc` is one option, never a bundle. */
  readonly singleDash?: true;
  /** Long options may be shortened to any unique beginning (getopt_long). */
  readonly abbreviates?: true;
  /** Arguments with which, alone, it only tells of itself. */
  readonly tells: readonly string[];
  /** Even what tells of itself obeys the settings of the folder, or is a program that lies in it. */
  readonly local?: true;
  /** The first operand chooses one of these, by number of the model; options before it are this model's own. No entry: not understood. */
  readonly commands?: Readonly<Record<string, number>>;
  /** What an operand is that chooses none of `commands` (a script of the project, a file). */
  readonly otherwise?: number;
  /** Other names of sub-commands. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** Looked at before all else; of a model with a reader, without operands. */
  readonly first?: readonly Check[];
  /**
   * What the row cannot say. It may add effects, never take any away. Of a program with `commands` it is asked only
   * where none of them is chosen: options before a sub-command are that one's `globals`.
   */
  readonly also?: readonly Check[];
  /** Takes the whole reading over: for programs with a grammar of their own (find, sed, awk, tar, dd, test …). */
  readonly reader?: Check;
}

/** An effect before it knows who does it: where `span` or `by` are left out, the whole command and its program. */
export type Found = EffectKind & { readonly span?: Span; readonly by?: string; readonly call?: number };

export interface GivenOption {
  /** As in the table: `-o`, `--output`. */
  readonly name: string;
  readonly value: Arg | null;
  readonly span: Span;
}

interface KnownInput {
  readonly text: string;
  readonly span: Span;
  /** What prints it may read some of its characters in a way of its own. */
  readonly rough?: true;
  /** It stands for names of files that were found. */
  readonly found?: true;
}

/** One use of a program, for `also` and readers. */
export interface Use {
  /** The name by which it was found in the table; of a sub-command, both: `git log`. */
  readonly program: string;
  /** Without the program's (and sub-command's) own name. */
  readonly args: readonly Arg[];
  /** Empty for readers. */
  readonly options: readonly GivenOption[];
  /** Of the programs above a sub-command (`git -C x` before `log`). */
  readonly globals: readonly GivenOption[];
  readonly operands: readonly Arg[];
  /** What stdin is fed with. `network`: something before it in the pipe came from there. `project`: a file that lies inside. */
  readonly input: "nothing" | "unknown" | "network" | "project" | KnownInput;
  readonly span: Span;
  /** Absolute path of an argument, from where the command runs. */
  place(arg: Arg): Place;
  /** Where the command runs. */
  readonly folder: Place;
  readonly home: string;
  /** The effects of another command line that it runs, e.g. `find -exec`; the first word is its name. */
  command(
    args: readonly Arg[],
    at?: { readonly folder?: Place; readonly input?: Use["input"] },
  ): readonly Found[];
  /** With this value the variable only lets code run which lies in the workspace, in its box or its system. */
  tame(name: string, value: string | null): boolean;
  /** The effects of a text that a shell runs. */
  shell(text: Arg): readonly Found[];
  doubt(doubt: Doubt, arg: Arg, what?: string): Found;
}

/** What a use needs from where it happens; the walk over the tree supplies it. */
export interface Surroundings {
  readonly input: Use["input"];
  readonly folder: Place;
  readonly home: string;
  place(arg: Arg, from: Place): Place;
  command(
    words: readonly Arg[],
    at: { readonly folder: Place; readonly input: Use["input"] },
  ): readonly Found[];
  tame(name: string, value: string | null, folder: Place): boolean;
  shell(text: Arg, at: { readonly folder: Place; readonly input: Use["input"] }): readonly Found[];
}

/** A program's name and what stands behind it. */
export interface Call {
  readonly program: string;
  readonly name: Arg;
  readonly args: readonly Arg[];
  readonly globals: readonly GivenOption[];
}

interface Understood {
  readonly options: readonly GivenOption[];
  readonly operands: readonly Arg[];
}

export function makeUse(call: Call, { options, operands }: Understood, around: Surroundings): Use {
  const { folder, home, input } = around;
  return {
    ...call,
    options,
    operands,
    input,
    folder,
    home,
    span: [call.name.span[0], Math.max(call.args.at(-1)?.span[1] ?? 0, call.name.span[1])],
    place: (arg) => around.place(arg, folder),
    command: (words, at) =>
      around.command(words, {
        folder: at?.folder === undefined ? folder : at.folder,
        input: at?.input ?? input,
      }),
    tame: (name, value) => around.tame(name, value, folder),
    shell: (text) => around.shell(text, { folder, input }),
    doubt: (doubt, arg, what = arg.value): Found => ({ kind: "unknown", doubt, what, span: arg.span }),
  };
}

export interface OptionSpec {
  readonly name: string;
  readonly takes: "nothing" | "value" | "maybe";
  readonly role: Role;
  /** The role that all operands get when it is given. */
  readonly turns: Role | null;
  readonly fixed: Fixed | null;
}

export interface OptionTable {
  readonly named: ReadonlyMap<string, OptionSpec>;
  readonly numbers: boolean;
  /** No option of it does more than read, and none is left out that does: a word that turns out to be an option does no harm. */
  readonly tame: boolean;
}

/** Effects of a use that are found by its own grammar, or beside its options and arguments. */
export type Reader = (use: Use, options: OptionTable) => readonly Found[];
