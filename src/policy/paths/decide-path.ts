import {
  type Decision,
  type MatchedRule,
  type Mode,
  strictest,
  type Verdict,
  VERDICTS,
} from "../../core/decision.ts";
import { isInside } from "../../core/file-names.ts";
import type { UserRule, UserRules } from "../rule.ts";
import { resolvePath, specialKind } from "./normal-path.ts";
import { type Around, mayFit, surelyFits } from "./path-pattern.ts";
import {
  isOwnedTemp,
  type PathAccess,
  type PlaceKind,
  type PlaceOf,
  placeOf,
  type PathBase,
} from "./path-place.ts";

/**
 * Supplied by the caller: the real target of an absolute path, with every link followed and `..` applied after them, also
 * for a path that does not exist yet. Null: unknown, and the path is judged as written.
 */
export type LinkFacts = (path: string) => string | null;

export interface PathContext extends PathBase {
  readonly mode: Mode;
  readonly links?: LinkFacts;
  /** Rules of the user and of a trusted project. */
  readonly rules?: UserRules;
}

interface PathDecision extends Decision {
  /** The path as given; absolute and resolved where it could be read. */
  readonly path: string;
}

/** Decides for file tools. Their mode is the consent to writes in the workspace. */
export function decidePath(path: string, op: PathAccess, context: PathContext): PathDecision {
  const unreadable = whyUnreadable(path);
  if (unreadable !== undefined)
    return { decision: "deny", contained: false, rules: rulesOf([unreadable], path), path };
  const readings = readingsOf(path, op, context);
  const { rules = [], mode } = context;
  const findings = readings.flatMap(({ place, note }) => {
    const found = findingsOf(place, op, mode).map((each) => ({ ...each, reason: each.reason + note }));
    return ruledFindings(found, rules, { path: place.path, op, mode, around: context });
  });
  const verdict = strictest(findings.map((each) => each.verdict));
  return {
    decision: verdict === "ask" && context.mode === "danger-full-access" ? "allow" : verdict,
    contained: readings.every(({ place }) => isContained(place, op)),
    rules: rulesOf(findings, path),
    path: readings[0].place.path,
  };
}

/** File tools work here only, whatever a shell may read. */
const TOOL_PLACES: ReadonlySet<PlaceKind> = new Set(["workspace", "temp", "null-device"]);

/** Decides as `decidePath` does, for the file tools of an agent, which may also do nothing outside of the workspace. */
export function decideToolPath(path: string, op: PathAccess, context: PathContext): PathDecision {
  const decision = decidePath(path, op, context);
  const isOwn = (): boolean => {
    const places = readingsOf(path, op, context).map(({ place }) => place);
    const end = places.at(-1);
    return (
      places.every(({ kind }) => TOOL_PLACES.has(kind)) && !(end !== undefined && isOwnedTemp(end, context))
    );
  };
  if (decision.decision === "deny" || context.mode === "danger-full-access" || isOwn()) return decision;
  const reason = "outside the workspace: file tools work only inside it";
  const rules = [{ id: "path.outside", reason, span: [0, path.length] as const }];
  return { ...decision, decision: "deny", contained: false, rules };
}

/** Findings against the operation, strictest first; if there are none, the first one for it. */
function rulesOf(findings: readonly Finding[], path: string): readonly MatchedRule[] {
  const against = findings.filter(({ verdict }) => verdict !== "allow");
  const shown = against.length > 0 ? against : findings.slice(0, 1);
  const once = new Map(shown.map((each) => [`${each.id} ${each.reason}`, each]));
  return [...once.values()]
    .toSorted((a, b) => rank(b) - rank(a))
    .map(({ id, reason }) => ({ id, reason, span: [0, path.length] }));
}

const rank = ({ verdict }: Finding): number => VERDICTS.indexOf(verdict);

/** One finding for or against an operation. */
interface Finding {
  readonly id: string;
  readonly reason: string;
  readonly verdict: Verdict;
}

interface KindRow {
  readonly id: string;
  readonly is: string;
  readonly read: Verdict;
  /** In any mode but read-only, where only harmless devices are written without asking. */
  readonly write: Verdict;
  /** Operations that stay inside the workspace and temporary files, without network. */
  readonly contained: readonly PathAccess[];
}

const KINDS: Readonly<Record<PlaceKind, KindRow>> = {
  workspace: row("path.workspace", "inside the workspace", "allow allow", ["read", "write"]),
  temp: row("path.temp", "a folder for temporary files", "allow allow", ["read", "write"]),
  "null-device": row("path.harmless-device", "a device that stores nothing", "allow allow", [
    "read",
    "write",
  ]),
  system: row("path.system", "a part of the system that every program reads", "allow ask", ["read"]),
  home: row("path.home", "in the home folder, outside the workspace", "ask ask", ["read"]),
  outside: row("path.outside", "outside the workspace", "ask ask", ["read"]),
  proc: row("path.proc", "the kernel's information about the system and its processes", "ask ask", ["read"]),
  device: row("path.device", "a device", "ask deny", []),
  unknown: row("path.unknown", "where this path leads is known only at run time", "ask ask", []),
};

