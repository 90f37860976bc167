import { given, networkTo, part, reading, valuesOf, writing } from "./argument-roles.ts";
import type { Arg, Found, Use, Reader } from "./program-model.ts";

/** Settings that run a text on this side. */
const RUNNING = new Set(["proxycommand", "localcommand", "knownhostscommand"]);
/** Settings that only say how the connection is made. */
const TAME = new Set(
  `batchmode connecttimeout connectionattempts stricthostkeychecking loglevel port user hostname hostkeyalias
  serveraliveinterval serveralivecountmax compression ciphers macs kexalgorithms hostkeyalgorithms addressfamily
  passwordauthentication pubkeyauthentication preferredauthentications identitiesonly forwardagent forwardx11
  requesttty numberofpasswordprompts checkhostip visualhostkey tcpkeepalive exitonforwardfailure verifyhostkeydns
  hashknownhosts updatehostkeys pubkeyacceptedkeytypes pubkeyacceptedalgorithms`.split(/\s+/),
);

/** `-o Name=value` or `-o 'Name value'`. */
function setting(value: Arg, use: Use): readonly Found[] {
  const [, name = "", rest = ""] = /^\s*(\w+)\s*[=\s]\s*([^]*)$/.exec(value.value) ?? [];
  const key = name.toLowerCase();
  if (RUNNING.has(key)) return use.shell(part(value, rest));
  if (key === "proxyjump") return [networkTo(part(value, rest))];
  return value.kind === "literal" && TAME.has(key) ? [] : [use.doubt("option.loads-code", value)];
}

const settings = (use: Use): readonly Found[] => valuesOf(use, "-o").flatMap((value) => setting(value, use));

/** Of what follows the host, options are still its own; the rest is for the other machine. */
function behindHost(use: Use): readonly Found[] {
  const [, next] = use.operands;
  return next?.value.startsWith("-") === true && next.value !== "--"
    ? [use.doubt("option.unknown", next)]
    : [];
}

/** With a path on this side only, it is a copy. */
const copies = (use: Use): readonly Found[] => [...settings(use), ...copied(use, hostPart)];
const reached = (arg: Arg, host: string): readonly Found[] =>
  host === "" ? [] : [networkTo(part(arg, host))];
/** With one of these, and with none but these, it only shows what is in a file. */
const SHOWING = ["-l", "-B", "-y", "-F", "-L", "-e"];
const WITH_THEM = new Set([...SHOWING, "-f", "-E", "-m", "-P", "-q", "-v"]);

function keyFile(use: Use): readonly Found[] {
  const shows = given(use, ...SHOWING) && use.options.every(({ name }) => WITH_THEM.has(name));
  const files = valuesOf(use, "-f");
  if (files.length > 0) return files.map((file) => (shows ? reading(file, use) : writing(file, use)));
  // Keys of a device, or of the machine.
  if (given(use, "-D", "-A", "-k", "-Q")) return [];
  const name = given(use, "-F", "-R", "-H") ? "known_hosts" : "id_ed25519";
  return [{ kind: shows ? "read" : "write", path: `${use.home}/.ssh/${name}` }];
}

const rings = ({ home }: Use): Found => ({ kind: "read", path: `${home}/.gnupg` });
const DELETING = [
  "--del",
  "--delete",
  "--delete-before",
  "--delete-during",
  "--delete-delay",
  "--delete-after",
  "--delete-excluded",
  "--delete-missing-args",
];

/** Reads on both sides and changes nothing. */
const isDry = (use: Use): boolean => given(use, "-n", "--dry-run", "--list-only") || use.operands.length < 2;

function synchronised(use: Use): readonly Found[] {
  if (isDry(use))
    return copied(use, hostPart).map((found) =>
      found.kind === "write" ? { ...found, kind: "read" } : found,
    );
  const moved = given(use, "--remove-source-files") ? use.operands.slice(0, -1) : [];
  return [
    ...copied(use, hostPart),
    ...moved.filter((arg) => hostPart(arg) === null).map((arg) => writing(arg, use)),
    ...(given(use, ...DELETING) ? emptied(use, hostPart) : []),
  ];
}

