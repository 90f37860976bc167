/**
 * Which kind of test a file contains and what it may share, judged by its path and text. `unit` needs no engine and
 * starts none of our programs; `e2e` starts the CLI, or programs of ours that are killed; `engine` needs a container
 * engine.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

export type Suite = "unit" | "e2e" | "engine";

export interface TestFile {
  /** The path from the root of the repository, with `/`. */
  readonly file: string;
  readonly suite: Suite;
  /** No other test runs at the same time: the file says `// alone: <why>`, or kills programs by the clock. */
  readonly alone: boolean;
  /**
   * Left out of a plain `npm test`, which has twelve minutes: the file says `// slow: <why>`. It shows rare crashes one
   * after the other, or the last of many tools that all take the same way; `npm run test:slow` runs it.
   */
  readonly slow: boolean;
  /** The slow suite runs it, too, and with more cases: the file says `// also slow: <why>`. */
  readonly alsoSlow: boolean;
  /** The file changes something that a process has only once, so it needs a separate process. */
  readonly ownProcess: boolean;
  /** A guess of its duration in milliseconds, while it has never run here: long files have many tests. */
  readonly guessMs: number;
}

/**
 * Things that a process has once: its environment, folder, user, signals, exit code, clock and the hooks of its root
 * test.
 */
const ONCE = [
  /\bprocess\.env(\[[^\]]+\]|\.\w+) (\?\?)?= /,
  /\bdelete process\.env\b/,
  /\bprocess\.(chdir|umask|on|once|exit|removeAllListeners)\(/,
  /\bprocess\.sete?[ug]id\b/,
  /\bprocess\.exitCode = /,
  /\bmock\.(timers|method|module|getter|setter)\b/,
  /\bglobalThis\.\w+ = /,
  /^\s*(before|after|beforeEach|afterEach)\(/m,
  // A client whose runner no longer answers reports that seconds later, when the test has ended.
  /\bscripted-?runner\b/i,
  /^\s*\/\/ own process: \S/m,
];

const MS_PER_CHARACTER: Readonly<Record<Suite, number>> = { unit: 0.2, e2e: 2, engine: 2 };

export function suiteOf(file: string): Suite {
  if (file.endsWith(".engine.test.ts")) return "engine";
  return file.startsWith("test/e2e/") || /(^|[/-])kill\.test\.ts$/.test(file) ? "e2e" : "unit";
}

export function described(file: string, text: string): TestFile {
  const suite = suiteOf(file);
  return {
    file,
    suite,
    alone: /^\/\/ alone: \S/m.test(text),
    slow: /^\/\/ slow: \S/m.test(text),
    alsoSlow: /^\/\/ also slow: \S/m.test(text),
    ownProcess: ONCE.some((pattern) => pattern.test(text)),
    guessMs: text.length * MS_PER_CHARACTER[suite],
  };
}

/** Every test file under `root`/test, by path. */
export function testFiles(root: string): readonly TestFile[] {
  return (
    readdirSync(path.join(root, "test"), { recursive: true, encoding: "utf8" })
      .map((file) => path.posix.join("test", file.replaceAll(path.sep, "/")))
      .filter((file) => file.endsWith(".test.ts") && !file.startsWith("test/fixtures/tasks/"))
      // These need a real model: test/real/main.ts runs them.
      .filter((file) => !file.endsWith(".real.test.ts"))
      // These need a cluster: test/kubernetes/main.ts runs them.
      .filter((file) => !file.endsWith(".cluster.test.ts"))
      .toSorted()
      .map((file) => described(file, readFileSync(path.join(root, file), "utf8")))
  );
}

/** The files that these words choose: suites (`slow` is one), or paths. Without a word, all that are not slow. */
export function called(every: readonly TestFile[], words: readonly string[]): readonly TestFile[] {
  if (words.length === 0) return every.filter(({ slow }) => !slow);
  return every.filter(
    ({ file, suite, slow, alsoSlow }) =>
      words.includes(file) || words.includes(slow ? "slow" : suite) || (alsoSlow && words.includes("slow")),
  );
}

/** The duration of each file in milliseconds when it last ran here; a file without an entry may be long. */
export type Times = ReadonlyMap<string, number>;

const UNKNOWN_MS = 2000;

/** The durations of these files, guessed if not measured. */
export const expected = (files: readonly TestFile[], measured: Times): Times =>
  new Map([...files.map(({ file, guessMs }) => [file, guessMs] as const), ...measured]);

const took = (times: Times, files: readonly string[]): number =>
  files.reduce((sum, file) => sum + (times.get(file) ?? UNKNOWN_MS), 0);

/** Longest first, so that none runs alone at the end. Files with equal times keep their order. */
export const longestFirst = <T>(
  all: readonly T[],
  times: Times,
  filesOf: (one: T) => readonly string[],
): T[] => all.toSorted((one, other) => took(times, filesOf(other)) - took(times, filesOf(one)));

/** Distributes these files over groups of about equal duration. */
export function dealt(
  files: readonly string[],
  groups: number,
  times: Times,
): readonly (readonly string[])[] {
  const hands = Array.from({ length: groups }, () => ({ files: [] as string[], took: 0 }));
  for (const file of longestFirst(files, times, (one) => [one])) {
    const hand = hands.reduce((least, each) => (each.took < least.took ? each : least));
    hand.files.push(file);
    hand.took += took(times, [file]);
  }
  return hands.map((hand) => hand.files).filter(({ length }) => length > 0);
}
