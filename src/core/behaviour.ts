/**
 * What programs were seen doing in a box, how that is judged, and the trees that are examined with it. Types and pure
 * functions.
 */
import type { Connection } from "./network.ts";

/** A process at the start of its program. A process that executes another program appears again. */
export interface SeenProcess {
  /** Process id inside the box. */
  readonly pid: number;
  readonly parent: number;
  /** Program and arguments, shortened. */
  readonly words: readonly string[];
  /** Milliseconds since the command began. */
  readonly at: number;
}

/** One thing that a process tried: what it asked of the kernel, before the kernel answered. */
export type Act = {
  readonly at: number;
  readonly pid: number;
  /** How often this process did the same. */
  readonly times: number;
} & (
  | {
      /** `make`: a new file, folder, link or device. `mode`: a change of permissions, owner or times. */
      readonly kind: "read" | "write" | "make" | "remove" | "mode" | "run";
      /** Absolute, without `.` and `..`, as the process named it; links in it are not resolved. */
      readonly path: string;
    }
  | {
      readonly kind: "connect" | "listen" | "send";
      readonly family: "ip" | "unix" | "other";
      /** `127.0.0.1`, `::1`, the path of a socket, `@name` of an abstract one, otherwise the family's name. */
      readonly address: string;
      readonly port: number | null;
    }
  /** A name looked up in DNS. */
  | { readonly kind: "name"; readonly name: string }
  /**
   * A system call no build or test needs: `ptrace`, `mount`, `unshare`, `bpf`, `keyctl` …, or a signal to a foreign
   * process.
   */
  | { readonly kind: "call"; readonly name: string; readonly detail: string }
);

/** A fake secret or service that nobody has a reason to touch. */
export interface Canary {
  /** The name used in reports: `an SSH key`. */
  readonly name: string;
  readonly kind: "file" | "socket" | "address";
  /** An absolute path, or `host:port`. */
  readonly at: string;
  /** Content of a file, to recognise it where it turns up. */
  readonly content?: string;
}

export interface Touch {
  readonly canary: string;
  readonly path: string;
  readonly pid: number;
  readonly at: number;
}

/** What one command was seen doing. */
export interface Observed {
  /** `calls`: each relevant call, before it took effect; `samples`: occasional snapshots; `none`: nothing. */
  readonly by: "calls" | "samples" | "none";
  readonly processes: readonly SeenProcess[];
  readonly acts: readonly Act[];
  /** Numbers beyond the limits. */
  readonly missed: { readonly processes: number; readonly acts: number };
  /** The first touch of a canary, which ended the command. */
  readonly touched: Touch | null;
  /** In plain words, what this way of observing cannot see. */
  readonly unseen: readonly string[];
}

/** For people: what was touched, and by which chain of programs. */
export const canaryWords = ({
  canary,
  path,
  command,
  by,
}: {
  readonly canary: string;
  readonly path: string;
  readonly command: string;
  readonly by: readonly string[];
}): string =>
  `a canary was touched: ${canary} (${path}) by ${by.length === 0 ? command : by.join(" > ")}; the run ends`;

/** `note`: worth knowing; `noisy`: rare for a build or test; `hostile`: nothing else explains it. */
export type Weight = "note" | "noisy" | "hostile";

/** A kind of finding. */
export interface WeighedRule {
  readonly weight: Weight;
  /** The text about it in docs/untrusted.md. */
  readonly words: string;
}

export const note = (words: string): WeighedRule => ({ weight: "note", words });
export const noisy = (words: string): WeighedRule => ({ weight: "noisy", words });
export const hostile = (words: string): WeighedRule => ({ weight: "hostile", words });
export type RepositoryVerdict = "quiet" | "noisy" | "hostile";

/** One thing that a repository contains or does, found by a rule. */
export interface Finding {
  /** `files.link-out`, `install.script`, `run.canary`: short and stable, listed in docs/untrusted.md. */
  readonly rule: string;
  readonly weight: Weight;
  /** One line for people; quoted text is made visible. */
  readonly text: string;
  /** Path in the repository. */
  readonly path?: string;
  readonly line?: number;
  /** The number of the step in which it happened, from 0. */
  readonly step?: number;
  /** The commands that led there, outermost first. */
  readonly by?: readonly string[];
  readonly times?: number;
}

