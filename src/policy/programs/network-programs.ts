/** Clients of networks: requests and downloads, sockets and names, remote shells and copies. */
import { PROGRAM_WORDS } from "../program-words.generated.ts";
import {
  hasOption,
  hostsOf,
  networkTo,
  part,
  reachesAnyway,
  reading,
  valuesOf,
  writing,
} from "./argument-roles.ts";
import type { Arg, FoundEffect, UseReader, Use } from "./program-model.ts";

/** The last name in the path of an address; null where the server chooses it. */
const LAST_NAME = /^[^/?#]+\/(?:[^?#]*\/)?([^/?#]+)/;
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/** Files named after the last name of their addresses, in the folder or the current one. */
function downloads(use: Use, addresses: readonly Arg[], folder?: Arg): readonly FoundEffect[] {
  const here: Arg = folder ?? { kind: "literal", value: ".", span: use.span };
  const names = addresses.flatMap((address) => {
    const name =
      address.kind === "dynamic" ? undefined : LAST_NAME.exec(address.value.replace(SCHEME, ""))?.[1];
    return name === undefined
      ? []
      : [writing(part({ ...here, span: address.span }, `${here.value}/${name}`), use)];
  });
  return names.length === addresses.length && names.length > 0 ? names : [writing(here, use), ...names];
}

/** The files that wget writes. With some options, the server chooses their names. */
function savedByWget(use: Use): readonly FoundEffect[] {
  if (hasOption(use, "-O", "--output-document", "--spider")) return [];
  const folder = valuesOf(use, "-P", "--directory-prefix").at(-1);
  const chosen = hasOption(use, ...WGET_CHOSEN) || use.operands.length === 0;
  return downloads(use, chosen ? [] : use.operands, folder);
}

/** Options with which the address does not determine the names of files. */
const WGET_CHOSEN = [
  "-r",
  "--recursive",
  "-m",
  "--mirror",
  "-p",
  "--page-requisites",
  "-x",
  "--force-directories",
  "-i",
  "--input-file",
  "--content-disposition",
  "--trust-server-names",
  "-e",
  "--execute",
];
const aria2Folder = (use: Use): ReturnType<typeof valuesOf>[number] | undefined =>
  valuesOf(use, "-d", "--dir").at(-1);

/** Effects of curl that its row cannot express. */
const curlEffects = (use: Use): readonly FoundEffect[] => [
  ...reachesAnyway(use),
  ...sentByCurl(use),
  ...otherHosts(use),
  ...[...use.operands, ...valuesOf(use, "--url")].flatMap((address) => localFile(address, use)),
  ...savedByCurl(use),
];

/** Options whose value is a file if it starts like this. */
const CURL_SENT: readonly (readonly [options: readonly string[], file: RegExp])[] = [
  [
    ["-d", "--data", "--data-ascii", "--data-binary", "--json", "-H", "--header", "--proxy-header"],
    /^@(.+)$/,
  ],
  [["-w", "--write-out", "--variable"], /^(?:%?[^@=]*)?@(.+)$/],
  [["--data-urlencode", "--url-query"], /^[^=@]*@(.+)$/],
  [["-F", "--form"], /^[^=]*=[@<]"?([^;",]+)/],
  // A value without an equals sign is a file of cookies.
  [["-b", "--cookie"], /^([^=]+)$/],
  [["--pinnedpubkey", "--proxy-pinnedpubkey"], /^(?!sha256\/\/)(.+)$/],
];

const sentByCurl = (use: Use): readonly FoundEffect[] =>
  CURL_SENT.flatMap(([options, file]) =>
    valuesOf(use, ...options).flatMap((value) => {
      const path = file.exec(value.value)?.[1];
      return path === undefined || path === "-" ? [] : [reading(part(value, path), use)];
    }),
  );

/**
 * `--connect-to HOST1:PORT1:HOST2:PORT2` and `--resolve HOST:PORT:ADDRESS` connect to another host than the address
 * says.
 */
const otherHosts = (use: Use): readonly FoundEffect[] =>
  valuesOf(use, "--connect-to", "--resolve").map((value): FoundEffect => {
    const [, host] = /^[^:]*:[^:]*:(\[[^\]]*\]|[^:,]*)/.exec(value.value) ?? [];
    return { kind: "network", hosts: host === undefined ? [] : hostsOf(part(value, host)), span: value.span };
  });

