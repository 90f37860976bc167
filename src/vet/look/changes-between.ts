import type { Finding } from "../../core/behaviour.ts";
import type { Handoff } from "../../core/handoff.ts";
import type { LockEntry } from "../locks/lock-entry.ts";
import { changedLocks } from "../locks/changed-locks.ts";
import { Found, type LookRule } from "./rules.ts";

/** Facts about a tree that are kept to compare it with another. */
export interface TreeFacts {
  /** All findings, also those beyond the number that is shown. */
  readonly findings: readonly Finding[];
  /** Path and name → the text of what runs by itself. */
  readonly scripts: ReadonlyMap<string, string>;
  /** Path → what the host obeys, and a digest of it. */
  readonly obeyed: ReadonlyMap<string, { readonly handoff: Handoff; readonly digest: string }>;
  readonly programs: ReadonlySet<string>;
  /** Hosts that sources name → the first file that does. */
  readonly hosts: ReadonlyMap<string, string>;
  readonly locks: readonly LockEntry[];
}

/** What the second tree brings that the first one did not have. Pure. */
export function changesBetween(before: TreeFacts, after: TreeFacts): readonly Finding[] {
  const found = new Found();
  changedScripts(before, after, found);
  changedObeyed(before, after, found);
  for (const path of after.programs)
    if (!before.programs.has(path)) found.add("change.program", "it is now executable", { path });
  for (const [host, path] of after.hosts)
    if (!before.hosts.has(host)) found.add("change.host", `${host} is named for the first time`, { path });
  changedLocks(before.locks, after.locks, found);
  const known = new Set(before.findings.map(keyOf));
  for (const each of after.findings)
    if (!known.has(keyOf(each))) found.add(each.rule as LookRule, each.text, each);
  return found.all();
}

const keyOf = ({ rule, path, text }: Finding): string => `${rule}\n${path ?? ""}\n${text}`;

function changedScripts(before: TreeFacts, after: TreeFacts, found: Found): void {
  for (const [key, text] of after.scripts) {
    const old = before.scripts.get(key);
    if (old === text) continue;
    const [path = "", ...name] = key.split("\n");
    const words = old === undefined ? "new" : "changed";
    found.add("change.script", `${words}: ${name.join(" ")}: ${text.slice(0, 200)}`, { path });
  }
}

function changedObeyed(before: TreeFacts, after: TreeFacts, found: Found): void {
  for (const [path, { handoff, digest }] of after.obeyed) {
    const old = before.obeyed.get(path);
    if (old?.digest === digest) continue;
    const rule = handoff.tier === "dangerous" ? "change.obeyed" : "change.look";
    found.add(rule, `${old === undefined ? "new" : "changed"}: ${handoff.reason}`, { path });
  }
}
