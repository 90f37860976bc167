import type { Mode, Verdict } from "../../core/decision.ts";
import type { Op, PlaceKind, PlaceOf } from "./place.ts";

/** One thing that speaks for or against an operation. */
export interface Finding {
  readonly id: string;
  readonly reason: string;
  readonly verdict: Verdict;
}

interface KindRow {
  readonly id: string;
  readonly is: string;
  readonly read: Verdict;
  /** Apart from read-only mode, where nothing but a harmless device may be written unasked. */
  readonly write: Verdict;
  /** The operations that stay inside the workspace and temporary files, without network. */
  readonly contained: readonly Op[];
}

const KINDS: Readonly<Record<PlaceKind, KindRow>> = {
  workspace: row("path.workspace", "inside the workspace", "allow allow", ["read", "write"]),
  temp: row("path.temp", "a folder for temporary files", "allow allow", ["read", "write"]),
  "null-device": row("path.harmless-device", "a device that keeps nothing", "allow allow", ["read", "write"]),
  system: row("path.system", "a part of the system that every program reads", "allow ask", ["read"]),
  home: row("path.home", "in the home folder, outside the workspace", "ask ask", ["read"]),
  outside: row("path.outside", "outside the workspace", "ask ask", ["read"]),
  proc: row("path.proc", "the kernel's own account of the system and its processes", "ask ask", ["read"]),
  device: row("path.device", "a device", "ask deny", []),
  unknown: row("path.unknown", "leads where only the running system knows", "ask ask", []),
};

function row(id: string, is: string, verdicts: `${Verdict} ${Verdict}`, contained: readonly Op[]): KindRow {
  const [read, write] = verdicts.split(" ") as [Verdict, Verdict];
  return { id, is, read, write, contained };
}

export const isContained = ({ kind }: PlaceOf, op: Op): boolean => KINDS[kind].contained.includes(op);

/** At least one. The mode danger-full-access is not looked at here: what it changes, it changes of the whole. */
export function findingsOf(place: PlaceOf, op: Op, mode: Mode): readonly Finding[] {
  const { id, is, [op]: verdict } = KINDS[place.kind];
  const found: Finding[] = [{ id, reason: is, verdict }];
  const add = (id: string, reason: string | null, verdict: Verdict): void => {
    if (reason !== null) found.push({ id, reason, verdict });
  };
  add("path.secret", place.secret, "ask");
  add("path.protected", place.protected && `the host runs or obeys it; ${place.protected}`, "deny");
  add("path.startup", place.trap && `the host runs or obeys it; ${place.trap}`, "deny");
  add("path.ignored", place.ignored ? "hidden by .harnessignore" : null, "deny");
  if (op === "write" && mode === "read-only" && place.kind !== "null-device")
    add("path.read-only", "the mode is read-only", "ask");
  return found;
}

const LONGEST = 4096;

/** Why a text is no path that could be judged. */
export function whyUnreadable(path: string): Finding | undefined {
  const verdict = "deny";
  if (path === "") return { id: "path.empty", reason: "the path is empty", verdict };
  if (path.length > LONGEST)
    return { id: "path.too-long", reason: `the path is longer than ${LONGEST} characters`, verdict };
  if (CONTROL.test(path))
    return { id: "path.control", reason: "the path holds a control character", verdict };
  return path.isWellFormed()
    ? undefined
    : { id: "path.control", reason: "the path holds half a character", verdict };
}

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
