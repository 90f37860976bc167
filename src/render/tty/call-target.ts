/** What the arguments of a call are about, the telling ones first. */
const TELLING = ["command", "job", "pattern", "query", "prompt", "title", "path", "id"];
const PATCHED = /^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b\/)?)(\S.*)$/gm;

/** What a call is about, in the words of its arguments; whole and as they are, so never for a terminal. */
export function targetOf(args: Readonly<Record<string, unknown>>): string {
  const patch = args["patch"];
  if (typeof patch === "string") return [...patch.matchAll(PATCHED)].map(([, name]) => name).join(", ");
  const told = TELLING.map((key) => args[key]).filter((value) => typeof value === "string");
  const values = told.length > 0 ? told : Object.values(args).filter((value) => typeof value === "string");
  return values.slice(0, 2).join("  ");
}