function localFile(address: Arg, use: Use): readonly FoundEffect[] {
  const path = /^file:\/\/?(?:localhost|127\.0\.0\.1)?(\/.*)$/i.exec(address.value)?.[1];
  return path === undefined ? [] : [reading(part(address, path), use)];
}

/** Files named after the address, and the folder of `--output-dir`. */
function savedByCurl(use: Use): readonly FoundEffect[] {
  const folder = valuesOf(use, "--output-dir").at(-1);
  const named = hasOption(use, "-O", "--remote-name", "--remote-name-all", "-J", "--remote-header-name");
  const addresses = [...use.operands, ...valuesOf(use, "--url")];
  const headers = hasOption(use, "-J", "--remote-header-name");
  return [
    ...(named ? downloads(use, headers ? [] : addresses, folder) : []),
    ...(folder === undefined
      ? []
      : valuesOf(use, "-o", "--output").map((file) =>
          writing(part(file, `${folder.value}/${file.value}`), use),
        )),
  ];
}

/** `name=@file`, `name:=@file`, `name@file`, `Header:@file`: the file is sent. */
const HTTP_SENT = /^[^=@:]*(?::?=@|:@|@)(.+)$/;

/** The first operand, or the one after a method, is the address; all others are fields. */
function httpRequest(use: Use): readonly FoundEffect[] {
  const [first, ...rest] = use.operands;
  const method = first !== undefined && /^[A-Z]+$/.test(first.value);
  const address = method ? rest[0] : first;
  const fields = method ? rest.slice(1) : rest;
  const sessions = valuesOf(use, "--session", "--session-read-only");
  return [
    { kind: "network", hosts: address === undefined ? [] : hostOf(address) },
    ...fields.flatMap((field) => {
      const file = HTTP_SENT.exec(field.value)?.[1];
      return file === undefined ? [] : [reading(part(field, file.replace(/;type=.*$/, "")), use)];
    }),
    ...(hasOption(use, "-d", "--download") && !hasOption(use, "-o", "--output")
      ? downloads(use, address === undefined ? [] : [address])
      : []),
    ...sessions.filter(({ value }) => value.includes("/")).map((file) => writing(file, use)),
  ];
}

/** `:3000/path` is this machine. */
const hostOf = (address: Arg): readonly string[] =>
  address.value.startsWith(":") ? ["localhost"] : hostsOf(address);

function kubectlFiles(use: Use): readonly FoundEffect[] {
  return valuesOf(use, "-f", "--filename")
    .filter(({ value }) => value !== "-")
    .map((file) =>
      file.value.includes("://") ? networkTo(file) : { kind: "read", path: use.place(file), span: file.span },
    );
}

function bucketCopies(use: Use): readonly FoundEffect[] {
  const empties =
    hasOption(use, "--delete", "--delete-unmatched-destination-objects", "-d") ||
    / (?:sync|bisync)$/.test(use.program);
  return [...copied(use, remoteName), ...(empties ? emptied(use, remoteName) : [])];
}

/** A shell or interpreter that gets its program from the other side of a connection. */
const fedFromOutside = ({ value, span }: Arg, use: Use): readonly FoundEffect[] =>
  use
    .command(
      value
        .split(/\s+/)
        .filter((word) => word !== "")
        .map((word) => ({ kind: "literal", value: word, span })),
      { input: "network" },
    )
    .filter((effect) => effect.kind === "code" && effect.from === "fetched");

/** One end of socat: `TYPE:what:more,options`. */
function endEffects(end: Arg, use: Use, readOnly: boolean): readonly FoundEffect[] {
  const [, type = "", rest = ""] = /^([^:,]*)[:,]?([^]*)$/.exec(end.value) ?? [];
  const what = part(end, beforeOptions(rest));
  if (/^(?:EXEC|SYSTEM|SHELL)$/i.test(type))
    return [...use.shell(what), ...(use.operands.some(isConnection) ? fedFromOutside(what, use) : [])];
  if (/^(?:CREATE|CREAT|OPEN|GOPEN|FILE|PIPE|FIFO)$/i.test(type))
    return [readOnly ? reading(what, use) : writing(what, use)];
  if (CONNECTION.test(type) && !/LISTEN|RECV/i.test(type)) return [networkTo(what)];
  return [];
}

