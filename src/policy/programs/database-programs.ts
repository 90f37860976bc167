import { commandsFromStdin, part, valuesOf } from "./argument-roles.ts";
import type { Arg, Found, Use } from "./program-model.ts";

/** `\! command` of psql and mysql, `system command` of mysql, `COPY … PROGRAM 'command'`: the client or server runs it. */
const ESCAPES = /\\!\s*([^\n]+)|^\s*system\s+([^\n;]+)|\bprogram\s+'([^']+)'/i;

function statement(text: Arg, use: Use): readonly Found[] {
  const [, escape, system, program] = ESCAPES.exec(text.value) ?? [];
  const command = escape ?? system ?? program;
  if (command !== undefined) return use.shell(part(text, command));
  return text.value.includes("\\") ? [use.doubt("language.unknown", text)] : [];
}

/** Statements on the command line, and those that come in by stdin. */
export const statements =
  (...options: readonly string[]) =>
  (use: Use): readonly Found[] => [
    ...valuesOf(use, ...options).flatMap((text) => statement(text, use)),
    ...commandsFromStdin(use),
  ];
