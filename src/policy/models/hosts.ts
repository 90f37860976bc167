import { type Arg, UNKNOWN } from "./model.ts";

/**
 * The host of an address, of `host:port` or of `user@host:path`, in small letters and without a closing dot. None where
 * it cannot be seen, and none where two programs could see different ones: a wrong host is worse than none.
 */
export function hostsOf(arg: Pick<Arg, "kind" | "value" | "loose">): readonly string[] {
  if (!isPlain(arg)) return [];
  const { value } = arg;
  const authority = authorityOf(value);
  if (authority === null) return [];
  const host = hostIn(authority.replace(USER, ""));
  return host === null ? [] : [host];
}

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
/** Some programs find a host behind these with fewer slashes than two, or more. */
const SLOPPY = /^(?:https?|ftps?|wss?|ssh|sftp|scp|file|gopher|telnet|ldaps?):/i;
const ENDS = /[/?#]/;
/** Some take what follows a first `@`, a `;` or a backslash for the host, others what follows the last. */
const UNSURE = /[;\\\s]|@.*@/;
const USER = /^[^@]*@/;

/** User, host and port; of `user@host:path` all up to the first slash. */
function authorityOf(value: string): string | null {
  const scheme = SCHEME.exec(value)?.[0];
  if (scheme !== undefined) return cut(value.slice(scheme.length));
  if (SLOPPY.test(value) || value.includes("://")) return null;
  const authority = cut(value.startsWith("@") ? value.slice(1) : value);
  // To one program `a:b@c` is the host c, to another the file b@c on a.
  return authority !== null && /^[^@]*:[^@]*@/.test(authority) ? null : authority;
}

function cut(rest: string): string | null {
  const end = rest.search(ENDS);
  const authority = end === -1 ? rest : rest.slice(0, end);
  return authority.length > LONGEST || UNSURE.test(authority) ? null : authority;
}

/** Longer than any user, host and port. */
const LONGEST = 500;

const BRACKETS = /^(\[[0-9a-f:.]+\])(?::|$)/i;
const BARE_SIX = /^[0-9a-f]*:[0-9a-f:.]*:[0-9a-f:.]*$/i;
const NAME = /^[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?$/i;
/** What ends like a number is read as an address by most programs, and in more ways than one. */
const NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/i;
const FOUR = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|$)){4}$/;

function hostIn(text: string): string | null {
  const bracketed = BRACKETS.exec(text)?.[1];
  if (bracketed !== undefined) return bracketed.toLowerCase();
  if (BARE_SIX.test(text)) return `[${text.toLowerCase()}]`;
  const colon = text.indexOf(":");
  const name = (colon === -1 ? text : text.slice(0, colon)).replace(/\.$/, "");
  if (!NAME.test(name) || (NUMBER.test(name) && !FOUR.test(name))) return null;
  return name.toLowerCase();
}

/** The host stands as it is, whatever a pattern finds behind it and whatever the shell puts there. */
function isPlain({ kind, value, loose }: Pick<Arg, "kind" | "value" | "loose">): boolean {
  if (kind === "literal") return true;
  const slash = value.indexOf("/", SCHEME.exec(value)?.[0].length ?? 0);
  if (slash === -1) return false;
  if (kind === "glob") return value.search(/[*?[]/) > slash;
  return loose === undefined && value.indexOf(UNKNOWN) > slash;
}
