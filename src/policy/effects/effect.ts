import type { Span } from "../shell/shell-syntax.ts";

/** Absolute and normalised; a pattern keeps its special characters. Null: not known. */
export type Place = string | null;

/** Why something was not understood. Stable: part of rule ids. */
export type Doubt =
  /** A word that only the shell can know, where a name, an option or a path stands. */
  | "word.dynamic"
  /** A pattern that a file called like an option could turn into one. */
  | "word.leading-glob"
  /** The same of a program whose options only read. */
  | "word.bare-glob"
  | "command.unknown"
  /** The name is known, but a path or a definition says that something else runs. */
  | "command.elsewhere"
  /** Known by name, but what it does is not followed. */
  | "command.unfollowed"
  /** A program made to run whatever it is told, in ways that are not followed. */
  | "command.escapes"
  | "option.unknown"
  | "operand.unknown"
  /** An option that loads code or settings which run code. */
  | "option.loads-code"
  /** A program in a language of its own (sed, awk, jq …) that is not one of the known harmless forms. */
  | "language.unknown"
  /** A variable that decides what runs, or how. */
  | "env.unknown"
  /** A variable that only the program it is for knows. */
  | "env.own"
  | "shell.function"
  | "shell.builtin"
  | "shell.expansion"
  | "shell.coproc"
  /** A text for a shell that no reader, or only one of them, can read. */
  | "shell.unreadable"
  /** More commands, or deeper ones, than are understood. */
  | "shell.limit"
  /** So many or so deep that even dangers are not looked for. */
  | "shell.unseen";

/**
 * Of a repository. record: add and commit. local: other changes that lose nothing. lost: work or history goes.
 * rewritten: it goes, and nothing brings it back. remote: another repository changes. forced: another's history goes.
 */
export const CHANGE_KINDS = ["record", "local", "lost", "rewritten", "remote", "forced"] as const;
type Change = (typeof CHANGE_KINDS)[number];

export type EffectKind =
  | { readonly kind: "read"; readonly path: Place }
  | { readonly kind: "write"; readonly path: Place }
  | { readonly kind: "delete"; readonly path: Place; readonly recursive: boolean; readonly forced: boolean }
  | { readonly kind: "permissions"; readonly path: Place; readonly recursive: boolean }
  /**
   * Runs code. settings: only tells something, but obeys settings that lie in `path`, as git those of its repository.
   * check: the project's own tests and linters, by a tool known for that. project: any other code that lies in `path`.
   * inline: a program given as an argument. input: one that comes in by stdin, with its text where that is known. fetched: one that came from the network.
   */
  | {
      readonly kind: "code";
      readonly from: "settings" | "check" | "project" | "inline" | "input" | "fetched";
      readonly path: Place;
      readonly text?: string;
      /** A file of the project, or a text for a shell whose commands are all judged beside it. */
      readonly followed?: true;
    }
  /** `inside`: it listens to the box, or tells of it, and asks nobody. */
  | { readonly kind: "network"; readonly hosts: readonly string[]; readonly inside?: true }
  | { readonly kind: "install"; readonly what: string }
  | {
      readonly kind: "repository";
      readonly change: Change;
      readonly what: string;
    }
  /** `inside`: of the box itself, whichever they are. */
  | { readonly kind: "process"; readonly what: string; readonly inside?: true }
  /** The system as a whole: its disks, its power, its kernel. */
  | { readonly kind: "system"; readonly what: string }
  | { readonly kind: "privilege"; readonly what: string }
  | { readonly kind: "device"; readonly path: Place }
  /** Starts itself again and again. */
  | { readonly kind: "bomb" }
  /** `inside`: not understood, but whatever it stands for lies in the workspace, the box's temporary files or its system. */
  | { readonly kind: "unknown"; readonly doubt: Doubt; readonly what: string; readonly inside?: true };

/** One thing that a command does, and the part of the text that says so. */
export type Effect = EffectKind & {
  readonly span: Span;
  /** The program that does it, or the shell's own construct. */
  readonly by: string;
  /** Which of the text's commands does it: its place among `Walk.calls`; -1 for none of them. */
  readonly call: number;
};
