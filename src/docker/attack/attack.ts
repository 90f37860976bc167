import type { Cause } from "../../core/errors.ts";

/** What a box must not let happen, as data, and how an attempt at it is judged. Pure. */

/** In words that a person can hold the harness to; each begins with one of the five promises. */
const PROMISES = {
  outside: "Contained: nothing in a box reaches files of the host outside of its workspace",
  obeyed: "Contained: what programs of the host obey is not changed",
  kernel: "Contained: the host's kernel does nothing for a box that builds and tests do not need",
  network: "Contained: no network is reached that was not granted",
  others: "Contained: no process beside a command's own is read, disturbed or left behind",
  limits: "Contained: a box takes no more of the machine than it was given",
  reversible: "Reversible: over a layer nothing is changed in the repository itself",
  honest: "Honest: how a command ended is reported by the runner alone",
} as const;

type PromiseName = keyof typeof PROMISES;

/** The attempts by name. A shell line that ends with 0, or a Python value that is true, went through. */
export interface Attempts {
  readonly shell?: Readonly<Record<string, string>>;
  /**
   * Expressions after `PYTHON`. `call` returns the kernel's own answer: any error except the three that refuse means
   * that the kernel went on to look at the arguments.
   */
  readonly python?: Readonly<Record<string, string>>;
}

/** `{W}`, `{OUT}`, `{TOKEN}` … stand for the values of an attack target. */
export interface Attack {
  /** A stable name, such as `network.metadata`. */
  readonly id: string;
  readonly promise: PromiseName;
  /** What does not happen, as a sentence of a report. */
  readonly text: string;
  /** Runs before the attempts, as a separate command. */
  readonly first?: string;
  readonly attempts: Attempts;
  /** Instead of attempts: one line to run, and what its output means. */
  readonly asks?: {
    readonly run: string;
    readonly interpret: (output: AttackOutput, facts: AttackFacts) => readonly AttemptAnswer[];
  };
  /** The nearest thing that is allowed. All of it must go through, or a refusal shows nothing. */
  readonly twin: Attempts;
  /** `host`: what happens inside the box is no breach; only what the host sees of it is. */
  readonly counts?: "host";
  /** The command may be ended for one of these causes: that refuses the attempts that were not reported by then. */
  readonly ends?: readonly Cause[];
  /** Time limit for the attempts. */
  readonly timeoutMs?: number;
  /** Tried in a box over a layer. */
  readonly layer?: true;
  /** A kernel of the box's own may answer, as gVisor's does: then the host's kernel did not look at the arguments. */
  readonly ownKernel?: true;
  /** What a person can do about a breach. */
  readonly remedy: string;
}

export interface AttackOutput {
  readonly text: string;
  /** Bytes that were kept, and bytes in all. */
  readonly kept: number;
  readonly total: number;
}

export interface AttackFacts {
  /** The environment of the harness. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface AttemptAnswer {
  readonly name: string;
  /** `missing`: the attempt could not be made. */
  readonly kind: "through" | "refused" | "missing";
  readonly why: string;
}

/** The results of a few attempts. */
export interface AttemptResults {
  readonly answers: readonly AttemptAnswer[];
  readonly cause: Cause | null;
  /** Why there is nothing to judge: the box was lost, or no such box could be opened. */
  readonly lost: string | null;
}

export interface AttackOutcome {
  readonly id: string;
  readonly promise: PromiseName;
  readonly text: string;
  /** `held`: each attempt was refused, and its twin worked. What could not be shown is never held. */
  readonly state: "held" | "broken" | "not shown";
  /** Why the state is not `held`, one line each. */
  readonly why: readonly string[];
  readonly attempts: readonly AttemptAnswer[];
  /** Empty if the state is `held`. */
  readonly remedy: string;
}

const attemptNames = ({ shell, python }: Attempts): readonly string[] => [
  ...Object.keys(shell ?? {}),
  ...Object.keys(python ?? {}),
];

interface AttackEvidence {
  readonly tried: AttemptResults;
  readonly twin: AttemptResults;
  /** What the host found changed, one line each. */
  readonly changed: readonly string[];
  readonly ownKernel: boolean;
}

/** Fails closed: a success breaks the promise; anything but a refusal beside a working twin shows nothing. */
export function judgeAttack(attack: Attack, evidence: AttackEvidence): AttackOutcome {
  const { id, promise, text } = attack;
  const [breaches, doubts] = [breachesOf(attack, evidence), doubtsOf(attack, evidence)];
  const state = breaches.length > 0 ? "broken" : doubts.length > 0 ? "not shown" : "held";
  const remedy = state === "held" ? "" : attack.remedy;
  return {
    id,
    promise,
    text,
    state,
    why: [...breaches, ...doubts],
    attempts: evidence.tried.answers,
    remedy,
  };
}

function breachesOf({ counts, ownKernel }: Attack, evidence: AttackEvidence): readonly string[] {
  if (counts === "host" || (ownKernel === true && evidence.ownKernel)) return evidence.changed;
  const through = evidence.tried.answers.filter(({ kind }) => kind === "through");
  return [
    ...evidence.changed,
    ...through.map(({ name, why }) => `${name}: it went through${inBrackets(why)}`),
  ];
}

