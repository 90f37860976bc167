/** Rulings: the verdict on one effect, and whether the box alone contains it. */
import type { Verdict } from "../core/decision.ts";
import { coversHost, type Grant } from "../core/network.ts";
import type { Called } from "./effects/call-effects.ts";
import type { Effect } from "./effects/effect.ts";
import { namesSecret } from "./effects/environment.ts";
import { runsUnknownText } from "./effects/stray-texts.ts";
import { resolvePath } from "./paths/normal-path.ts";
import { isBoxed } from "./paths/path-place.ts";
import { UNKNOWN } from "./programs/program-model.ts";
import { REACHING } from "./reaching.generated.ts";
import type { TextDoubt } from "./shell/read-shell.ts";
import type { Span } from "./shell/shell-syntax.ts";

/** Verdict on one effect, or on one flaw of the text. */
export interface Ruling {
  readonly id: string;
  readonly reason: string;
  readonly span: Span;
  /** Verdict in workspace-write; read-only may be stricter. */
  readonly verdict: Verdict;
  readonly readOnly: Verdict;
  readonly contained: Containment;
}

/**
 * Whether the box alone contains the effect. `offline`: the effect is unknown, so only a box without a network contains it.
 * `never`: it reads a secret, reaches a host that is not granted, needs the machine around the box, or loses what undo
 * cannot restore.
 */
type Containment = "always" | "offline" | "never";

export type Worth = Pick<Ruling, "verdict" | "readOnly" | "contained">;

export const HARMLESS: Worth = { verdict: "allow", readOnly: "allow", contained: "always" };
/** Allowed where the workspace may change. */
export const IN_WORKSPACE: Worth = { verdict: "allow", readOnly: "ask", contained: "always" };
export const CONTAINED: Worth = { verdict: "ask", readOnly: "ask", contained: "always" };
/** Not understood, so contained only in a box without a network. */
export const UNKNOWN_DEED: Worth = { verdict: "ask", readOnly: "ask", contained: "offline" };
export const ASKED: Worth = { verdict: "ask", readOnly: "ask", contained: "never" };
export const DENIED: Worth = { verdict: "deny", readOnly: "deny", contained: "never" };

const RULES: Readonly<Record<TextDoubt["id"], readonly [reason: (what: string) => string, worth: Worth]>> = {
  "text.empty": [() => "there is no command", DENIED],
  "text.control": [
    (what) => `the text contains the control character ${what}, which programs and people read differently`,
    DENIED,
  ],
  "text.syntax": [(what) => `invalid shell syntax: ${what}`, DENIED],
  "text.invalid": [(what) => `${what} stands for bytes that are not valid text`, UNKNOWN_DEED],
  "text.invisible": [(what) => `${what} is invisible, or looks like another character`, UNKNOWN_DEED],
  "text.limit": [(what) => `the text is too long to examine: ${what}`, UNKNOWN_DEED],
  "text.disagree": [(what) => `the two shell parsers disagree: ${what}`, UNKNOWN_DEED],
};

export function textRuling({ id, what, span }: TextDoubt): Ruling {
  const [reason, worth] = RULES[id];
  return { id, reason: reason(what), span, ...worth };
}

/*
 * A command that is not understood may run in the box unless something speaks against it. These checks decide nothing: the
 * box has no network and its protected paths are read-only, whatever a text hides from them. They keep an unattended run
 * from trying a command that openly asks for a secret, a host, or the machine around the box.
 */

/** Facts about paths; all paths are absolute and normalised. */
interface Around {
  readonly workspace: string;
  readonly home: string;
  keeps(path: string, mayWrite: boolean): boolean;
}

/** Loopback addresses: inside a box they are the box itself. */
export const isOwnHost = (host: string): boolean =>
  /^(?:(?:[\w-]+\.)*localhost|127(?:\.\d{1,3}){1,3}|0\.0\.0\.0|\[::1\])$/.test(host);

