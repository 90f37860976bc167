import type { Preset } from "../../core/network.ts";
import type { Span } from "../shell/shell-syntax.ts";

/** Absolute and normalised path; a pattern keeps its special characters. Null: unknown. */
export type Place = string | null;

/** Reasons why something is not understood. Stable: they are part of rule ids. */
export type Doubt =
  /** A word that only the shell can expand, where a name, an option or a path is expected. */
  | "word.dynamic"
  /** A pattern that matches a file whose name is an option. */
  | "word.leading-glob"
  /** The same for a program whose options only read. */
  | "word.bare-glob"
  | "command.unknown"
  /** The name is known, but its path or a definition says that another program runs. */
  | "command.elsewhere"
  /** A known program whose effects are not followed. */
  | "command.unfollowed"
  /** A program that runs other commands in ways that are not followed. */
  | "command.escapes"
  | "option.unknown"
  | "operand.unknown"
  /** An option that loads code, or settings that run code. */
  | "option.loads-code"
  /** A program text (sed, awk, jq …) outside of the known harmless forms. */
  | "language.unknown"
  /** A variable that decides what runs, or how. */
  | "env.unknown"
  /** A variable that only the program itself knows. */
  | "env.own"
  | "shell.function"
  | "shell.builtin"
  | "shell.expansion"
  | "shell.coproc"
  | "shell.endless"
  /** A shell text that one of the two readers, or both, cannot read. */
  | "shell.unreadable"
  /** More commands, or deeper nesting, than is understood. */
  | "shell.limit"
  /** So many commands, or so deep, that not even dangers are looked for. */
  | "shell.unseen";

/**
 * Changes to a repository. record: add and commit. local: other changes without loss. lost: work or history is lost.
 * rewritten: lost beyond recovery. remote: another repository changes. forced: history of another repository is lost.
 */
export const CHANGE_KINDS = ["record", "local", "lost", "rewritten", "remote", "forced"] as const;
type Change = (typeof CHANGE_KINDS)[number];

export type EffectKind =
  | { readonly kind: "read"; readonly path: Place }
  | { readonly kind: "write"; readonly path: Place }
  | { readonly kind: "delete"; readonly path: Place; readonly recursive: boolean; readonly forced: boolean }
  | { readonly kind: "permissions"; readonly path: Place; readonly recursive: boolean }
  /**
   * Runs code. settings: only reports something, but obeys settings that lie in `path`, as git obeys those of a repository.
   * check: the project's own tests and linters, run by a known tool. project: any other code that lies in `path`.
   * inline: a program given as an argument. input: a program from stdin, with its text where that is known.
   * fetched: a program that came from the network.
   */
  | {
      readonly kind: "code";
      readonly from: "settings" | "check" | "project" | "inline" | "input" | "fetched";
      readonly path: Place;
      readonly text?: string;
      /** A text that the program which prints it may still change: only dangers are looked for in it. */
      readonly guess?: string;
      /** A file of the project, or a shell text whose commands are all judged separately. */
      readonly followed?: true;
    }
  /** `inside`: it listens in the box or reports about it, and contacts no host. */
  | { readonly kind: "network"; readonly hosts: readonly string[]; readonly inside?: true }
  /**
   * `from`: only packages by name, from the registries of this preset. `again`: what it needs was installed before, so
   * it fetches at most what has changed since, and only from granted hosts.
   */
  | { readonly kind: "install"; readonly what: string; readonly from?: Preset; readonly again?: true }
  | {
      readonly kind: "repository";
      readonly change: Change;
      readonly what: string;
    }
  /** `inside`: only processes of the box itself. */
  | { readonly kind: "process"; readonly what: string; readonly inside?: true }
  /** The system as a whole: disks, power, kernel. */
  | { readonly kind: "system"; readonly what: string }
  | { readonly kind: "privilege"; readonly what: string }
  | { readonly kind: "device"; readonly path: Place }
  /** A command that starts itself again and again. */
  | { readonly kind: "bomb" }
  /** `inside`: not understood, but it stays in the workspace, the box's temporary files and its system. */
  | { readonly kind: "unknown"; readonly doubt: Doubt; readonly what: string; readonly inside?: true };

/** One effect of a command, and the part of the text that shows it. */
export type Effect = EffectKind & {
  readonly span: Span;
  /** The program that has the effect, or the shell construct. */
  readonly by: string;
  /** Index into `Walk.calls` of the command that has the effect; -1 for none. */
  readonly call: number;
};

const CHANGING: ReadonlySet<Effect["kind"]> = new Set([
  "write",
  "delete",
  "permissions",
  "repository",
  "install",
]);

/** Whether files, rights, the repository or installed packages differ afterwards. */
export const changesSomething = (effect: Effect): boolean =>
  CHANGING.has(effect.kind) &&
  !("path" in effect && effect.path === "/dev/null") &&
  !("again" in effect && effect.again);

/** An effect in words, for display. */
export function effectText(effect: Effect): string {
  return `${effect.by}: ${deed(effect)}`;
}

const at = (path: string | null): string => path ?? "a path known only at run time";

function deed(effect: Effect): string {
  switch (effect.kind) {
    case "read":
    case "write":
      return `${effect.kind}s ${at(effect.path)}`;
    case "delete":
      return `deletes ${at(effect.path)}${effect.recursive ? " and everything below it" : ""}`;
    case "permissions":
      return `changes the permissions of ${at(effect.path)}${effect.recursive ? " and everything below it" : ""}`;
    case "device":
      return `writes to the device ${at(effect.path)}`;
    case "code":
      return `runs ${CODE[effect.from]}${effect.path === null ? "" : ` in ${effect.path}`}`;
    case "network":
      return effect.hosts.length === 0 ? "reaches the network" : `reaches ${effect.hosts.join(", ")}`;
    case "install":
      return `${effect.again === true ? "may install what changed since its installation" : "installs packages"} (${effect.what})`;
    case "repository":
      return `changes the repository: ${effect.change} (${effect.what})`;
    case "process":
      return "acts on other processes";
    case "system":
      return "acts on the system";
    case "privilege":
      return "requests more privileges";
    case "bomb":
      return "starts itself endlessly";
    case "unknown":
      return `not understood: ${effect.doubt} (${effect.what})`;
  }
}

const CODE: Readonly<Record<Extract<Effect, { readonly kind: "code" }>["from"], string>> = {
  check: "the project's checks",
  settings: "what the settings specify",
  project: "code",
  inline: "a program given on the command line",
  input: "a program from stdin",
  fetched: "downloaded code",
};