/** Rules of a filter may stand in files: `merge FILE`, `. FILE`. */
const filterFiles = (use: Use): readonly Found[] =>
  valuesOf(use, "-f", "--filter").flatMap((rule) => {
    const file = /^(?:merge|\.)[^\s_]*[\s_]+([^]+)$/.exec(rule.value)?.[1];
    return file === undefined ? [] : [reading(part(rule, file), use)];
  });

/** The other side would obey these; nothing on this one does. */
const remoteOptions = (use: Use): readonly Found[] =>
  valuesOf(use, "-M", "--remote-option").map((arg) => use.doubt("option.unknown", arg));
/** Where one end of a copy lies on another machine: what stands for that machine, empty where that tells no host. Null: on this one. */
type Elsewhere = (arg: Arg) => string | null;

/** `host:path`, `host::module`, `scheme://host/path`: a colon before the first slash. */
function hostPart({ value }: Arg): string | null {
  if (/^[a-z][a-z0-9+]*:\/\//i.test(value)) return value;
  const [host] = /^(?:[^/@:]*@)?(?:\[[^\]/]*\]|[^/:[]+)(?=:)/.exec(value) ?? [];
  return host ?? null;
}

/** `bucket://…`, `remote:path`, `pod:path`: a name of the program's own, which tells no host. */
export const named = ({ value }: Arg): string | null =>
  /^(?:[a-z0-9]+:\/\/|[^/:]+:)/i.test(value) ? "" : null;

/** All but the last operand are read, the last one is written; hosts are the network. */
export function copied(use: Use, elsewhere: Elsewhere): readonly Found[] {
  const sources = use.operands.length > 1 ? use.operands.slice(0, -1) : use.operands;
  const target = use.operands.length > 1 ? use.operands.at(-1) : undefined;
  const ends = sources.flatMap((arg): readonly Found[] => {
    const host = elsewhere(arg);
    return host === null ? [reading(arg, use)] : reached(arg, host);
  });
  if (target === undefined) return ends;
  const host = elsewhere(target);
  if (host !== null) return [...ends, ...reached(target, host)];
  return [...ends, writing(target, use), ...into(target, sources, use)];
}

/** In a folder the copies get the names that they had. */
function into(target: Arg, sources: readonly Arg[], use: Use): readonly Found[] {
  if (sources.length < 2 && !/(?:^|\/)\.{0,2}$/.test(target.value)) return [];
  return sources.flatMap((source) => {
    const name = source.value.slice(
      Math.max(source.value.lastIndexOf("/"), source.value.lastIndexOf(":")) + 1,
    );
    return /^\.{0,2}$/.test(name) ? [] : [writing(part(target, `${target.value}/${name}`), use)];
  });
}

/** The target loses what the source does not have. */
export function emptied(use: Use, elsewhere: Elsewhere): readonly Found[] {
  const target = use.operands.at(-1);
  if (target === undefined || use.operands.length < 2 || elsewhere(target) !== null) return [];
  return [{ kind: "delete", path: use.place(target), recursive: true, forced: true, span: target.span }];
}
/** What rows ask of this file, by name. */
export const SSH_READERS: Readonly<Record<string, Reader>> = {
  "ssh settings": settings,
  "words behind the host": behindHost,
  "copies by ssh": copies,
  "ssh-keygen": keyFile,
  gpg: (use) =>
    given(
      use,
      "--recipient",
      "-r",
      "--list-keys",
      "--list-secret-keys",
      "--recv-keys",
      "--export",
      "--edit-key",
    )
      ? [rings(use)]
      : use.operands.map((file) => reading(file, use)),
  gpgv: (use) => [rings(use)],
  rsync: synchronised,
  "rsync filters": filterFiles,
  "rsync options of the other side": remoteOptions,
};
