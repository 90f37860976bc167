/** What recorded runs did, and the grants that their connections needed. */
import type { Mode, Verdict } from "../core/decision.ts";
import type { AgentEvent } from "../core/events.ts";
import { coversHost, coversPort, type Grant, grantText, isPreset, readGrant } from "../core/network.ts";

type Of<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;

/** A judged command, with its folder and mode. */
export interface RecordedCommand {
  readonly text: string;
  /** The workspace when left out. */
  readonly folder?: string;
  readonly mode: Mode;
}

interface RecordedFile {
  readonly path: string;
  readonly op: "read" | "write";
  readonly mode: Mode;
}

/** A refused call. */
interface RecordedRefusal {
  readonly what: string;
  /** The command, if the call was one. */
  readonly command?: RecordedCommand;
  readonly decision: Verdict;
  readonly rule: string;
  readonly reason: string;
}

type RecordedConnection = Pick<Of<"connection">, "host" | "port" | "method" | "verdict" | "rule" | "reason">;

/** Everything in runs that a proposal of a policy and grants is based on. */
export interface Recording {
  /** The workspaces of all runs; a proposal needs a single one. */
  readonly workspaces: ReadonlySet<string>;
  readonly ran: readonly RecordedCommand[];
  readonly files: readonly RecordedFile[];
  readonly refused: readonly RecordedRefusal[];
  /** How often each rule matched something that ran. */
  readonly rules: ReadonlyMap<string, number>;
  readonly connections: readonly RecordedConnection[];
  /** Grants of the boxes, as the user wrote them. */
  readonly granted: ReadonlySet<string>;
  /** A run had an unfiltered network, so its connections are not known. */
  readonly unfiltered: boolean;
}

class RecordingBuilder {
  readonly workspaces = new Set<string>();
  readonly ran: RecordedCommand[] = [];
  readonly files: RecordedFile[] = [];
  readonly refused: RecordedRefusal[] = [];
  readonly rules = new Map<string, number>();
  readonly connections: RecordedConnection[] = [];
  readonly granted = new Set<string>();
  unfiltered = false;
  #mode: Mode = "workspace-write";

  begin({ mode, workspace, granted = [] }: Of<"run.started">): void {
    this.#mode = mode;
    this.workspaces.add(workspace);
    for (const each of granted) this.granted.add(each);
    if (mode === "danger-full-access") this.unfiltered = true;
  }

