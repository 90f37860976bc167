import { namesSecret } from "./effects/environment.ts";
import type { Called } from "./effects/walk.ts";
import type { Effect } from "./effects/effect.ts";
import { isInside, resolvePath } from "./paths/normal-path.ts";
import { isTemp } from "./paths/system-paths.ts";
import { UNKNOWN } from "./programs/program-model.ts";
import type { Ruling } from "./ruling.ts";

/*
 * What nobody understands is left to the box, wherever nothing else about it speaks against. Nothing here decides: the box
 * has no way out and its protected paths are read-only, whatever a text hides from these words. They keep a run with
 * nobody there from trying what says of itself that it wants a secret, a host, or the machine around the box.
 */

/** What is known of paths; all of them absolute and normalised. */
interface Around {
  readonly workspace: string;
  readonly home: string;
  facts(
    path: string,
    op: "read" | "write",
  ): { readonly secret: string | null; readonly trap: string | null; readonly ignored: boolean };
}

/** In a box they are the box itself, which has a loopback of its own. */
export const isOwnHost = (host: string): boolean =>
  /^(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1\])$/.test(host);

/** Whether all of them are reached by what was granted: names of hosts, `*.` in front for those below one. */
export const areGranted = (hosts: readonly string[], granted: readonly string[]): boolean =>
  hosts.length > 0 && hosts.every((host) => granted.some((grant) => isGranted(host.toLowerCase(), grant)));

function isGranted(host: string, grant: string): boolean {
  const name = grant.toLowerCase();
  return name.startsWith("*.") ? host.endsWith(name.slice(1)) : host === name;
}

/** Words of programs that reach further than the workspace. What names none of them is as good as a file of the project. */
const REACHING =
  /\b(?:socket|urllib|requests?|httpx?|aiohttp|ftplib|smtplib|telnetlib|fetch|axios|net|dgram|dns|tls|https|Net::|LWP|curl|wget|subprocess|popen|system|spawn\w*|exec(?!utor\b)\w*|eval|(?<!\bre\.)compile|__import__|child_process|fork|kill|ctypes|ffi|dlopen|import_module|require_relative|open3|shell_exec|passthru|proc_open|environ|process\.env)\b|`|%x/;
/** A path that leads out. A slash between blanks divides. */
const OUT = /["'\s](?:\/(?!\s)|~|\.\.)/;
/** What a database is told. */
const STATEMENT = /(?<!\bos)\.execute(?:many|script)?(?=\()/g;
const TEMPORARY = /(["'])\/tmp\/(?!\.\.)(?=[\w.-]*(?:\/(?!\.\.)[\w.-]+)*\1)/g;

/** A program in any language that does nothing but with files of the workspace, as far as its words say. */
export function staysInside(text: string, { workspace }: Pick<Around, "workspace">): boolean {
  const told = text.includes("sqlite3") ? text.replaceAll(STATEMENT, ".") : text;
  if (told === "" || REACHING.test(told)) return false;
  const rest = told
    .replaceAll(TEMPORARY, "$1")
    .replaceAll(`"${workspace}/`, '"')
    .replaceAll(`'${workspace}/`, "'");
  return !OUT.test(rest);
}

const ASKS_HOSTS =
  /\b(?:socket|urllib|requests?|httpx?|aiohttp|ftplib|smtplib|telnetlib|fetch|axios|net|dgram|dns|tls|https|Net::|LWP)\b/;
