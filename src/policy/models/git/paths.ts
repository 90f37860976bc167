import type { Arg, Found, GivenOption, Use } from "../model.ts";

/** Reads of the files whose content its operands may show: paths, `revision:path`, and revisions, which are no files then. */
export const shownFiles = (use: Use): readonly Found[] => readsOf(use.operands, use);

/** `log`: only with a patch is there content. */
export const loggedFiles = (use: Use): readonly Found[] =>
  use.options.some(({ name }) => PATCHES.has(name)) ? [...shownFiles(use), ...tracedFiles(use)] : [];

const PATCHES = new Set(
  `-p -u -U -c -m -W -L --patch --unified --function-context --patch-with-raw --patch-with-stat --binary --cc --dd
  --remerge-diff --diff-merges --word-diff --word-diff-regex --color-words`.split(/\s+/),
);

/** `-L 1,20:file`, `-L :function:file`. */
const tracedFiles = (use: Use): readonly Found[] =>
  use.options.flatMap(({ name, value }: GivenOption) => {
    if (name !== "-L" || value === null) return [];
    const path = value.value.slice(value.value.lastIndexOf(":") + 1);
    return [{ kind: "read", path: use.place({ ...value, value: path }), span: value.span } as const];
  });

/** `grep`: the first operand is the pattern, unless an option gave it. */
export function searchedFiles(use: Use): readonly Found[] {
  const given = use.options.some(({ name }) => name === "-e" || name === "-f");
  return readsOf(use.operands.slice(given ? 0 : 1), use);
}

function readsOf(operands: readonly Arg[], use: Use): readonly Found[] {
  return operands.flatMap((arg) => {
    const path = pathIn(arg.value);
    return path === null
      ? []
      : [{ kind: "read", path: use.place({ ...arg, value: path }), span: arg.span } as const];
  });
}

/** The path in a pathspec or in `revision:path`; null for what only leaves paths out. */
export function pathIn(value: string): string | null {
  if (/^:[!^]/.test(value)) return null;
  if (value.startsWith(":(")) {
    const close = value.indexOf(")");
    return value.slice(0, close + 1).includes("exclude") ? null : `./${value.slice(close + 1)}`;
  }
  // From the top, or a search in messages: never a path from the root of the system.
  if (value.startsWith(":/")) return `./${value.slice(2)}`;
  const colon = colonOf(value);
  return colon === -1 ? value : value.slice(colon + 1).replace(/^[0-3]:/, "");
}

/** The colon after a revision; those in `@{10:00}` are none. */
function colonOf(value: string): number {
  let open = false;
  for (let at = 0; at < value.length; at += 1) {
    const letter = value.charAt(at);
    if (letter === "{") open = true;
    else if (letter === "}") open = false;
    else if (letter === ":" && !open) return at;
  }
  return value.lastIndexOf(":");
}
