import { namesSecret } from "./effects/environment.ts";
import type { Called } from "./effects/walk.ts";
import type { Effect } from "./effects/effect.ts";
import { resolvePath } from "./paths/normal-path.ts";
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

/** Whether a program that may do anything says that it wants a secret, a host or the machine around the box. */
export function codeObjection(text: string, around: Around): boolean {
  const addresses = addressesIn(text);
  if (addresses.length === 0 ? ASKS_HOSTS.test(text) : !addresses.every(isOwnHost)) return true;
  if (REACHERS.test(text) || quotedIn(text).some((each) => isKept(each, around))) return true;
  return [...text.matchAll(VARIABLES)].some(
    ([, name]) => name === undefined || ALL_OF_THEM.test(name) || namesSecret(name),
  );
}

/** Pieces of the texts in quotes that a program holds. */
const quotedIn = (text: string): readonly string[] =>
  [...text.matchAll(/"([^"\n]*)"|'([^'\n]*)'|`([^`\n]*)`/g)].flatMap((match) =>
    piecesOf(match.slice(1).join("")),
  );

/** Programs that are there to reach hosts, engines or a desktop, and packages that are fetched. */
const REACHERS =
  /(?<![\w./@-])(?:(?:curl|wget|aria2c|ssh|scp|sftp|rsync|nc|ncat|netcat|socat|telnet|l?ftp|dig|nslookup|ping|traceroute|docker|podman|nerdctl|kubectl|helm|gh|glab|aws|gcloud|terraform|xdg-open|systemd-run|nsenter)(?![\w.@/-])|(?:npm|pnpm|yarn|bun|pip[\d.]*|pipx|uv|gem|cargo|apt|apt-get|apk|dnf|yum|brew|conda|go|opam|nuget|pod)\s+(?:install|add|get|ci|publish|download|update|upgrade)\b|git\s+(?:push|fetch|pull|clone)\b)/;

/** The hosts of the addresses in a text; empty ones for those that cannot be seen. */
function addressesIn(text: string): readonly string[] {
  const named = [...text.matchAll(/\b(?!file:)[a-z][a-z0-9+.-]*:\/\/(?:[^\s"'`/@]*@)?(\[[^\]\s]*\]|[^\s"'`/:?#)\\]*)/gi)];
  const devices = [...text.matchAll(/\/dev\/(?:tcp|udp)\/([^\s"'`/]*)/g)];
  const remotes = /(?:^|[\s"'`=])[\w.-]+@[\w.-]+:(?!\s)/.test(text) ? [""] : [];
  return [...[...named, ...devices].map(([, host = ""]) => host), ...remotes];
}

const piecesOf = (text: string): readonly string[] =>
  text.split(/[\s"'`()[\]{},;=<>|&@:]+/).filter((piece) => piece !== "");

/** Read as a path it is a secret, something that the host obeys, or hidden. */
function isKept(piece: string, { workspace, home, facts }: Around): boolean {
  const path = resolvePath(workspace, piece.startsWith("~/") ? home + piece.slice(1) : piece);
  const { secret, ignored } = facts(path, "read");
  return secret !== null || ignored || facts(path, "write").trap !== null;
}

const textObjection = (text: string, around: Around): boolean =>
  !addressesIn(text).every(isOwnHost) ||
  REACHERS.test(text) ||
  piecesOf(text).some((piece) => isKept(piece, around));

interface Looked {
  readonly text: string;
  readonly calls: readonly Called[];
  readonly effects: readonly Effect[];
  /** Whether a program of that name is known. */
  readonly knows: (name: string) => boolean;
}

/** What is the command itself, an option or an operand of it that nobody knows, or what the shell is told to do later. */
const OF_WORDS = /^(?:command|option|operand|language)\.|^shell\.(?:builtin|function)$|^word\.dynamic$/;

/** The rulings of the effects, in their order: `offline` becomes `never` where something speaks against it. */
export function withObjections(
  rulings: readonly Ruling[],
  { text, calls, effects, knows }: Looked,
  around: Around,
): readonly Ruling[] {
  if (!rulings.some(({ contained }) => contained === "offline")) return rulings;
  const objected = calls.map((called) => called.words.some(({ value }) => textObjection(value, around)));
  // The words of a call of a function are seen by nobody else.
  const anywhere = calls.some(({ words: [name] }, at) => objected[at] === true && !knows(name?.value ?? ""));
  return rulings.map((ruling, at) => {
    const effect = effects[at];
    if (ruling.contained !== "offline" || effect?.kind !== "unknown") return ruling;
    const { doubt, call, span } = effect;
    const speaks =
      anywhere ||
      (OF_WORDS.test(doubt) && objected[call] === true) ||
      (doubt.startsWith("env.") && textObjection(text.slice(...span), around)) ||
      (doubt === "shell.unreadable" && textObjection(text, around));
    return speaks ? { ...ruling, contained: "never" } : ruling;
  });
}

/** The same for what is wrong with a text as such. Where two readers disagree, neither has seen what it does. */
export const withObjectedFlaws = (flaws: readonly Ruling[], text: string, around: Around): readonly Ruling[] =>
  flaws.map((flaw) =>
    flaw.id === "text.disagree" && textObjection(text, around) ? { ...flaw, contained: "never" } : flaw,
  );