const CONNECTION = /^(?:TCP|UDP|SCTP|DCCP|SSL|OPENSSL|SOCKS|PROXY|IP|VSOCK)/i;
const isConnection = ({ value }: Arg): boolean => CONNECTION.test(value);

/** The text up to the first unescaped comma. */
function beforeOptions(text: string): string {
  for (let at = text.indexOf(","); at !== -1; at = text.indexOf(",", at + 1))
    if (text.charAt(at - 1) !== "\\") return text.slice(0, at);
  return text;
}

/** Either end may be a pair, one for each direction; with `-u` the first is only read, with `-U` the second. */
function socatEnds(use: Use): readonly FoundEffect[] {
  const source = hasOption(use, "-u") ? 0 : hasOption(use, "-U") ? 1 : -1;
  const found = use.operands.flatMap((arg, index) =>
    arg.value.split("!!").flatMap((end) => endEffects(part(arg, end), use, index === source)),
  );
  return found.some(({ kind }) => kind === "network") ? found : [{ kind: "network", hosts: [] }, ...found];
}

/** `@server name type +option …`: the hosts are the server and every word with a dot. */
function nameLookups(use: Use): readonly FoundEffect[] {
  const found = use.args.flatMap((arg, index): readonly FoundEffect[] => {
    const before = use.args[index - 1]?.value;
    if (before === "-f" || before === "-k") return [reading(arg, use)];
    if (/^-[fk]./.test(arg.value)) return [reading(part(arg, arg.value.slice(2)), use)];
    return /^[^-+].*[.:]/.test(arg.value) ? [networkTo(arg)] : [];
  });
  return found.some(({ kind }) => kind === "network") ? found : [{ kind: "network", hosts: [] }, ...found];
}

/** Databases of the system by name; those of hosts query a server. */
function getentEffects(use: Use): readonly FoundEffect[] {
  const [table, ...rest] = use.operands;
  if (table === undefined) return [];
  if (/^(?:a?hosts(?:v[46])?|networks|netgroup|ethers)$/.test(table.value))
    return rest.length === 0 ? [reading(part(table, "/etc/hosts"), use)] : rest.map(networkTo);
  return /^(?:passwd|group|shadow|gshadow|services|protocols|rpc|aliases|initgroups)$/.test(table.value)
    ? [reading(part(table, `/etc/${table.value}`), use)]
    : [use.doubt("operand.unknown", table)];
}

/** `http:`, `file:` and other schemes may stand in place of files. */
const schemeDoubts = (use: Use): readonly FoundEffect[] =>
  use.args
    .filter(({ value }) => /^[a-z][a-z0-9.+-]+:/i.test(value))
    .map((arg) => use.doubt("operand.unknown", arg));
const LISTING_OPTIONS =
  /^(?:-[ltunpaeiomsHOM46x]+|--(?:listening|tcp|udp|numeric|processes|programs|all|unix|summary|no-header|wide|numeric-ports))$/;

/**
 * Reports only about this machine if it just lists and keeps addresses as numbers; otherwise it may query servers for
 * names.
 */
function socketTables({ args }: Use): readonly FoundEffect[] {
  const own = args.every(({ kind, value }) => kind === "literal" && LISTING_OPTIONS.test(value));
  const numbers = args.some(({ value }) => /^-[a-zA-Z]*n|^--numeric/.test(value));
  return [{ kind: "network", hosts: [], ...(own && numbers ? { inside: true } : {}) }];
}

/** Reports only about this machine if it is asked for ports and keeps addresses as numbers. */
function openConnections(use: Use): readonly FoundEffect[] {
  if (!hasOption(use, "-i")) return [];
  const named = [...valuesOf(use, "-i"), ...use.operands].filter(({ value }) => value !== "");
  const own = named.every(({ kind, value }) => kind === "literal" && OWN_SOCKETS.test(value));
  return [{ kind: "network", hosts: [], ...(own && hasOption(use, "-n") ? { inside: true } : {}) }];
}

