import { isApart } from "../look/danger.ts";

/**
 * Splits a makefile into what make runs to install, build or test, and what it runs only if somebody asks for it by
 * name.
 */

interface Target {
  readonly names: readonly string[];
  /** Targets that it needs, and those that its lines have make build. */
  readonly leads: readonly string[];
  readonly first: number;
  readonly end: number;
}

interface MakefileParts {
  readonly asked: string;
  /** Empty if there are no such targets. Line numbers are the same in both texts. */
  readonly apart: string;
}

const RULE = /^([\w./%$(){}][^:=#\t]{0,300}?)\s*::?(?![:=])([^=#]*)(?:#.*)?$/;
const GOALS = new Set(["all", "build", "test", "tests", "check", "install", "default", ".DEFAULT"]);

export function makefileParts(text: string): MakefileParts {
  const lines = text.split("\n");
  const targets = targetsIn(lines);
  const reached = reachedTargets(targets);
  const apartLines = new Set(
    targets
      .filter(({ names }) => names.every((name) => isApart(name) && !reached.has(name)))
      .flatMap(({ first, end }) => Array.from({ length: end - first }, (_, at) => first + at)),
  );
  if (apartLines.size === 0) return { asked: text, apart: "" };
  const only = (wanted: boolean): string =>
    lines.map((line, at) => (apartLines.has(at) === wanted ? line : "")).join("\n");
  return { asked: only(false), apart: only(true) };
}

function targetsIn(lines: readonly string[]): readonly Target[] {
  const targets: Target[] = [];
  for (const [first, line] of lines.entries()) {
    const [, names = "", needs = ""] = RULE.exec(line) ?? [];
    if (names === "") continue;
    let end = first + 1;
    while (end < lines.length && /^(?:\t|\s*$|#)/.test(lines[end] ?? "")) end += 1;
    const called = lines
      .slice(first + 1, end)
      .flatMap((each) =>
        Array.from(each.matchAll(/(?:\$[({]MAKE[)}]|\bmake)\s+([\w .-]+)/g), ([, words = ""]) =>
          wordsOf(words),
        ).flat(),
      );
    targets.push({ names: wordsOf(names), leads: [...wordsOf(needs), ...called], first, end });
  }
  return targets;
}

const wordsOf = (text: string): readonly string[] => text.split(/[\s;|]+/).filter((word) => word !== "");

/** The targets reached from the default goal of make and from the usual goals. */
function reachedTargets(targets: readonly Target[]): ReadonlySet<string> {
  const first = targets.flatMap(({ names }) => names).find((name) => !name.startsWith("."));
  const run = new Set([...GOALS, ...(first === undefined ? [] : [first])]);
  const leads = new Map<string, string[]>();
  for (const target of targets)
    if (!target.names.includes(".PHONY"))
      for (const name of target.names) leads.set(name, [...(leads.get(name) ?? []), ...target.leads]);
  for (const name of run) for (const each of leads.get(name) ?? []) run.add(each);
  return run;
}