  call(event: Of<"call.decided">): void {
    for (const each of event.grant?.domains ?? []) this.granted.add(each);
    if (event.judged === undefined) return;
    const { commands, folder, reads, writes } = event.judged;
    const where = folder === undefined ? { mode: this.#mode } : { folder, mode: this.#mode };
    const commandsJudged = commands.map((text): RecordedCommand => ({ text, ...where }));
    if (!event.runs) return this.#refusal(event, commandsJudged, [...writes, ...reads]);
    this.ran.push(...commandsJudged);
    for (const path of reads) this.files.push({ path, op: "read", mode: this.#mode });
    for (const path of writes) this.files.push({ path, op: "write", mode: this.#mode });
    for (const id of new Set(event.rules.map((rule) => rule.id)))
      this.rules.set(id, (this.rules.get(id) ?? 0) + 1);
  }

  #refusal(
    { rules: [first], decision }: Of<"call.decided">,
    commands: readonly RecordedCommand[],
    paths: readonly string[],
  ): void {
    const why = { decision, rule: first?.id ?? "none", reason: first?.reason ?? "" };
    for (const command of commands) this.refused.push({ what: command.text, command, ...why });
    if (commands.length === 0) this.refused.push({ what: paths.join(", "), ...why });
  }
}

/** Reads the events of one or more runs, each from its first one on. */
export function recordingOf(events: Iterable<AgentEvent>): Recording {
  const collected = new RecordingBuilder();
  for (const event of events) {
    if (event.type === "run.started") collected.begin(event);
    else if (event.type === "call.decided") collected.call(event);
    else if (event.type === "connection") collected.connections.push(event);
  }
  return collected;
}

interface Reached {
  /** Hosts that commands name, as grants. */
  readonly hosts: ReadonlySet<string>;
  /** Presets that installations fetch from. */
  readonly presets: ReadonlySet<string>;
}

interface ProposedGrants {
  readonly allow_domains: readonly string[];
  readonly denied: readonly { readonly what: string; readonly reason: string }[];
  readonly hosts: Readonly<Record<string, number>>;
}

/**
 * The narrowest grants under which the same connections would have been let through: the hosts that were reached, with
 * their ports, and with methods where these are known. Refused connections are told and never granted. In full access
 * nobody sees the connections, so the hosts that commands name are granted.
 */
export function proposeGrants(
  { connections, granted, unfiltered }: Recording,
  reached: Reached,
): ProposedGrants {
  const hosts = new Map<string, number>();
  for (const { host, port, method, verdict } of connections) {
    const line = [`${hostText(host)}:${port}`, ...(method === null ? [] : [method]), verdict].join(" ");
    hosts.set(line, (hosts.get(line) ?? 0) + 1);
  }
  const denied = connections.flatMap(({ host, port, verdict, rule, reason }) =>
    verdict === "denied" ? [{ what: `${hostText(host)}:${port}`, reason: `${reason} (${rule})` }] : [],
  );
  const named = unfiltered ? [...reached.hosts, ...reached.presets] : [];
  const all = new Set([...grantsFor(connections, granted, reached.presets), ...named]);
  return {
    allow_domains: [...all].toSorted((one, other) => (one < other ? -1 : 1)),
    denied,
    hosts: Object.fromEntries(hosts),
  };
}

const hostText = (host: string): string => (host.includes(":") ? `[${host}]` : host);

type UserGrant = Grant & { readonly text: string };

function grantsFor(
  connections: readonly RecordedConnection[],
  granted: ReadonlySet<string>,
  presets: ReadonlySet<string>,
): readonly string[] {
  const userGrants = [...granted].flatMap((text): readonly UserGrant[] => {
    const read = isPreset(text) ? undefined : readGrant(text);
    return read?.kind === "grant" ? [{ ...read.grant, text }] : [];
  });
  const kept = new Set<string>();
  const byHost: RecordedConnection[] = [];
  for (const connection of connections) {
    if (connection.verdict !== "allowed" || connection.host === "") continue;
    const by = userGrants.filter((grant) => covers(grant, connection));
    const preset = by.find(({ origin }) => isPreset(origin));
    if (by.length === 0) for (const each of presetsOf(granted, presets)) kept.add(each);
    else if (preset === undefined) byHost.push(connection);
    else kept.add(preset.text);
  }
  return [...kept, ...grantsByHost(byHost, userGrants)];
}

const covers = (grant: Grant, { host, port }: RecordedConnection): boolean =>
  coversHost(grant, host) && coversPort(grant, port);

/**
 * The machine's settings say which registry a preset stands for: the candidates are the presets that were installed
 * from or, without any, all granted ones.
 */
function presetsOf(granted: ReadonlySet<string>, used: ReadonlySet<string>): readonly string[] {
  const words = [...granted].filter(isPreset);
  const some = words.filter((word) => used.has(word));
  return some.length > 0 ? some : words;
}

interface HostUse {
  readonly host: string;
  readonly port: number;
  readonly own: boolean;
  readonly methods: Set<string> | null;
}

/** One grant for each host and set of methods, with the ports where these methods were seen. */
function grantsByHost(
  connections: readonly RecordedConnection[],
  grants: readonly UserGrant[],
): readonly string[] {
  const names = namesFor(new Set(connections.map(({ host }) => host)), grants);
  const seen = new Map<string, HostUse>();
  for (const connection of connections) {
    const { port, method } = connection;
    const host = names.get(connection.host) ?? connection.host;
    const key = `${host} ${port}`;
    const before = seen.get(key);
    const own = grants.some((grant) => grant.private && covers(grant, connection));
    const others = before === undefined ? new Set<string>() : before.methods;
    const methods = method === null || others === null ? null : new Set([...others, method]);
    seen.set(key, { host, port, own: own || before?.own === true, methods });
  }
  const groups = Map.groupBy(seen.values(), ({ host, own, methods }) =>
    JSON.stringify([host, own, methodsOf(methods)]),
  );
  return [...groups.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const { host, own } = first;
    const ports = [first, ...others].map(({ port }) => port).toSorted((one, other) => one - other);
    return [grantText({ host, ports, methods: methodsOf(first.methods), private: own, origin: host })];
  });
}

const READS: readonly string[] = ["GET", "HEAD", "OPTIONS"];
const METHODS: readonly string[] = [...READS, "POST", "PUT", "PATCH", "DELETE"];

/**
 * A client that reads may also send HEAD or OPTIONS first. A method that no grant can name makes the grant one of all
 * methods.
 */
function methodsOf(seen: ReadonlySet<string> | null): readonly string[] | null {
  if (seen === null || [...seen].some((method) => !METHODS.includes(method))) return null;
  if ([...seen].every((method) => READS.includes(method))) return READS;
  return METHODS.filter((method) => seen.has(method));
}

/**
 * Hosts keep their own names; several that differ only in what belongs to one run get the pattern that the user
 * granted.
 */
function namesFor(hosts: ReadonlySet<string>, grants: readonly UserGrant[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const alike of Map.groupBy(hosts, (host) => shapeOf(host).key).values()) {
    const pattern = grants.find(
      (grant) => grant.host.startsWith("*.") && alike.every((host) => coversHost(grant, host)),
    );
    if (alike.length > 1 && pattern !== undefined) for (const host of alike) names.set(host, pattern.host);
  }
  return names;
}

/**
 * Parts of names that belong to one run: hashes, dates, temporary names. A part counts as one by its form alone, so
 * parts that a person may have chosen (`v2024`, `sha256`, `part-1`) do not count.
 */

interface Piece {
  /** The part as it stands in the name. */
  readonly text: string;
  /** The character class of each position; undefined for a part that belongs to no run. */
  readonly classes?: readonly string[];
}

const HEX = "[0-9a-f]";
const DIGIT = "[0-9]";
const ANY = "[0-9A-Za-z]";

const BEFORE = "(?<![0-9A-Za-z])";
const BEHIND = "(?![0-9A-Za-z])";
const DATE = String.raw`(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])`;
const COMPACT = String.raw`(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])`;

/** In the order in which they are tried. */
const FORMS = [
  String.raw`(?<uuid>${BEFORE}[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}${BEHIND})`,
  String.raw`(?<date>${BEFORE}${DATE}(?:[T_ -]\d\d[:.-]?\d\d(?:[:.-]?\d\d)?(?:\.\d{3})?Z?)?${BEHIND})`,
  String.raw`(?<stamp>${BEFORE}(?:${COMPACT}(?:[T_-]?\d{4}(?:\d\d)?Z?)?|1\d{9}(?:\d{3})?)${BEHIND})`,
  String.raw`(?<hex>${BEFORE}(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}${BEHIND})`,
].join("|");
/** Forms in temporary folders only: random names, such as those of `mktemp`, and process numbers. */
const TEMPORARY = [
  String.raw`(?<number>(?<=[._-])\d{3,}${BEHIND})`,
  String.raw`(?<random>(?<=[/._-])(?:(?=[0-9A-Za-z]*[A-Z])(?=[0-9A-Za-z]*[a-z])|(?=[0-9A-Za-z]*\d)(?=[0-9A-Za-z]*[A-Za-z]))[0-9A-Za-z]{6,}${BEHIND})`,
].join("|");

/** The name of a folder for temporary files, as the beginning of a word or of an option's value. */
const IN_TEMPORARY = /(?:^|=)\/(?:var\/)?tmp\//;

/** A text, split into its parts. Two texts are of one shape when their keys are equal. */
export interface Shape {
  readonly key: string;
  readonly pieces: readonly Piece[];
}

export function shapeOf(text: string): Shape {
  const forms = new RegExp(IN_TEMPORARY.test(text) ? `${FORMS}|${TEMPORARY}` : FORMS, "g");
  const pieces: Piece[] = [];
  const keys: string[] = [];
  let at = 0;
  for (const match of text.matchAll(forms)) {
    const [token] = match;
    const kind = Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined)?.[0] ?? "";
    const classes = classesOf(kind, token);
    pieces.push({ text: text.slice(at, match.index) }, { text: token, classes });
    keys.push(text.slice(at, match.index), `${kind} ${classes.length}`);
    at = match.index + token.length;
  }
  pieces.push({ text: text.slice(at) });
  keys.push(text.slice(at));
  return { key: JSON.stringify(keys), pieces };
}

const classesOf = (kind: string, token: string): readonly string[] =>
  Array.from(token, (character) => {
    if (!/[0-9A-Za-z]/.test(character) || (kind === "date" && !/\d/.test(character))) return character;
    if (kind === "uuid" || kind === "hex") return HEX;
    return kind === "random" ? ANY : /\d/.test(character) ? DIGIT : character;
  });

/**
 * Joins texts of one shape. `write` gives the text for parts in which they differ; parts that are equal in all stay.
 */
export function joinShapes(
  shapes: readonly Shape[],
  write: (piece: Required<Piece>) => string,
): { readonly text: string; readonly differs: boolean } {
  const [first, ...others] = shapes;
  let differs = false;
  const text = (first?.pieces ?? []).map(({ text: own, classes }, at) => {
    if (classes === undefined || others.every(({ pieces }) => pieces[at]?.text === own)) return own;
    differs = true;
    return write({ text: own, classes });
  });
  return { text: text.join(""), differs };
}

/** A glob for exactly this form: a long one ends in a star. */
export const asGlob = ({ classes }: Required<Piece>): string =>
  classes.length <= MAX_CLASSES ? classes.join("") : `${classes.slice(0, MAX_CLASSES).join("")}*`;

const MAX_CLASSES = 36;