function row(
  id: string,
  is: string,
  verdicts: `${Verdict} ${Verdict}`,
  contained: readonly PathAccess[],
): KindRow {
  const [read, write] = verdicts.split(" ") as [Verdict, Verdict];
  return { id, is, read, write, contained };
}

/** A secret that is read ends up in the conversation, which no box can undo. */
const isContained = ({ kind, secret }: PlaceOf, op: PathAccess): boolean =>
  KINDS[kind].contained.includes(op) && (op === "write" || secret === null);

/** At least one finding. The mode danger-full-access is ignored here: it changes the decision as a whole. */
function findingsOf(place: PlaceOf, op: PathAccess, mode: Mode): readonly Finding[] {
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

const MAX_LENGTH = 4096;

/** Why a text is not a path that can be judged. */
function whyUnreadable(path: string): Finding | undefined {
  const verdict = "deny";
  if (path === "") return { id: "path.empty", reason: "the path is empty", verdict };
  if (path.length > MAX_LENGTH)
    return { id: "path.too-long", reason: `the path is longer than ${MAX_LENGTH} characters`, verdict };
  if (CONTROL.test(path))
    return { id: "path.control", reason: "the path contains a control character", verdict };
  return path.isWellFormed()
    ? undefined
    : { id: "path.control", reason: "the path contains an incomplete character", verdict };
}

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

interface PathRequest {
  readonly path: string;
  readonly op: PathAccess;
  readonly mode: Mode;
  readonly around: Around;
}

/** Asks that a rule may lift. Other asks say that the target is unknown, or that the mode forbids it. */
const COVERED: ReadonlySet<string> = new Set(["path.system", "path.home", "path.outside", "path.secret"]);

const covers = ({ id, verdict }: Finding): boolean => verdict === "ask" && COVERED.has(id);

/** The findings of one reading after users' rules. Only rules on paths alone and on the operation count. */
function ruledFindings(
  findings: readonly Finding[],
  rules: UserRules,
  request: PathRequest,
): readonly Finding[] {
  const matching = rules.filter((rule) => isAbout(rule, request));
  if (matching.length === 0) return findings;
  const allow = matching.find(({ decision }) => decision === "allow");
  const remaining =
    allow === undefined ? findings : [findingOf(allow), ...findings.filter((each) => !covers(each))];
  return [...remaining, ...matching.filter(({ decision }) => decision !== "allow").map(findingOf)];
}

const findingOf = ({ id, reason, decision }: UserRule): Finding => ({ id, reason, verdict: decision });

function isAbout(
  { prefix, arg, host, tool, effect, path, decision }: UserRule,
  { path: at, op, around, mode }: PathRequest,
): boolean {
  if (prefix !== null || arg !== null || host !== null || tool !== null) return false;
  if (effect?.includes(op) === false) return false;
  if (decision !== "allow")
    return path === null || path.some((each) => mayFit(each, at, { whole: false, around }));
  const mayWrite = op === "read" || mode !== "read-only";
  return effect !== null && mayWrite && path?.some((each) => surelyFits(each, at, around)) === true;
}

/** One way to read a path; the strictest decides. */
interface Reading {
  readonly place: PlaceOf;
  /** Suffix for each reason; empty for the path as written. */
  readonly note: string;
}

/** The path as written, then its real target if that is elsewhere. */
function readingsOf(path: string, op: PathAccess, context: PathContext): readonly [Reading, ...Reading[]] {
  const { links, ...rest } = context;
  const around = {
    ...rest,
    workspace: resolvePath("/", context.workspace),
    home: resolvePath("/", context.home),
  };
  if (path.startsWith("~") && !isOwnHome(path)) return [{ place: homeOfUser(path, op, around), note: "" }];
  const text = isOwnHome(path) ? around.home + path.slice(1) : path;
  const written = placeOf(text, op, around);
  // The judging machine is not asked about block devices or the view of another process.
  if (links === undefined || specialKind(written.path) !== undefined) return [{ place: written, note: "" }];
  const real = withRealFolders(around, links);
  const movedInside = !isInside(around.workspace, written.path) && isInside(real.workspace, written.path);
  const first = { place: movedInside ? placeOf(written.path, op, real) : written, note: "" };
  const paths = text.startsWith("/proc/") ? [written.path] : [written.path, absolute(text, around)];
  const targets = new Set([...new Set(paths)].map(links));
  const others = [...targets].filter((end) => end !== null && end !== written.path) as string[];
  return [first, ...others.map((end) => ({ place: placeOf(end, op, real), note: `; it leads to ${end}` }))];
}

const isOwnHome = (path: string): boolean => path === "~" || path.startsWith("~/");

/** `~name` is only known to the system; it is judged as a folder among the usual homes. */
const homeOfUser = (path: string, op: PathAccess, around: PathBase): PlaceOf => ({
  ...placeOf(`/home/${path.slice(1)}`, op, around),
  kind: "unknown",
  path,
});

/** Resolves the folders, so that link targets are compared with real folders. */
function withRealFolders(around: PathBase, links: LinkFacts): PathBase {
  const end = (folder: string): string => resolvePath("/", links(folder) ?? folder);
  return { ...around, workspace: end(around.workspace), home: end(around.home) };
}

const absolute = (path: string, { cwd, workspace }: PathBase): string =>
  path.startsWith("/") ? path : `${cwd ?? workspace}/${path}`;
