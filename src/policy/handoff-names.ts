import type { Tier } from "../core/run-record.ts";
import { fold } from "../core/file-names.ts";
import { asFields, isFields, parsedJson } from "../core/raw-data.ts";
import { DANGEROUS, LOOK } from "./handoff-names.generated.ts";

interface Known {
  readonly tier: Tier;
  readonly reason: string;
  readonly folder: boolean;
}

interface Pattern {
  readonly head: string;
  readonly tail: string;
  readonly known: Known;
}

const [EXACT, PATTERNS] = tables();

function tables(): readonly [ReadonlyMap<string, Known>, readonly Pattern[]] {
  const exact = new Map<string, Known>();
  const patterns: Pattern[] = [];
  for (const [tier, rows] of [["look", LOOK] as const, ["dangerous", DANGEROUS] as const])
    for (const [reason, names] of Object.entries(rows))
      for (const name of names) {
        const known = { tier, reason, folder: name.endsWith("/") };
        const plain = name.replace(/\/$/, "");
        const star = plain.indexOf("*");
        if (star === -1) exact.set(plain, known);
        else patterns.push({ head: plain.slice(0, star), tail: plain.slice(star + 1), known });
      }
  return [exact, patterns];
}

/** The table row of one name of a path. */
export function knownName(name: string): Known | undefined {
  const folded = fold(name);
  return (
    EXACT.get(folded) ??
    PATTERNS.find(
      ({ head, tail }) =>
        folded.length >= head.length + tail.length && folded.startsWith(head) && folded.endsWith(tail),
    )?.known
  );
}

/** Keys of a `package.json` that are run, or that decide what is run. */
const PARTS = [
  "scripts",
  "bin",
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "peerDependencies",
  "bundleDependencies",
  "overrides",
  "resolutions",
  "workspaces",
  "packageManager",
  "husky",
  "lint-staged",
  "simple-git-hooks",
  "pre-commit",
  "gypfile",
  "pnpm",
  "allowScripts",
  "trustedDependencies",
];

/** Why a changed `package.json` matters to the host; undefined when none of those keys changed. */
export function packageReason(before: string | undefined, after: string | undefined): string | undefined {
  const [old, now] = [before, after].map((text) => asFields(parsedJson(text ?? "{}")));
  if (old === undefined || now === undefined) return "npm runs its scripts, and what it depends on";
  const parts = PARTS.filter((part) => JSON.stringify(old[part]) !== JSON.stringify(now[part]));
  if (parts.length === 0) return undefined;
  const scripts = changedNames(old["scripts"], now["scripts"]);
  const others = parts.filter((part) => part !== "scripts");
  return [
    ...(scripts.length === 0 ? [] : [`npm runs its scripts; changed: ${scripts.join(", ")}`]),
    ...(others.length === 0 ? [] : [`changed: ${others.join(", ")}`]),
  ].join("; ");
}

function changedNames(before: unknown, after: unknown): readonly string[] {
  const [old, now] = [isFields(before) ? before : {}, isFields(after) ? after : {}];
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((name) => old[name] !== now[name])
    .toSorted();
}