const OWN_SOCKETS = /^[46]?(?:tcp|udp)?(?::[\d,-]+)?$/i;

/** Settings whose value runs on this machine. */
const SSH_RUNNING = new Set(PROGRAM_WORDS.ssh.runs);
/** Settings that only affect how the connection is made. */
const SSH_TAME = new Set(PROGRAM_WORDS.ssh.connection);

/** `-o Name=value` or `-o 'Name value'`. */
function sshSetting(value: Arg, use: Use): readonly FoundEffect[] {
  const [, name = "", rest = ""] = /^\s*(\w+)\s*[=\s]\s*([^]*)$/.exec(value.value) ?? [];
  const key = name.toLowerCase();
  if (SSH_RUNNING.has(key)) return use.shell(part(value, rest));
  if (key === "proxyjump") return [networkTo(part(value, rest))];
  return value.kind === "literal" && SSH_TAME.has(key) ? [] : [use.doubt("option.loads-code", value)];
}

const sshSettings = (use: Use): readonly FoundEffect[] =>
  valuesOf(use, "-o").flatMap((value) => sshSetting(value, use));

/** After the host, options are still ssh's own; the remaining words are for the other machine. */
function optionsAfterHost(use: Use): readonly FoundEffect[] {
  const [, next] = use.operands;
  return next?.value.startsWith("-") === true && next.value !== "--"
    ? [use.doubt("option.unknown", next)]
    : [];
}

/** With only local paths it is a local copy. */
const sshCopies = (use: Use): readonly FoundEffect[] => [...sshSettings(use), ...copied(use, hostPart)];
const reachedHost = (arg: Arg, host: string): readonly FoundEffect[] =>
  host === "" ? [] : [networkTo(part(arg, host))];

/** With these options only, ssh-keygen just shows the content of a file. */
const KEYGEN_SHOWING = ["-l", "-B", "-y", "-F", "-L", "-e"];
const KEYGEN_WITH_SHOWING = new Set([...KEYGEN_SHOWING, "-f", "-E", "-m", "-P", "-q", "-v"]);

function keyFile(use: Use): readonly FoundEffect[] {
  const shows =
    hasOption(use, ...KEYGEN_SHOWING) && use.options.every(({ name }) => KEYGEN_WITH_SHOWING.has(name));
  const files = valuesOf(use, "-f");
  if (files.length > 0) return files.map((file) => (shows ? reading(file, use) : writing(file, use)));
  // Keys of a device, or of the machine.
  if (hasOption(use, "-D", "-A", "-k", "-Q")) return [];
  const name = hasOption(use, "-F", "-R", "-H") ? "known_hosts" : "id_ed25519";
  return [{ kind: shows ? "read" : "write", path: `${use.home}/.ssh/${name}` }];
}