/** The variables of the process, where one of them is named behind it in the first group. */
const VARIABLES = /(?:\bprocess\.env|\benviron|\bgetenv|%?\bENV)\b(?:(?:\.get)?[[({.]["']?(\w+))?/g;
const ALL_OF_THEM = /^(?:items|keys|values|copy|each|to_h|get|inspect)$/;

const DELETES = /\b(?:rm_?tree|rmSync|rm_rf?|rmdir|unlink|removedirs|remove_dir_all|remove_tree)\b/;

/** Whether a program that may do anything says that it wants a secret, a host, or to delete what lies outside. */
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
  return piece.startsWith("~") || !(isInside(workspace, path) || isTemp(path));
}

/** Pieces of the texts in quotes that a program holds. */
const quotedIn = (text: string): readonly string[] =>
  [...text.matchAll(/"([^"\n]*)"|'([^'\n]*)'|`([^`\n]*)`/g)].flatMap((match) =>
    piecesOf(match.slice(1).join("")),
  );

/** Programs that are there to reach hosts and engines, and packages that are fetched. */
const REACHERS = new RegExp(
  [
    String.raw`(?<![\w./@-])(?:curl|wget|aria2c|ssh|scp|sftp|rsync|nc|ncat|netcat|socat|telnet|l?ftp|dig|nslookup|ping|traceroute)(?:\.exe)?(?![\w.@/-])`,
    String.raw`(?<![\w./@-])(?:docker|podman|nerdctl|kubectl|helm|gh|glab|hub|aws|gcloud|terraform|xdg-open|systemd-run|nsenter)(?![\w.@/-])`,
    String.raw`\b(?:npm|pnpm|yarn|bun|pip[\d.]*|pipx|uv|gem|cargo|apt|apt-get|apk|dnf|yum|brew|conda|go)\s+(?:install|add|get|ci|publish|download|update|upgrade)\b`,
    String.raw`\bgit\s+(?:push|fetch|pull|clone)\b`,
  ].join("|"),
);

/** The hosts of the addresses in a text; empty ones for those that cannot be seen. */
function addressesIn(text: string): readonly string[] {
  const named = [
    ...text.matchAll(/\b(?!file:)[a-z][a-z0-9+.-]*:\/\/(?:[^\s"'`/@]*@)?(\[[^\]\s]*\]|[^\s"'`/:?#)\\]*)/gi),
  ];
  const devices = [...text.matchAll(/\/(?:dev|inet\d?)\/(?:tcp|udp)\/(?:\d+\/)?([^\s"'`/]*)/g)];
  const remotes = /(?:^|[\s"'`=])[\w.-]+@[\w.-]+:(?!\s)/.test(text) ? [""] : [];
  return [...[...named, ...devices].map(([, host = ""]) => host), ...remotes];
}

const piecesOf = (text: string): readonly string[] =>
  text.split(/[\s"'`()[\]{},;=<>|&@:]+/).filter((piece) => piece !== "");

/** What the piece of a text may be to whoever gets it: a path that is only read, or one that may be written too. */
type Use = "read" | "write";

/** Read as a path it is a secret, hidden, or something that the host obeys. */
function isKept(piece: string, around: Around, use: Use = "write"): boolean {
  const { workspace, home } = around;
  const path = resolvePath(workspace, piece.startsWith("~/") ? home + piece.slice(1) : piece);
  const { secret, ignored } = around.facts(path, "read");
  return secret !== null || ignored || (use === "write" && around.facts(path, "write").trap !== null);
}

const textObjection = (text: string, around: Around, use: Use = "write"): boolean =>
  !addressesIn(text).every(isOwnHost) ||
  REACHERS.test(text.replaceAll(UNKNOWN, " ")) ||
  piecesOf(text).some((piece) => isKept(piece, around, use));

/** They hand what they are given to the desktop. */
const OPENERS = new Set(["open", "code", "subl", "start"]);
/** A word that asks for what is kept. */
const KEPT_WORD =
  /(?:^|[^a-z])credential(?:s|-[\w-]+)?$|(?:password|passwd|auth_?token|secret_?key|api_?key)$/i;

/** What the words of a command say, whatever the program makes of them. */
function callObjection({ words }: Called, around: Around, use: Use): boolean {
  const [name = "", sub = "", ...rest] = words.map(({ value }) => value);
  if (OPENERS.has(name) || sub === "install" || (name === "php" && sub === "-i")) return true;
  const all = [name, sub, ...rest];
  return all.some((word) => KEPT_WORD.test(word)) || textObjection(all.join(" "), around, use);
}

interface Looked {
  readonly text: string;
  readonly calls: readonly Called[];
  readonly effects: readonly Effect[];
  /** Whether a program of that name is known. */
  readonly knows: (name: string) => boolean;
}

/** The rulings of the effects, in their order: `offline` becomes `never` where something speaks against it. */
export function withObjections(
  rulings: readonly Ruling[],
  { text, calls, effects, knows }: Looked,
  around: Around,
): readonly Ruling[] {
  if (!rulings.some(({ contained }) => contained === "offline")) return rulings;
  // Where it records in the repository, its box may write there.
  const records = new Set(effects.flatMap(({ kind, call }) => (kind === "repository" ? [call] : [])));
  const objected = (use: Use): readonly boolean[] =>
    calls.map((called, at) => records.has(at) || callObjection(called, around, use));
  const by = { read: objected("read"), write: objected("write") };
  // The words of a call of a function are seen by nobody else.
  const anywhere = calls.some(({ words: [name] }, at) => by.write[at] === true && !knows(name?.value ?? ""));
  return rulings.map((ruling, at) => {
    const effect = effects[at];
    if (ruling.contained !== "offline" || effect === undefined) return ruling;
    const speaks = anywhere || by[useOf(effect)][effect.call] === true || textSpeaks(effect, text, around);
    return speaks ? { ...ruling, contained: "never" } : ruling;
  });
}

/** Code and variables name what is read; of anything else nobody knows. */
const useOf = (effect: Effect): Use =>
  effect.kind === "code" || (effect.kind === "unknown" && effect.doubt.startsWith("env.")) ? "read" : "write";

/** `"$DIR/"*`: without a value it is everything that there is. */
const EVERYTHING_IF_EMPTY = /^["']?\$(?:\w+|\{\w+\}|\([^()]*\))["']?\/["']?\*?["']?$/;

/** What stands in the text, and in no word of a command: a variable before it, or what changes the commands behind it. */
function textSpeaks(effect: Effect, text: string, around: Around): boolean {
  if (effect.kind === "delete" && effect.path === null && effect.recursive)
    return EVERYTHING_IF_EMPTY.test(text.slice(...effect.span));
  if (effect.kind !== "unknown") return false;
  if (effect.doubt.startsWith("env.")) return textObjection(text.slice(...effect.span), around, "read");
  return effect.doubt.startsWith("shell.") && textObjection(text, around);
}

/** The same for what is wrong with a text as such. Where two readers disagree, neither has seen what it does. */
export const withObjectedFlaws = (
  flaws: readonly Ruling[],
  text: string,
  around: Around,
): readonly Ruling[] =>
  flaws.map((flaw) =>
    flaw.id === "text.disagree" && textObjection(text, around) ? { ...flaw, contained: "never" } : flaw,
  );