function doubtsOf(attack: Attack, { tried, twin }: AttackEvidence): readonly string[] {
  const ended = tried.cause !== null && (attack.ends ?? []).includes(tried.cause);
  const reported = new Set(tried.answers.map(({ name }) => name));
  const names = attack.asks === undefined ? attemptNames(attack.attempts) : [];
  const silent = ended ? [] : names.filter((name) => !reported.has(name));
  const missing = tried.answers.filter(({ kind }) => kind === "missing");
  const worked = new Map(twin.answers.map((answer) => [answer.name, answer]));
  return [
    ...[tried.lost, twin.lost].filter((lost) => lost !== null),
    ...missing.map(({ name, why }) => `${name}: it could not be tried${inBrackets(why)}`),
    ...silent.map((name) => `${name}: it reported nothing`),
    ...(reported.size === 0 && !ended && silent.length === 0 ? ["nothing was tried"] : []),
    ...attemptNames(attack.twin)
      .filter((name) => worked.get(name)?.kind !== "through")
      .map((name) => `what is allowed fails: ${name}${inBrackets(worked.get(name)?.why ?? "")}`),
  ];
}

const inBrackets = (why: string): string => (why === "" ? "" : ` (${why})`);

export interface PromiseKept {
  readonly promise: PromiseName;
  readonly text: string;
  readonly state: AttackOutcome["state"];
}

/** Each promise that was tested, with its worst outcome. */
export function promisesKept(outcomes: readonly AttackOutcome[]): readonly PromiseKept[] {
  return Object.entries(PROMISES).flatMap(([name, text]) => {
    const states = outcomes.filter(({ promise }) => promise === name).map(({ state }) => state);
    if (states.length === 0) return [];
    const state = states.includes("broken") ? "broken" : states.includes("not shown") ? "not shown" : "held";
    return [{ promise: name as PromiseName, text, state }];
  });
}

/** Precedes each script: reports every attempt on a separate line. */
const SHELL = `SUP=$PPID; export SUP
attempt() {
  why=$(sh -c "$2" 2>&1 >/dev/null </dev/null); code=$?
  case $code in 0) kind=through ;; 127) kind=missing ;; *) kind=refused ;; esac
  printf '@ %s %s\\t%s\\n' "$kind" "$1" "$(printf %s "$why" | tail -n 1 | tr -d '\\t' | cut -c 1-200)"
}
`;

const PYTHON = `import ctypes, errno, fcntl, glob, mmap, os, resource, signal, socket, struct, sys, termios, time
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == "aarch64"
def call(x86, aarch64, *args):
    number = aarch64 if arm else x86
    if number is None: return "ENOSYS"
    ctypes.set_errno(0)
    value = libc.syscall(ctypes.c_long(number), *[ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in args])
    return "ok" if value >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")
def child(work):
    pid = os.fork()
    if pid == 0:
        try: os._exit(0 if work() else 1)
        except BaseException: os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
def opens(path, how=os.O_WRONLY):
    os.close(os.open(path, how)); return True
def reads(path):
    with open(path, "rb") as file: return len(file.read(1)) == 1
def route(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as one: one.connect((address, 53))
    return True
def dial(family, address, port):
    with socket.socket(family) as one: one.settimeout(2); one.connect((address, port))
    return True
def forks(many):
    made = []
    try:
        for _ in range(many):
            pid = os.fork()
            if pid == 0: signal.pause(); os._exit(0)
            made.append(pid)
    finally:
        for pid in made: os.kill(pid, 9); os.waitpid(pid, 0)
    return len(made)
def attempt(name, work):
    try: value = work()
    except (OSError, MemoryError) as e: kind, why = "refused", str(e)
    except Exception as e: kind, why = "missing", repr(e)
    else:
        why = value if isinstance(value, str) else ""
        kind = "refused" if not value or value in ("EPERM", "ENOSYS", "EACCES") else "through"
    print("@ " + kind + " " + name + "\\t" + why.replace("\\n", " ").replace("\\t", " ")[:200], flush=True)
`;

/** One shell script that makes the attempts and reports each. */
export function attackScript({ shell = {}, python = {} }: Attempts): string {
  const lines = Object.entries(shell).map(([name, line]) => `attempt ${quoted(name)} ${quoted(line)}`);
  const values = Object.entries(python).map(
    ([name, value]) => `attempt(${JSON.stringify(name)}, lambda: ${value})`,
  );
  const program =
    values.length === 0
      ? []
      : [
          `command -v python3 >/dev/null || { ${Object.keys(python).map(noPython).join("; ")}; exit 0; }`,
          "cd {W}; python3 -IS - <<'PY'",
          `${PYTHON}${values.join("\n")}`,
          "PY",
        ];
  return `${SHELL}cd {W}\n${[...lines, ...program].join("\n")}\n:\n`;
}

const noPython = (name: string): string =>
  `printf '@ missing %s\\tpython3 is not in the image\\n' ${quoted(name)}`;

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Reads the lines of `attempt`, whatever else was printed. */
export function readAnswers(text: string): readonly AttemptAnswer[] {
  return text.split("\n").flatMap((line) => {
    const [, kind, name, why] = /^@ (through|refused|missing) ([^\t]+)\t(.*)$/.exec(line) ?? [];
    if (name === undefined || why === undefined) return [];
    return [{ name, kind: kind as AttemptAnswer["kind"], why }];
  });
}
