import type { Place } from "../effects/effect.ts";
import { type Arg, type Fixed, type Found, type Role, UNKNOWN, type Use } from "./program-model.ts";

export interface Weight {
  readonly forced: boolean;
  readonly recursive: boolean;
}

/** What an argument of this role does. `command` takes all that follow and is not asked here. */
export function roleEffects(
  role: Exclude<Role, "command">,
  arg: Arg,
  use: Use,
  weight: Weight,
): readonly Found[] {
  const { span } = arg;
  switch (role) {
    case "data":
    case "pattern":
      return [];
    case "read":
    case "in":
      return isStdio(arg) ? [] : [{ kind: "read", path: use.place(arg), span }, ...fetched(arg)];
    case "target":
      return [{ kind: "write", path: use.place(arg), span }];
    case "write":
      return isStdio(arg) ? [] : [{ kind: "write", path: use.place(arg), span }];
    case "delete":
    case "tree":
      return [
        {
          kind: "delete",
          path: use.place(arg),
          forced: weight.forced,
          recursive: role === "tree" || weight.recursive,
          span,
        },
      ];
    case "permissions":
      return [{ kind: "permissions", path: use.place(arg), recursive: weight.recursive, span }];
    case "host":
      return [{ kind: "network", hosts: hostsOf(arg), span }];
    case "check":
      return checkEffects(arg, use);
    case "code":
      return [use.doubt("language.unknown", arg)];
    case "loads":
      return [use.doubt("option.loads-code", arg)];
    case "project":
      return [{ kind: "code", from: "project", path: use.place(arg), span }];
    case "shell":
      return use.shell(arg);
  }
}

/** What looks like an option here stands behind `--`: it may be one again for what the program runs. */
function checkEffects(arg: Arg, use: Use): readonly Found[] {
  if (isStdio(arg)) return [];
  const { span } = arg;
  const path = use.place(arg);
  return [
    ...(arg.value.startsWith("-") ? [use.doubt("operand.unknown", arg)] : []),
    { kind: "read", path, span },
    { kind: "code", from: "check", path, span },
    ...fetched(arg),
  ];
}

/** What is named by its address instead of a path. */
const fetched = (arg: Arg): readonly Found[] =>
  /^[a-z][a-z0-9+.-]*:\/\//i.test(arg.value)
    ? [{ kind: "network", hosts: hostsOf(arg), span: arg.span }]
    : [];

/** A lone `-` is stdin or stdout. */
const isStdio = ({ kind, value }: Arg): boolean => value === "-" && kind === "literal";

export function fixedEffect(fixed: Fixed, folder: Place, what: string): Found {
  switch (fixed) {
    case "network":
      return { kind: "network", hosts: [] };
    case "install":
    case "process":
    case "privilege":
    case "system":
      return { kind: fixed, what };
    case "settings":
    case "check":
    case "project":
      return { kind: "code", from: fixed, path: folder };
    case "input":
      return { kind: "code", from: "input", path: null };
    case "ask":
      return { kind: "unknown", doubt: what.startsWith("-") ? "option.unknown" : "command.unfollowed", what };
    default:
      return { kind: "repository", change: fixed, what };
  }
}

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
  return authority.length > MAX_LENGTH || UNSURE.test(authority) ? null : authority;
}

/** Longer than any user, host and port. */
const MAX_LENGTH = 500;

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

/** What is not known may be harmless too: that is a doubt, and not yet the effect. */
export function outside(use: Use, isHarmless: (word: string) => boolean, fixed: Fixed): readonly Found[] {
  if (use.args.some(({ kind, value }) => kind === "literal" && !isHarmless(value)))
    return [fixedEffect(fixed, use.folder, use.program)];
  return use.args.filter(({ kind }) => kind !== "literal").map((arg) => use.doubt("word.dynamic", arg));
}

export const given = ({ options }: Use, ...names: readonly string[]): boolean =>
  options.some(({ name }) => names.includes(name));

/** Another text at the place of an argument: a part of it, or what it implies. */
export const part = (arg: Arg, value: string): Arg => ({ ...arg, value });

export const valuesOf = ({ options }: Use, ...names: readonly string[]): readonly Arg[] =>
  options.flatMap(({ name, value }) => (value !== null && names.includes(name) ? [value] : []));

export const reading = (file: Arg, use: Use): Found => ({
  kind: "read",
  path: use.place(file),
  span: file.span,
});

export const writing = (file: Arg, use: Use): Found => ({
  kind: "write",
  path: use.place(file),
  span: file.span,
});

export const networkTo = (arg: Arg): Found => ({ kind: "network", hosts: hostsOf(arg), span: arg.span });

/** For clients whose operands are hosts: without one the host comes from a file or a default. */
export const reachesAnyway = (use: Use): readonly Found[] =>
  use.operands.length > 0 ? [] : [{ kind: "network", hosts: [] }];
/** What comes in by stdin are commands, some of which run on this side. */
export const commandsFromStdin = ({ input }: Use): readonly Found[] =>
  input === "nothing" ? [] : [{ kind: "code", from: "input", path: null }];

export const word = (value: string, { span }: Pick<Arg, "span">): Arg => ({ kind: "literal", value, span });

/** Arguments that are handed on, from this one: they are judged as those of another program. */
export const handsOn =
  (to: string, from = 0) =>
  (use: Use): readonly Found[] => {
    const words = use.operands.slice(from);
    const [first] = words;
    if (first === undefined) return [];
    return use.command([word(to, first), ...(first.value === "--" ? words.slice(1) : words)]);
  };

/** Writes what it is given, or all that lies below. */
export const writesGiven = (use: Use): readonly Found[] =>
  use.operands.length === 0
    ? [{ kind: "write", path: use.folder }]
    : use.operands.map((arg): Found => ({ kind: "write", path: use.place(arg), span: arg.span }));

/** Code may also lie where an argument leads out of the folder. */
export const codeElsewhere = (use: Use): readonly Found[] =>
  use.args.flatMap((arg) => {
    const path = arg.value.slice(arg.value.indexOf("=") + 1);
    if (!path.startsWith("/") && !path.includes("..")) return [];
    return [{ kind: "code", from: "project", path: use.place({ ...arg, value: path }), span: arg.span }];
  });
