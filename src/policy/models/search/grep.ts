import type { Found, GivenOption, Model, Use } from "../model.ts";
import { roleEffects } from "../roles.ts";

const LIGHT = { forced: false, recursive: false };
const FILES: ReadonlySet<string> = new Set(["-f", "--file"]);
const RECURSIVE: ReadonlySet<string> = new Set(["-r", "-R", "--recursive", "--dereference-recursive"]);

const has = (options: readonly GivenOption[], names: ReadonlySet<string>): boolean =>
  options.some(({ name }) => names.has(name));

/** With patterns from a file, the first operand is none. Searching below folders begins here when no folder is given. */
function grepEffects(use: Use, recursive: boolean): readonly Found[] {
  const { options, operands } = use;
  const given = options.some(({ name }) => name === "-e" || name === "--regexp") || has(options, FILES);
  const first = has(options, FILES) ? operands.slice(0, 1) : [];
  const here = recursive && operands.length === (given ? 0 : 1);
  // Another word of what stands unquoted is a file.
  const spills = [...operands, ...options.flatMap(({ value }) => value ?? [])].some(
    ({ loose }) => loose === true,
  );
  return [
    ...(spills ? [{ kind: "read", path: null } as const] : []),
    ...first.flatMap((arg) => roleEffects("read", arg, use, LIGHT)),
    ...(here ? [{ kind: "read", path: use.folder } as const] : []),
  ];
}

const OPTIONS = `-EFGPivwxycLlqosbHhnTZaIUzu -NUM -e:pattern -f:read -m: -A: -B: -C: -D: -d: --extended-regexp
  --fixed-strings --basic-regexp --perl-regexp --regexp=pattern --file=read --ignore-case --no-ignore-case --invert-match
  --word-regexp --line-regexp --count --color=? --colour=? --files-without-match --files-with-matches --max-count=
  --only-matching --quiet --silent --no-messages --byte-offset --with-filename --no-filename --label= --line-number
  --initial-tab --null --after-context= --before-context= --context= --text --binary-files= --devices= --directories=
  --exclude= --exclude-from=read --exclude-dir= --include=read --line-buffered --binary --null-data --unix-byte-offsets
  --group-separator= --no-group-separator`;

const GREP: Model = {
  options: `${OPTIONS} -rR --recursive --dereference-recursive`,
  operands: "pattern read*",
  tells: "--version --help -V",
  abbreviates: true,
  complete: true,
  also: (use) => grepEffects(use, has(use.options, RECURSIVE)),
};

/** Unpacks what it searches; otherwise as grep, but for searching below folders. */
const ZGREP: Model = { ...GREP, options: OPTIONS, also: (use) => grepEffects(use, false) };

export const GREPS: Readonly<Record<string, Model>> = {
  grep: GREP,
  egrep: GREP,
  fgrep: GREP,
  rgrep: { ...GREP, also: (use) => grepEffects(use, true) },
  zgrep: ZGREP,
  zegrep: ZGREP,
  zfgrep: ZGREP,
  bzgrep: ZGREP,
  xzgrep: ZGREP,
  lzgrep: ZGREP,
  zstdgrep: ZGREP,
};