/** Whether all hosts are granted and none is denied: by name, or below a name given with `*.` in front. */
export const areGranted = (
  hosts: readonly string[],
  granted: readonly Grant[],
  denied: readonly string[],
): boolean =>
  hosts.length > 0 &&
  hosts
    .map(plainHost)
    .every(
      (name) =>
        granted.some((grant) => coversHost(grant, name)) &&
        !denied.some((host) => coversHost({ host }, name)),
    );

const plainHost = (host: string): string => host.toLowerCase().replace(/^\[(.*)\]$/, "$1");

const anyOf = (words: readonly string[]): string => `(?:${words.join("|")})`;
const { hostWords, clientWords, processWords, deleteWords, hosts, engines, fetching } = REACHING;

/** Words with which a program reaches beyond the workspace. Code without any of them counts as a file of the project. */
const REACHES = new RegExp(
  String.raw`\b${anyOf([...hostWords, ...clientWords, ...processWords])}(?!\w)|\`|%x`,
);
/** A path outside of the workspace. A slash between blanks is a division. */
const OUT = /["'\s](?:\/(?!\s)|~|\.\.)/;
/** Method calls with which a database runs SQL. */
const STATEMENT = /(?<!\bos)\.execute(?:many|script)?(?=\()/g;
const TEMPORARY = /(["'])\/tmp\/(?!\.\.)(?=[\w.-]*(?:\/(?!\.\.)[\w.-]+)*\1)/g;

/** Going by its words, the program (in any language) only works on files of the workspace. */
export function staysInside(text: string, { workspace }: Pick<Around, "workspace">): boolean {
  const code = text.includes("sqlite3") ? text.replaceAll(STATEMENT, ".") : text;
  if (code === "" || REACHES.test(code)) return false;
  const rest = code
    .replaceAll(TEMPORARY, "$1")
    .replaceAll(`"${workspace}/`, '"')
    .replaceAll(`'${workspace}/`, "'");
  return !OUT.test(rest);
}

const ASKS_HOSTS = new RegExp(String.raw`\b${anyOf(hostWords)}\b`);
/** Access to environment variables; the first group is the variable's name, where one follows. */
const VARIABLES = /(?:\bprocess\.env|\benviron|\bgetenv|%?\bENV)\b(?:(?:\.get)?[[({.]["']?(\w+))?/g;
const ALL_OF_THEM = /^(?:items|keys|values|copy|each|to_h|get|inspect)$/;

const DELETES = new RegExp(String.raw`\b${anyOf(deleteWords)}\b`);

/** The code says that it reads a secret, reaches a host or deletes outside of the workspace. */
export function codeObjection(text: string, around: Around): boolean {
  const addresses = addressesIn(text);
  if (addresses.length === 0 ? ASKS_HOSTS.test(text) : !addresses.every(isOwnHost)) return true;
  const quoted = quotedIn(text);
  if (REACHERS.test(text) || quoted.some((each) => isKept(each, around))) return true;
  if (DELETES.test(text) && quoted.some((each) => leadsOut(each, around))) return true;
  return [...text.matchAll(VARIABLES)].some(
    ([, name]) => name === undefined || ALL_OF_THEM.test(name) || namesSecret(name),
  );
}

function leadsOut(piece: string, { workspace }: Around): boolean {
  if (!/^[/~]|(?:^|\/)\.\.(?:\/|$)/.test(piece)) return false;
  const path = resolvePath(workspace, piece);
  return piece.startsWith("~") || !isBoxed(path, workspace);
}

/** Words inside the quoted strings of a program. */
const quotedIn = (text: string): readonly string[] =>
  [...text.matchAll(/"([^"\n]*)"|'([^'\n]*)'|`([^`\n]*)`/g)].flatMap((match) =>
    piecesOf(match.slice(1).join("")),
  );

/** Programs that reach hosts and engines, and commands that fetch packages. */
const REACHERS = new RegExp(
  [
    String.raw`(?<![\w./@-])${anyOf(hosts)}(?:\.exe)?(?![\w.@/-])`,
    String.raw`(?<![\w./@-])${anyOf(engines)}(?![\w.@/-])`,
    ...fetching.map(({ programs, words }) => String.raw`\b${anyOf(programs)}\s+${anyOf(words)}\b`),
  ].join("|"),
);

const ADDRESS = /\b(?!file:)[a-z][a-z0-9+.-]*:\/\/(?:[^\s"'`/@]*@)?(\[[^\]\s]*\]|[^\s"'`/:?#)\\]*)/gi;
const DEVICE = /\/(?:dev|inet\d?)\/(?:tcp|udp)\/(?:\d+\/)?([^\s"'`/]*)/g;
const REMOTE = /(?:^|[\s"'`=])[\w.-]+@[\w.-]+:(?!\s)/;

/** Hosts of all addresses in a text; an empty string for each host that cannot be determined. */
function addressesIn(text: string): readonly string[] {
  const hosts: string[] = [];
  if (text.includes("://")) for (const [, host = ""] of text.matchAll(ADDRESS)) hosts.push(host);
  if (text.includes("/tcp/") || text.includes("/udp/"))
    for (const [, host = ""] of text.matchAll(DEVICE)) hosts.push(host);
  if (text.includes("@") && REMOTE.test(text)) hosts.push("");
  return hosts;
}

const piecesOf = (text: string): readonly string[] =>
  text.split(/[\s"'`()[\]{},;=<>|&@:]+/).filter((piece) => piece !== "");

/** How a path in a text may be used: only read, or also written. */
type PathUse = "read" | "write";

/** The text, taken as a path, is a secret, is hidden, or is something that the host obeys. */
function isKept(piece: string, around: Around, use: PathUse = "write"): boolean {
  const { workspace, home } = around;
  const path = resolvePath(workspace, piece.startsWith("~/") ? home + piece.slice(1) : piece);
  return around.keeps(path, use === "write");
}

const textObjection = (text: string, around: Around, use: PathUse = "write"): boolean =>
  !addressesIn(text).every(isOwnHost) ||
  REACHERS.test(text.includes(UNKNOWN) ? text.replaceAll(UNKNOWN, " ") : text) ||
  piecesOf(text).some((piece) => isKept(piece, around, use));

const OPENERS = new Set(REACHING.openers);
const KEPT_WORD = new RegExp(REACHING.kept, "i");

/** Objections against the words of a command, whatever its program makes of them. */
function callObjection({ words }: Called, around: Around, use: PathUse): boolean {
  const [name = "", sub = "", ...rest] = words.map(({ value }) => value);
  if (OPENERS.has(name) || sub === "install" || (name === "php" && sub === "-i")) return true;
  const all = [name, sub, ...rest];
  return all.some((word) => KEPT_WORD.test(word)) || textObjection(all.join(" "), around, use);
}

interface CommandFacts {
  readonly text: string;
  readonly calls: readonly Called[];
  readonly effects: readonly Effect[];
  /** Whether the program has a row. */
  readonly knows: (name: string) => boolean;
}

/** Names of objects in programs, not of files. */
const OBJECTS = /(?:^|\.)(?:process|import\.meta|context|ctx)\.env$/;

/**
 * Code of the project, and commands that read files known only at run time, are contained unless a word of the command
 * names a secret: it could be printed. For unknown files the words of all commands count.
 */
function withShownSecrets(
  rulings: readonly Ruling[],
  { calls, effects }: Pick<CommandFacts, "calls" | "effects">,
  around: Around,
): readonly Ruling[] {
  const naming: boolean[] = [];
  const names = (call: number, code?: string): boolean =>
    (naming[call] ??= namesKept(calls[call], code, around));
  return rulings.map((ruling, at) => {
    const effect = effects[at];
    if (ruling.contained !== "always" || effect === undefined || !couldShow(effect)) return ruling;
    const speaks =
      effect.kind === "code" ? names(effect.call, effect.text) : calls.some((_, call) => names(call));
    return speaks ? { ...ruling, contained: "never" } : ruling;
  });
}

const couldShow = (effect: Effect): boolean =>
  (effect.kind === "code" &&
    (effect.from === "project" || effect.from === "inline" || effect.from === "input")) ||
  (effect.kind === "read" && effect.path === null);

const PROGRAM = /[\s()].*["'`]|["'`].*[\s()]/s;

/** A word of the command, or the value in it, is the path of a secret or of a hidden file. */
function namesKept(called: Called | undefined, code: string | undefined, around: Around): boolean {
  const [, ...words] = called?.words ?? [];
  return words.some(
    ({ value }) =>
      value !== code &&
      // A program for a console: `rails runner 'puts File.read(".env")'`.
      ((PROGRAM.test(value) && quotedIn(value).some((each) => isKept(each, around, "read"))) ||
        [value, value.slice(value.indexOf("=") + 1)].some(
          (word) =>
            word !== "" && !/[\s()]/.test(word) && !OBJECTS.test(word) && isKept(word, around, "read"),
        )),
  );
}

/** Turns `offline` into `never` for each ruling that something speaks against. The order is kept. */
export function withObjections(
  rulings: readonly Ruling[],
  { text, calls, effects, knows }: CommandFacts,
  around: Around,
): readonly Ruling[] {
  const shown = withShownSecrets(rulings, { calls, effects }, around);
  if (!shown.some(({ contained }) => contained === "offline")) return shown;
  // A command that records in the repository may write there in its box.
  const records = new Set(effects.flatMap(({ kind, call }) => (kind === "repository" ? [call] : [])));
  const objected: Readonly<Record<PathUse, boolean[]>> = { read: [], write: [] };
  const objects = (call: number, use: PathUse): boolean => {
    const called = calls[call];
    if (called === undefined) return false;
    return (objected[use][call] ??= records.has(call) || callObjection(called, around, use));
  };
  let whole: boolean | undefined;
  const wholeSpeaks = (): boolean => (whole ??= textObjection(text, around));
  // Nothing else judges the words of a call to a function.
  const anywhere = calls.some(({ words: [name] }, at) => !knows(name?.value ?? "") && objects(at, "write"));
  return shown.map((ruling, at) => {
    const effect = effects[at];
    if (ruling.contained !== "offline" || effect === undefined) return ruling;
    const speaks =
      anywhere ||
      objects(effect.call, useOf(effect)) ||
      (runsUnknownText(effect, calls) && wholeSpeaks()) ||
      textSpeaks(effect, text, { around, wholeSpeaks });
    return speaks ? { ...ruling, contained: "never" } : ruling;
  });
}

/** Code and variables only read the paths in their words; any other effect may write them, too. */
const useOf = (effect: Effect): PathUse =>
  effect.kind === "code" || (effect.kind === "unknown" && effect.doubt.startsWith("env.")) ? "read" : "write";

/** `"$DIR/"*` is everything if the variable is empty. */
const EVERYTHING_IF_EMPTY = /^["']?\$(?:\w+|\{\w+\}|\([^()]*\))["']?\/["']?\*?["']?$/;

/** Text outside of a command's words: a variable assignment, or a construct that changes the commands after it. */
function textSpeaks(
  effect: Effect,
  text: string,
  { around, wholeSpeaks }: { readonly around: Around; readonly wholeSpeaks: () => boolean },
): boolean {
  if (effect.kind === "delete" && effect.path === null && effect.recursive)
    return EVERYTHING_IF_EMPTY.test(text.slice(...effect.span));
  if (effect.kind !== "unknown") return false;
  if (effect.doubt.startsWith("env.")) return textObjection(text.slice(...effect.span), around, "read");
  return effect.doubt.startsWith("shell.") && wholeSpeaks();
}

/** Does the same for flaws of the text. Where the two readers disagree, neither is known to be right. */
export const withObjectedFlaws = (
  flaws: readonly Ruling[],
  text: string,
  around: Around,
): readonly Ruling[] =>
  flaws.map((flaw) =>
    flaw.id === "text.disagree" && textObjection(text, around) ? { ...flaw, contained: "never" } : flaw,
  );
