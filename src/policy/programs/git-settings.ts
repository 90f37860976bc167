import { PROGRAM_WORDS } from "../program-words.generated.ts";
import { hasOption } from "./argument-roles.ts";
import type { Arg, FoundEffect, UsedOption, Use, UseReader } from "./program-model.ts";
const WRITES = new Set(
  "--replace-all --add --unset --unset-all --rename-section --remove-section".split(" "),
);

const READS = new Set(
  "-l --list --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool".split(" "),
);

const CHANGING = new Set(["set", "unset", "rename-section", "remove-section", "edit"]);

const fileOption = ({ options }: Use): Arg | null =>
  options.findLast(({ name }) => name === "-f" || name === "--file")?.value ?? null;

const SECRET = /pass(?:word|phrase)?$|token|secret|extraheader|cookie/i;

/** A renamed section may get any name; an edit may change anything. */
const mayBeObeyed = (key: Arg | undefined, { args }: Use): boolean =>
  key?.kind !== "literal" || isObeyed(key.value) || args.some(({ value }) => WIDE.has(value));

/** Sections of git's settings that name programs to run, hosts to reach or further settings files. */
const OBEYED_SECTIONS = new Set(PROGRAM_WORDS.git.obeyedSections);
/** The same for single settings in sections that also hold others; `*` stands for a name in between. */
const OBEYED = new Set(PROGRAM_WORDS.git.obeyed);

const patternOf = (key: string, section: string): string => {
  const last = key.slice(key.lastIndexOf(".") + 1);
  return `${section}.${section.length + last.length + 1 === key.length ? "" : "*."}${last}`;
};

const WIDE = new Set(["--rename-section", "rename-section", "--system"]);

/** Whether git on the host would run, load or contact what this setting names. */
function isObeyed(key: string): boolean {
  const folded = key.toLowerCase();
  const [section = ""] = folded.split(".", 1);
  return OBEYED_SECTIONS.has(section) || OBEYED.has(patternOf(folded, section));
}

function configEffects(use: Use): readonly FoundEffect[] {
  const unclear = use.args
    .filter(({ kind }) => kind !== "literal")
    .map((arg) => use.doubt("word.dynamic", arg));
  return [...unclear, ...(isReading(use) ? readSettings(use) : writtenSetting(use))];
}

/** Without an action, a key alone is read, and a key with a value is written. */
function isReading({ options, operands: [first, second] }: Use): boolean {
  const has = (names: ReadonlySet<string>): boolean => options.some(({ name }) => names.has(name));
  if (has(WRITES)) return false;
  if (has(READS) || first?.value === "get" || first?.value === "list") return true;
  return second === undefined && !CHANGING.has(first?.value ?? "");
}

function readSettings(use: Use): readonly FoundEffect[] {
  const file = fileOption(use);
  const blobs = use.options.flatMap(({ name, value }) =>
    name === "--blob" && value !== null ? [value] : [],
  );
  const secrets = use.operands.filter(({ value }) => SECRET.test(value));
  return [
    ...(file === null ? [] : [{ kind: "read", path: use.place(file), span: file.span } as const]),
    ...readsOf(blobs, use),
    ...secrets.map((arg) => use.doubt("operand.unknown", arg)),
  ];
}

function writtenSetting(use: Use): readonly FoundEffect[] {
  const [first, second] = use.operands;
  const key = CHANGING.has(first?.value ?? "") ? second : first;
  const file = fileOption(use);
  const span = key?.span ?? use.span;
  if (file !== null) return [{ kind: "write", path: use.place(file), span }];
  const what = `${use.program} ${key?.value ?? ""}`.trimEnd();
  return mayBeObeyed(key, use)
    ? [{ kind: "write", path: fileOf(use), span }]
    : [{ kind: "repository", change: "local", what, span }];
}

/** The file that the setting is written to. */
function fileOf({ options, home, folder }: Use): string | null {
  const has = (wanted: string): boolean => options.some(({ name }) => name === wanted);
  if (has("--system")) return "/etc/gitconfig";
  if (has("--global")) return `${home}/.gitconfig`;
  return folder === null ? null : `${folder}/.git/config`;
}

/** Files whose content the operands may show: paths, `revision:path`, and revisions (which are then no files). */
export const shownFiles = (use: Use): readonly FoundEffect[] => readsOf(use.operands, use);

/** `log` shows content only with a patch. */
export const loggedFiles = (use: Use): readonly FoundEffect[] =>
  use.options.some(({ name }) => PATCHES.has(name)) ? [...shownFiles(use), ...tracedFiles(use)] : [];

const PATCHES = new Set(
  `-p -u -U -c -m -W -L --patch --unified --function-context --patch-with-raw --patch-with-stat --binary --cc --dd
  --remerge-diff --diff-merges --word-diff --word-diff-regex --color-words`.split(/\s+/),
);

/** `-L 1,20:file`, `-L :function:file`. */
const tracedFiles = (use: Use): readonly FoundEffect[] =>
  use.options.flatMap(({ name, value }: UsedOption) => {
    if (name !== "-L" || value === null) return [];
    const path = value.value.slice(value.value.lastIndexOf(":") + 1);
    return [{ kind: "read", path: use.place({ ...value, value: path }), span: value.span } as const];
  });

/** `grep`: the first operand is the pattern, unless an option gave it. */
function searchedFiles(use: Use): readonly FoundEffect[] {
  return readsOf(use.operands.slice(hasOption(use, "-e", "-f") ? 0 : 1), use);
}

function readsOf(operands: readonly Arg[], use: Use): readonly FoundEffect[] {
  return operands.flatMap((arg) => {
    const path = pathIn(arg.value);
    return path === null
      ? []
      : [{ kind: "read", path: use.place({ ...arg, value: path }), span: arg.span } as const];
  });
}

/** The path in a pathspec or in `revision:path`; null for a pathspec that only excludes. */
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

/** The colon after a revision; colons inside of `@{10:00}` do not count. */
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

/** Settings that only change the output, whatever their value. */
const SHOWN_SECTIONS = new Set(PROGRAM_WORDS.git.shownSections);
const SHOWN = new Set(PROGRAM_WORDS.git.shown);
/** Settings that are harmless with these values only. */
const HARMLESS_VALUES = PROGRAM_WORDS.git.harmlessValues;

/** `key=value` for one run, as after `git -c`. */
export function isHarmless(setting: string): boolean {
  const equals = setting.indexOf("=");
  const key = (equals === -1 ? setting : setting.slice(0, equals)).toLowerCase();
  const [section = ""] = key.split(".", 1);
  if (SHOWN.has(key) || SHOWN_SECTIONS.has(section)) return true;
  return (
    equals !== -1 &&
    Object.hasOwn(HARMLESS_VALUES, key) &&
    HARMLESS_VALUES[key]?.includes(setting.slice(equals + 1)) === true
  );
}

/** The readers of this file, by the names that rows use. */
export const GIT_SETTINGS_READERS: Readonly<Record<string, UseReader>> = {
  "git files": shownFiles,
  "git files of a log": loggedFiles,
  "git grep": searchedFiles,
  "git config": configEffects,
};
