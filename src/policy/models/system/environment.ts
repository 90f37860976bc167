import type { Found, Use } from "../model.ts";

/** Where a process's variables can be read; they often hold keys and passwords. */
export const ENVIRONMENT = "/proc/self/environ";

const SECRET =
  /key|token|secret|pass|\wpwd$|pwd_|(?:^|_)(?:pat|jwt|sas|pin)(?:_|$)|webhook|private|cred|auth|cookie|session|dsn|_url$|_uri$|connection/i;

/** Variables by name are told, unless the name says that it is a secret; all of them are not. */
export function printenvEffects(use: Use): readonly Found[] {
  const names = use.args.filter(({ value }) => value !== "-0" && value !== "--null");
  const doubts = names
    .filter(({ kind, value }) => kind !== "literal" || value.startsWith("-"))
    .map((arg) => use.doubt(arg.kind === "literal" ? "option.unknown" : "word.dynamic", arg));
  const secret = names.length === 0 || names.some(({ value }) => SECRET.test(value));
  return secret ? [...doubts, { kind: "read", path: ENVIRONMENT }] : doubts;
}
