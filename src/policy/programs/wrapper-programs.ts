import type { Arg, Found, Use, Reader } from "./program-model.ts";
import { assigned, joined, onlyBash, PRINTS_ENVIRONMENT } from "./shell-builtins.ts";

/** Variable assignments, then a command; without a command, `env` prints all variables. */
function envEffects(use: Use): readonly Found[] {
  const at = use.operands.findIndex(({ value }) => !/^[^=]+=/.test(value));
  const variables = at === -1 ? use.operands : use.operands.slice(0, at);
  const command = at === -1 ? [] : use.operands.slice(at);
  const split = use.options.filter(({ name }) => name === "-S" || name === "--split-string");
  return [
    ...assigned(use, variables, false),
    ...split.flatMap(({ value }) =>
      value === null ? [] : [use.doubt("option.unknown", value), ...use.shell(joined([value, ...command]))],
    ),
    ...(command.length > 0 ? use.command(command) : split.length > 0 ? [] : PRINTS_ENVIRONMENT(use)),
  ];
}

/** The words form one text for a shell. */
function watchedText(use: Use): readonly Found[] {
  const [first, ...rest] = use.operands;
  if (first === undefined) return [];
  const text = joined([first, ...rest]);
  return [...use.shell(text), ...onlyBash(text, use)];
}

/** A lock file, then a command, or a text after -c. */
function flockEffects(use: Use): readonly Found[] {
  const [lock, ...rest] = use.operands;
  if (lock === undefined) return [];
  const isText = rest[0]?.value === "-c" || rest[0]?.value === "--command";
  const text: Arg | undefined = isText ? rest[1] : undefined;
  const lockFile: Found = { kind: "write", path: use.place(lock), span: lock.span };
  return [lockFile, ...(text === undefined ? use.command(rest) : use.shell(text))];
}

/** Runs commands in a way that is not followed. */
export const escapes = (use: Use): Found => ({
  kind: "unknown",
  doubt: "command.escapes",
  what: use.program,
  span: use.span,
});
/** The readers of this file, by the names that rows use. */
export const WRAPPER_READERS: Readonly<Record<string, Reader>> = {
  env: envEffects,
  watch: watchedText,
  flock: flockEffects,
  script: (use) =>
    use.options.some(({ name }) => name === "-c" || name === "--command") ? [] : [escapes(use)],
};
