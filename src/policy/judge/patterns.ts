import { fits, readPattern } from "../paths/glob.ts";

/** Names that a pattern may be meant for, or find by accident. */
const SENSITIVE =
  `.env .git .ssh .aws .gnupg .npmrc .netrc .harness .vscode .idea .husky .envrc .bashrc .profile .claude .codex
  id_rsa id_ed25519 credentials credentials.json secrets.json secrets.yaml shadow environ`.split(/\s+/);

const SPECIAL = /[*?[]/;

export const isPattern = (path: string): boolean => SPECIAL.test(path);

/** Paths that stand for all that a pattern can name: an unremarkable one, and each sensitive one that it fits on purpose. */
export function samplesOf(pattern: string): readonly string[] {
  const names = pattern.split("/");
  const plain = names.map((name) => (isPattern(name) ? unremarkable(name) : name));
  const samples = [plain.join("/")];
  for (const [index, name] of names.entries()) {
    if (!isPattern(name)) continue;
    for (const sensitive of SENSITIVE)
      if (isMeant(name, sensitive)) samples.push(plain.with(index, sensitive).join("/"));
  }
  return samples;
}

const unremarkable = (name: string): string => name.replaceAll(/\[[^\]]*\]?|[*?]/g, "x");

/** A name with a dot in front is found only by a pattern with one; others count when the pattern begins like them. */
function isMeant(name: string, sensitive: string): boolean {
  const literal = name.search(SPECIAL);
  if (literal === 0 || (literal < 2 && !sensitive.startsWith("."))) return false;
  const [pattern] = readPattern(name) ?? [];
  return pattern !== undefined && fits(pattern, sensitive, true);
}
