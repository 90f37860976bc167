import type { Connection } from "./network.ts";

/** What programs did in a box, as far as it was seen, and what is to be thought of it. Pure words. */

/** One process, as it was when its program was started; a process that becomes another program stands there again. */
export interface SeenProcess {
  /** In the box. */
  readonly pid: number;
  readonly parent: number;
  /** Program and arguments, cut. */
  readonly words: readonly string[];
  /** Milliseconds since the command began. */
  readonly at: number;
}

/** One thing that a process tried: what is asked of the kernel, before it answers. */
export type Act = {
  readonly at: number;
  readonly pid: number;
  /** How often this process did the same. */
  readonly times: number;
} & (
  | {
      /** `make` a file, folder, link or device that was to be new; `mode` its permissions, owner or times. */
      readonly kind: "read" | "write" | "make" | "remove" | "mode" | "run";
      /** Absolute and without `.` and `..`, as the process named it; links in it are not followed. */
      readonly path: string;
    }
  | {
      readonly kind: "connect" | "listen" | "send";
      readonly family: "ip" | "unix" | "other";
      /** `127.0.0.1`, `::1`, the path of a socket, `@name` of an abstract one, else the family's name. */
      readonly address: string;
      readonly port: number | null;
    }
  /** A name that DNS was asked for. */
  | { readonly kind: "name"; readonly name: string }
  /** A call that no build or test has a reason for: `ptrace`, `mount`, `unshare`, `bpf`, `keyctl` …, or a signal to a process that is not its own. */
  | { readonly kind: "call"; readonly name: string; readonly detail: string }
);

/** Something false that nobody has a reason to touch. */
export interface Canary {
  /** As a report names it: `an SSH key`. */
  readonly name: string;
  readonly kind: "file" | "socket" | "address";
  /** An absolute path, or `host:port`. */
  readonly at: string;
  /** Of a file: what it holds, so that it is known again where it turns up. */
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
  /** `calls`: each call that counts, before it happened; `samples`: what a look now and then saw; `none`: nothing. */
  readonly by: "calls" | "samples" | "none";
  readonly processes: readonly SeenProcess[];
  readonly acts: readonly Act[];
  /** Beyond the bounds. */
  readonly missed: { readonly processes: number; readonly acts: number };
  /** The first touch of a canary: it ended the command. */
  readonly touched: Touch | null;
  /** In plain words what this way of looking cannot see. */
  readonly unseen: readonly string[];
}

/** For people: what was touched, and the way there. */
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

/** `note`: worth knowing; `noisy`: what a build or test seldom does; `hostile`: nothing else explains it. */
export type Weight = "note" | "noisy" | "hostile";

/** A kind of finding. */
export interface WeighedRule {
  readonly weight: Weight;
  /** What docs/untrusted.md says of it. */
  readonly words: string;
}

export const note = (words: string): WeighedRule => ({ weight: "note", words });
export const noisy = (words: string): WeighedRule => ({ weight: "noisy", words });
export const hostile = (words: string): WeighedRule => ({ weight: "hostile", words });
export type Verdict = "quiet" | "noisy" | "hostile";

/** One thing that a repository is or does, by a rule. */
export interface Finding {
  /** `files.link-out`, `install.script`, `run.canary`: short and stable, in the table of docs/untrusted.md. */
  readonly rule: string;
  readonly weight: Weight;
  /** One line for people; what it quotes is made visible. */
  readonly text: string;
  /** In the repository. */
  readonly path?: string;
  readonly line?: number;
  /** The number of the step in which it happened, from 0. */
  readonly step?: number;
  /** The commands that led there, the outermost first. */
  readonly by?: readonly string[];
  readonly times?: number;
}

export interface VetStep {
  /** As a person would type it. */
  readonly command: string;
  readonly what: "install" | "build" | "test" | "given";
  /** The file that told of it; null for the user's own. */
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
  /** The last lines of what it printed, made visible. */
  readonly output: string;
}

/** What `harness vet --json` prints. */
export interface VetReport {
  readonly verdict: Verdict;
  readonly exit_code: number;
  readonly repository: {
    /** As the user named it. */
    readonly name: string;
    readonly kind: "folder" | "archive" | "git" | "lock";
    /** Of what was looked at, where it has one. */
    readonly commit: string | null;
    readonly files: number;
    readonly bytes: number;
  };
  readonly findings: readonly Finding[];
  readonly steps: readonly VetStep[];
  /** What was granted, observed how, and not observed. */
  readonly granted: readonly string[];
  readonly runtime: string;
  readonly unseen: readonly string[];
  /** All of it, and what was not a command's. */
  readonly took_ms: number;
  readonly own_ms: number;
}

/** What `harness vet --compare --json` prints: what one version does, or is, that another did not. */
export interface VetComparison {
  /** Of what is new alone. */
  readonly verdict: Verdict;
  readonly exit_code: number;
  readonly before: Pick<VetReport, "verdict" | "repository">;
  readonly after: Pick<VetReport, "verdict" | "repository">;
  /** Found in the later one only. */
  readonly findings: readonly Finding[];
  /** Found in the earlier one only. */
  readonly gone: readonly Finding[];
  /** In plain words: `now contacts …`, `no longer runs …`. */
  readonly changes: readonly string[];
  readonly unseen: readonly string[];
}

export const VET_EXIT = { quiet: 0, noisy: 30, hostile: 40 } as const;

/** The weightiest finding decides; notes alone are quiet. */
export const verdictOf = (findings: readonly Pick<Finding, "weight">[]): Verdict => {
  const has = (weight: Weight): boolean => findings.some((finding) => finding.weight === weight);
  return has("hostile") ? "hostile" : has("noisy") ? "noisy" : "quiet";
};
