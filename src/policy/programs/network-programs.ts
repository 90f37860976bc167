import {
  given,
  hostsOf,
  networkTo,
  part,
  reachesAnyway,
  reading,
  valuesOf,
  writing,
} from "./argument-roles.ts";
import { downloads } from "./curl-wget.ts";
import type { Arg, Found, Reader, Use } from "./program-model.ts";
import { copied, named as elsewhere, emptied, named as podPart } from "./ssh-programs.ts";

function sentFiles(use: Use): readonly Found[] {
  return valuesOf(use, "-f", "--filename")
    .filter(({ value }) => value !== "-")
    .map((file) =>
      file.value.includes("://") ? networkTo(file) : { kind: "read", path: use.place(file), span: file.span },
    );
}

function bucketCopies(use: Use): readonly Found[] {
  const empties =
    given(use, "--delete", "--delete-unmatched-destination-objects", "-d") ||
    / (?:sync|bisync)$/.test(use.program);
  return [...copied(use, elsewhere), ...(empties ? emptied(use, elsewhere) : [])];
}

/** `name=@file`, `name:=@file`, `name@file`, `Header:@file`: the file is sent. */
const SENT = /^[^=@:]*(?::?=@|:@|@)(.+)$/;

/** The first operand, or the one after a method, is the address; all others are fields. */
function request(use: Use): readonly Found[] {
  const [first, ...rest] = use.operands;
  const method = first !== undefined && /^[A-Z]+$/.test(first.value);
  const address = method ? rest[0] : first;
  const fields = method ? rest.slice(1) : rest;
  const sessions = valuesOf(use, "--session", "--session-read-only");
  return [
    { kind: "network", hosts: address === undefined ? [] : hostOf(address) },
    ...fields.flatMap((field) => {
      const file = SENT.exec(field.value)?.[1];
      return file === undefined ? [] : [reading(part(field, file.replace(/;type=.*$/, "")), use)];
    }),
    ...(given(use, "-d", "--download") && !given(use, "-o", "--output")
      ? downloads(use, address === undefined ? [] : [address])
      : []),
    ...sessions.filter(({ value }) => value.includes("/")).map((file) => writing(file, use)),
  ];
}

/** `:3000/path` is this machine. */
const hostOf = (address: Arg): readonly string[] =>
  address.value.startsWith(":") ? ["localhost"] : hostsOf(address);
/** The readers of this file, by the names that rows use. */
export const NETWORK_READERS: Readonly<Record<string, Reader>> = {
  http: request,
  "yt-dlp": (use) => [
    ...reachesAnyway(use),
    ...(given(use, "-o", "--output", "-P", "--paths") ? [] : downloads(use, [])),
  ],
  "kubectl version": (use) => {
    const value = use.options.find(({ name }) => name === "--client")?.value?.value;
    return given(use, "--client") && (value ?? "true") === "true" ? [] : [{ kind: "network", hosts: [] }];
  },
  "kubectl files": sentFiles,
  "kubectl cp": (use) => copied(use, podPart),
  "helm lint": (use) =>
    valuesOf(use, "-f", "--values")
      .filter(({ value }) => value.includes("://"))
      .map(networkTo),
  "bucket copies": bucketCopies,
};

/** One end of socat: `TYPE:what:more,options`. */
function endEffects(end: Arg, use: Use, readOnly: boolean): readonly Found[] {
  const [, type = "", rest = ""] = /^([^:,]*)[:,]?([^]*)$/.exec(end.value) ?? [];
  const what = part(end, beforeOptions(rest));
  if (/^(?:EXEC|SYSTEM|SHELL)$/i.test(type)) return use.shell(what);
  if (/^(?:CREATE|CREAT|OPEN|GOPEN|FILE|PIPE|FIFO)$/i.test(type))
    return [readOnly ? reading(what, use) : writing(what, use)];
  if (/^(?:TCP|UDP|SCTP|DCCP|SSL|OPENSSL|SOCKS|PROXY|IP)/i.test(type) && !/LISTEN|RECV/i.test(type))
    return [networkTo(what)];
  return [];
}

/** The text up to the first unescaped comma. */
function beforeOptions(text: string): string {
  for (let at = text.indexOf(","); at !== -1; at = text.indexOf(",", at + 1))
    if (text.charAt(at - 1) !== "\\") return text.slice(0, at);
  return text;
}

/** Either end may be a pair, one for each direction; with `-u` the first is only read, with `-U` the second. */
function socatEnds(use: Use): readonly Found[] {
  const source = given(use, "-u") ? 0 : given(use, "-U") ? 1 : -1;
  const found = use.operands.flatMap((arg, index) =>
    arg.value.split("!!").flatMap((end) => endEffects(part(arg, end), use, index === source)),
  );
  return found.some(({ kind }) => kind === "network") ? found : [{ kind: "network", hosts: [] }, ...found];
}

/** `@server name type +option …`: the hosts are the server and every word with a dot. */
function nameLookups(use: Use): readonly Found[] {
  const found = use.args.flatMap((arg, index): readonly Found[] => {
    const before = use.args[index - 1]?.value;
    if (before === "-f" || before === "-k") return [reading(arg, use)];
    if (/^-[fk]./.test(arg.value)) return [reading(part(arg, arg.value.slice(2)), use)];
    return /^[^-+].*[.:]/.test(arg.value) ? [networkTo(arg)] : [];
  });
  return found.some(({ kind }) => kind === "network") ? found : [{ kind: "network", hosts: [] }, ...found];
}

/** Databases of the system by name; those of hosts query a server. */
function getentEffects(use: Use): readonly Found[] {
  const [table, ...rest] = use.operands;
  if (table === undefined) return [];
  if (/^(?:a?hosts(?:v[46])?|networks|netgroup|ethers)$/.test(table.value))
    return rest.length === 0 ? [reading(part(table, "/etc/hosts"), use)] : rest.map(networkTo);
  return /^(?:passwd|group|shadow|gshadow|services|protocols|rpc|aliases|initgroups)$/.test(table.value)
    ? [reading(part(table, `/etc/${table.value}`), use)]
    : [use.doubt("operand.unknown", table)];
}

/** `http:`, `file:` and other schemes may stand in place of files. */
const schemeDoubts = (use: Use): readonly Found[] =>
  use.args
    .filter(({ value }) => /^[a-z][a-z0-9.+-]+:/i.test(value))
    .map((arg) => use.doubt("operand.unknown", arg));
const LISTING_OPTIONS =
  /^(?:-[ltunpaeiomsHOM46x]+|--(?:listening|tcp|udp|numeric|processes|programs|all|unix|summary|no-header|wide|numeric-ports))$/;

/**
 * Reports only about this machine if it just lists and keeps addresses as numbers; otherwise it may query servers for
 * names.
 */
function socketTables({ args }: Use): readonly Found[] {
  const own = args.every(({ kind, value }) => kind === "literal" && LISTING_OPTIONS.test(value));
  const numbers = args.some(({ value }) => /^-[a-zA-Z]*n|^--numeric/.test(value));
  return [{ kind: "network", hosts: [], ...(own && numbers ? { inside: true } : {}) }];
}
/** The readers of this file, by the names that rows use. */
export const SOCKET_READERS: Readonly<Record<string, Reader>> = {
  socat: socatEnds,
  mail: ({ operands }) => [
    { kind: "network", hosts: operands.filter(({ value }) => value.includes("@")).flatMap(hostsOf) },
  ],
  "name lookups": nameLookups,
  getent: getentEffects,
  "socket tables": socketTables,
  "no schemes": schemeDoubts,
};
