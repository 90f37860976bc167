import { PROGRAM_WORDS } from "../program-words.generated.ts";
import { given, networkTo, part, reading, valuesOf, writing } from "./argument-roles.ts";
import type { Arg, Found, Use, Reader } from "./program-model.ts";

/** Settings whose value runs on this machine. */
const RUNNING = new Set(PROGRAM_WORDS.ssh.runs);
/** Settings that only affect how the connection is made. */
const TAME = new Set(PROGRAM_WORDS.ssh.connection);

/** `-o Name=value` or `-o 'Name value'`. */
function setting(value: Arg, use: Use): readonly Found[] {
  const [, name = "", rest = ""] = /^\s*(\w+)\s*[=\s]\s*([^]*)$/.exec(value.value) ?? [];
  const key = name.toLowerCase();
  if (RUNNING.has(key)) return use.shell(part(value, rest));
  if (key === "proxyjump") return [networkTo(part(value, rest))];
  return value.kind === "literal" && TAME.has(key) ? [] : [use.doubt("option.loads-code", value)];
}

const settings = (use: Use): readonly Found[] => valuesOf(use, "-o").flatMap((value) => setting(value, use));

/** After the host, options are still ssh's own; the remaining words are for the other machine. */
function optionsAfterHost(use: Use): readonly Found[] {
  const [, next] = use.operands;
  return next?.value.startsWith("-") === true && next.value !== "--"
    ? [use.doubt("option.unknown", next)]
    : [];
}

/** With only local paths it is a local copy. */
const copies = (use: Use): readonly Found[] => [...settings(use), ...copied(use, hostPart)];
const reachedHost = (arg: Arg, host: string): readonly Found[] =>
  host === "" ? [] : [networkTo(part(arg, host))];
/** With these options only, ssh-keygen just shows the content of a file. */
const SHOWING = ["-l", "-B", "-y", "-F", "-L", "-e"];
const ALLOWED_WITH_SHOWING = new Set([...SHOWING, "-f", "-E", "-m", "-P", "-q", "-v"]);

function keyFile(use: Use): readonly Found[] {
  const shows = given(use, ...SHOWING) && use.options.every(({ name }) => ALLOWED_WITH_SHOWING.has(name));
  const files = valuesOf(use, "-f");
  if (files.length > 0) return files.map((file) => (shows ? reading(file, use) : writing(file, use)));
  // Keys of a device, or of the machine.
  if (given(use, "-D", "-A", "-k", "-Q")) return [];
  const name = given(use, "-F", "-R", "-H") ? "known_hosts" : "id_ed25519";
  return [{ kind: shows ? "read" : "write", path: `${use.home}/.ssh/${name}` }];
}

const keyRingRead = ({ home }: Use): Found => ({ kind: "read", path: `${home}/.gnupg` });
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

/** Whether rsync only reads on both sides and changes nothing. */
const isDry = (use: Use): boolean => given(use, "-n", "--dry-run", "--list-only") || use.operands.length < 2;

function rsyncEffects(use: Use): readonly Found[] {
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

/** Filter rules may be in files: `merge FILE`, `. FILE`. */
const filterFiles = (use: Use): readonly Found[] =>
  valuesOf(use, "-f", "--filter").flatMap((rule) => {
    const file = /^(?:merge|\.)[^\s_]*[\s_]+([^]+)$/.exec(rule.value)?.[1];
    return file === undefined ? [] : [reading(part(rule, file), use)];
  });

/** Options for the other side; they have no effect on this machine. */
const remoteOptions = (use: Use): readonly Found[] =>
  valuesOf(use, "-M", "--remote-option").map((arg) => use.doubt("option.unknown", arg));
/** An end of a copy on another machine: the machine's name, empty where no host is visible. Null: on this machine. */
type Elsewhere = (arg: Arg) => string | null;

/** `host:path`, `host::module`, `scheme://host/path`: a colon before the first slash. */
function hostPart({ value }: Arg): string | null {
  if (/^[a-z][a-z0-9+]*:\/\//i.test(value)) return value;
  const [host] = /^(?:[^/@:]*@)?(?:\[[^\]/]*\]|[^/:[]+)(?=:)/.exec(value) ?? [];
  return host ?? null;
}

/** `bucket://…`, `remote:path`, `pod:path`: a name of the program's own, not a host. */
export const named = ({ value }: Arg): string | null =>
  /^(?:[a-z0-9]+:\/\/|[^/:]+:)/i.test(value) ? "" : null;

/** All operands but the last are read, the last one is written; hosts are network access. */
export function copied(use: Use, elsewhere: Elsewhere): readonly Found[] {
  const sources = use.operands.length > 1 ? use.operands.slice(0, -1) : use.operands;
  const target = use.operands.length > 1 ? use.operands.at(-1) : undefined;
  const ends = sources.flatMap((arg): readonly Found[] => {
    const host = elsewhere(arg);
    return host === null ? [reading(arg, use)] : reachedHost(arg, host);
  });
  if (target === undefined) return ends;
  const host = elsewhere(target);
  if (host !== null) return [...ends, ...reachedHost(target, host)];
  return [...ends, writing(target, use), ...filesInFolder(target, sources, use)];
}

/** Copies into a folder keep their names. */
function filesInFolder(target: Arg, sources: readonly Arg[], use: Use): readonly Found[] {
  if (sources.length < 2 && !/(?:^|\/)\.{0,2}$/.test(target.value)) return [];
  return sources.flatMap((source) => {
    const name = source.value.slice(
      Math.max(source.value.lastIndexOf("/"), source.value.lastIndexOf(":")) + 1,
    );
    return /^\.{0,2}$/.test(name) ? [] : [writing(part(target, `${target.value}/${name}`), use)];
  });
}

/** Deletes files in the target that the source does not have. */
export function emptied(use: Use, elsewhere: Elsewhere): readonly Found[] {
  const target = use.operands.at(-1);
  if (target === undefined || use.operands.length < 2 || elsewhere(target) !== null) return [];
  return [{ kind: "delete", path: use.place(target), recursive: true, forced: true, span: target.span }];
}
/** The readers of this file, by the names that rows use. */
export const SSH_READERS: Readonly<Record<string, Reader>> = {
  "ssh settings": settings,
  "words behind the host": optionsAfterHost,
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
      ? [keyRingRead(use)]
      : use.operands.map((file) => reading(file, use)),
  gpgv: (use) => [keyRingRead(use)],
  rsync: rsyncEffects,
  "rsync filters": filterFiles,
  "rsync options of the other side": remoteOptions,
};