export interface VetStep {
  /** As a person would type it. */
  readonly command: string;
  readonly what: "install" | "build" | "test" | "given";
  /** The file that named the command; null for the user's own. */
  readonly from: string | null;
  readonly exit_code: number;
  readonly cause: string | null;
  readonly reason: string;
  readonly duration_ms: number;
  readonly observed: Observed;
  readonly connections: readonly Connection[];
  readonly changes: {
    readonly added: readonly string[];
    readonly modified: readonly string[];
    readonly deleted: readonly string[];
    readonly more: number;
  };
  readonly peak: { readonly memory_bytes: number; readonly pids: number };
  /** The last lines of the output, made visible. */
  readonly output: string;
}

/** The output of `harness vet --json`. */
export interface VetReport {
  readonly verdict: RepositoryVerdict;
  readonly exit_code: number;
  readonly repository: {
    /** As the user named it. */
    readonly name: string;
    readonly kind: "folder" | "archive" | "git" | "lock";
    /** The commit that was examined, if there is one. */
    readonly commit: string | null;
    readonly files: number;
    readonly bytes: number;
  };
  readonly findings: readonly Finding[];
  readonly steps: readonly VetStep[];
  /** Grants, runtime, and what could not be observed. */
  readonly granted: readonly string[];
  readonly runtime: string;
  readonly unseen: readonly string[];
  /** The total time, and the part of it not spent in commands. */
  readonly took_ms: number;
  readonly own_ms: number;
}

/** The output of `harness vet --compare --json`: what one version does or contains that another does not. */
export interface VetComparison {
  /** Judges only what is new. */
  readonly verdict: RepositoryVerdict;
  readonly exit_code: number;
  readonly before: Pick<VetReport, "verdict" | "repository">;
  readonly after: Pick<VetReport, "verdict" | "repository">;
  /** Found only in the later version. */
  readonly findings: readonly Finding[];
  /** Found only in the earlier version. */
  readonly gone: readonly Finding[];
  /** In plain words: `now contacts …`, `no longer runs …`. */
  readonly changes: readonly string[];
  readonly unseen: readonly string[];
}

export const VET_EXIT = { quiet: 0, noisy: 30, hostile: 40 } as const;

/** The gravest finding decides; notes alone are quiet. */
export const verdictOf = (findings: readonly Pick<Finding, "weight">[]): RepositoryVerdict => {
  const has = (weight: Weight): boolean => findings.some((finding) => finding.weight === weight);
  return has("hostile") ? "hostile" : has("noisy") ? "noisy" : "quiet";
};

/**
 * A tree of files that is examined and never run: a folder, an archive, a commit. Types only.
 *
 * Names are arbitrary bytes: bytes that are not UTF-8 appear as lone surrogates (byte 0x80 + n as U+DC80 + n), so that
 * every path is a text that leads back to its file. `/` separates names; a path has no `.` or `..`, and no slash at
 * either end.
 */
export interface TreeEntry {
  /** Relative to the top of the tree. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "odd";
  /** The lower twelve bits. */
  readonly mode: number;
  /** In bytes; only for files. */
  readonly size: number;
  /** For a link: its target, as written. For an odd entry: `pipe`, `socket`, `device`. */
  readonly target?: string;
  /** How many names the file has, here or elsewhere; one when left out. */
  readonly names?: number;
  /** A folder whose content is unknown: it may not be read, or lies too deep. */
  readonly closed?: boolean;
}

export interface LookedAtTree {
  /** Folders before their content, each entry once; links are not followed. */
  entries(signal: AbortSignal): AsyncIterable<TreeEntry>;
  /** Bytes of a regular file from an offset, at most `limit`; undefined when it is missing or was replaced. */
  read(path: string, limit: number, from?: number): Promise<Uint8Array | undefined>;
}