const keyRingRead = ({ home }: Use): FoundEffect => ({ kind: "read", path: `${home}/.gnupg` });
const RSYNC_DELETING = [
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
const isDryRsync = (use: Use): boolean =>
  hasOption(use, "-n", "--dry-run", "--list-only") || use.operands.length < 2;

function rsyncEffects(use: Use): readonly FoundEffect[] {
  if (isDryRsync(use))
    return copied(use, hostPart).map((found) =>
      found.kind === "write" ? { ...found, kind: "read" } : found,
    );
  const moved = hasOption(use, "--remove-source-files") ? use.operands.slice(0, -1) : [];
  return [
    ...copied(use, hostPart),
    ...moved.filter((arg) => hostPart(arg) === null).map((arg) => writing(arg, use)),
    ...(hasOption(use, ...RSYNC_DELETING) ? emptied(use, hostPart) : []),
  ];
}

/** Filter rules may be in files: `merge FILE`, `. FILE`. */
const filterFiles = (use: Use): readonly FoundEffect[] =>
  valuesOf(use, "-f", "--filter").flatMap((rule) => {
    const file = /^(?:merge|\.)[^\s_]*[\s_]+([^]+)$/.exec(rule.value)?.[1];
    return file === undefined ? [] : [reading(part(rule, file), use)];
  });

/** Options for the other side; they have no effect on this machine. */
const remoteOptions = (use: Use): readonly FoundEffect[] =>
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
export const remoteName = ({ value }: Arg): string | null =>
  /^(?:[a-z0-9]+:\/\/|[^/:]+:)/i.test(value) ? "" : null;

/** All operands but the last are read, the last one is written; hosts are network access. */
export function copied(use: Use, elsewhere: Elsewhere): readonly FoundEffect[] {
  const sources = use.operands.length > 1 ? use.operands.slice(0, -1) : use.operands;
  const target = use.operands.length > 1 ? use.operands.at(-1) : undefined;
  const ends = sources.flatMap((arg): readonly FoundEffect[] => {
    const host = elsewhere(arg);
    return host === null ? [reading(arg, use)] : reachedHost(arg, host);
  });
  if (target === undefined) return ends;
  const host = elsewhere(target);
  if (host !== null) return [...ends, ...reachedHost(target, host)];
  return [...ends, writing(target, use), ...filesInFolder(target, sources, use)];
}

/** Copies into a folder keep their names. */
function filesInFolder(target: Arg, sources: readonly Arg[], use: Use): readonly FoundEffect[] {
  if (sources.length < 2 && !/(?:^|\/)\.{0,2}$/.test(target.value)) return [];
  return sources.flatMap((source) => {
    const name = source.value.slice(
      Math.max(source.value.lastIndexOf("/"), source.value.lastIndexOf(":")) + 1,
    );
    return /^\.{0,2}$/.test(name) ? [] : [writing(part(target, `${target.value}/${name}`), use)];
  });
}

/** Deletes files in the target that the source does not have. */
function emptied(use: Use, elsewhere: Elsewhere): readonly FoundEffect[] {
  const target = use.operands.at(-1);
  if (target === undefined || use.operands.length < 2 || elsewhere(target) !== null) return [];
  return [{ kind: "delete", path: use.place(target), recursive: true, forced: true, span: target.span }];
}

/** The readers of this file, by the names that rows use. */
export const NETWORK_READERS: Readonly<Record<string, UseReader>> = {
  http: httpRequest,
  "yt-dlp": (use) => [
    ...reachesAnyway(use),
    ...(hasOption(use, "-o", "--output", "-P", "--paths") ? [] : downloads(use, [])),
  ],
  "kubectl version": (use) => {
    const value = use.options.find(({ name }) => name === "--client")?.value?.value;
    return hasOption(use, "--client") && (value ?? "true") === "true" ? [] : [{ kind: "network", hosts: [] }];
  },
  "kubectl files": kubectlFiles,
  "kubectl cp": (use) => copied(use, remoteName),
  "helm lint": (use) =>
    valuesOf(use, "-f", "--values")
      .filter(({ value }) => value.includes("://"))
      .map(networkTo),
  "bucket copies": bucketCopies,
  socat: socatEnds,
  "commands for the other side": (use) =>
    valuesOf(use, "-e", "-c", "--exec", "--sh-exec").flatMap((text) => fedFromOutside(text, use)),
  mail: ({ operands }) => [
    { kind: "network", hosts: operands.filter(({ value }) => value.includes("@")).flatMap(hostsOf) },
  ],
  "name lookups": nameLookups,
  getent: getentEffects,
  "socket tables": socketTables,
  "open connections": openConnections,
  "no schemes": schemeDoubts,
  curl: curlEffects,
  "wget files": savedByWget,
  aria2c: (use) => [
    ...reachesAnyway(use),
    ...downloads(
      use,
      hasOption(use, "-o", "--out", "-i", "--input-file") ? [] : use.operands,
      aria2Folder(use),
    ),
    ...valuesOf(use, "-o", "--out").flatMap((file) => {
      const folder = aria2Folder(use);
      return folder === undefined ? [] : [writing({ ...file, value: `${folder.value}/${file.value}` }, use)];
    }),
  ],
  axel: (use) => [
    ...reachesAnyway(use),
    ...(hasOption(use, "-o", "--output") ? [] : downloads(use, use.operands)),
  ],
  "ssh settings": sshSettings,
  "words behind the host": optionsAfterHost,
  "copies by ssh": sshCopies,
  "ssh-keygen": keyFile,
  gpg: (use) =>
    hasOption(
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
