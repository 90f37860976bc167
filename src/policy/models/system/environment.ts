import { ENVIRONMENT, namesSecret } from "../../effects/environment.ts";
import type { Found, Use } from "../model.ts";

/** Variables by name are told, unless the name says that it is a secret; all of them are not. */
export function printenvEffects(use: Use): readonly Found[] {
  const names = use.args.filter(({ value }) => value !== "-0" && value !== "--null");
  const doubts = names
    .filter(({ kind, value }) => kind !== "literal" || value.startsWith("-"))
    .map((arg) => use.doubt(arg.kind === "literal" ? "option.unknown" : "word.dynamic", arg));
  const secret = names.length === 0 || names.some(({ value }) => namesSecret(value));
  return secret ? [...doubts, { kind: "read", path: ENVIRONMENT }] : doubts;
}
