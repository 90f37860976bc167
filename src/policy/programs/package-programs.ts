import type { Preset } from "../../core/network.ts";
import { PROGRAM_WORDS } from "../program-words.generated.ts";
import { fixedEffect, reading } from "./argument-roles.ts";
import type { Arg, Found, Reader, Use } from "./program-model.ts";

/** Package managers: their arguments either only choose among the packages of registries, or may lead anywhere. */

const { files, ...flags } = PROGRAM_WORDS.packages;
const FILES = new Set(files);
const FLAGS: Readonly<Record<keyof typeof flags, ReadonlySet<string>>> = {
  npm: new Set(flags.npm),
  pip: new Set(flags.pip),
  cargo: new Set(flags.cargo),
  go: new Set(flags.go),
};

/** A package with its version: no address, no `owner/repository`, no alias of another, no path. */
const NAMES: Readonly<Record<keyof typeof flags, RegExp>> = {
  npm: /^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*(?:@[\w.^~<>=*+-]+)?$/i,
  pip: /^[a-z0-9][\w.-]*(?:\[[\w.,-]+\])?(?:[<>=!~]=?=?[\w.*+!-]+(?:,[<>=!~]=?=?[\w.*+!-]+)*)?$/i,
  cargo: /^[a-z][\w-]*(?:@[\w.^~<>=*+-]+)?$/i,
  go: /^(?:all|\.\/\.\.\.|\.|[a-z0-9][\w.-]*\.[a-z]+(?:\/[\w.~-]+)*(?:\/\.\.\.)?(?:@[\w.+-]+)?)$/i,
};

/** npm takes a name with such an ending for a file, pip for an archive of a package. */
const ARCHIVE = /\.(?:tgz|tar|tar\.\w+|zip|whl)$/i;

/** The workspace's own package, built by its own code. */
const OWN = /^\.(?:\[[\w,.-]+\])?$/;

const installs =
  (from: keyof typeof NAMES) =>
  (use: Use): readonly Found[] => {
    const found: Found[] = [];
    let plain = true;
    let file = false;
    for (const arg of use.args) {
      const before = file;
      file = from === "pip" && FILES.has(arg.value);
      if (arg.kind !== "literal") plain = false;
      else if (before) found.push(reading(arg, use));
      else if (from === "pip" && OWN.test(arg.value))
        found.push(fixedEffect("project", use.folder, use.program));
      else if (!isPlain(from, arg)) plain = false;
    }
    const install: Found = { kind: "install", what: use.program };
    return [plain && !file ? { ...install, from: from satisfies Preset } : install, ...found];
  };

const isPlain = (from: keyof typeof NAMES, { value }: Arg): boolean =>
  FLAGS[from].has(value) ||
  value === "--only-binary=:all:" ||
  (NAMES[from].test(value) && !ARCHIVE.test(value));

/** Words for `every use` of a row. */
export const PACKAGE_EFFECTS = {
  "installs from npm": installs("npm"),
  "installs from pip": installs("pip"),
  "installs from cargo": installs("cargo"),
  "installs from go": installs("go"),
} as const;

/** With `-p` and `-f` the operands are files. */
const packageFiles = (use: Use): readonly Found[] =>
  use.options.some(({ name }) => name === "-p" || name === "-f" || name === "--file")
    ? use.operands.map((arg) => reading(arg, use))
    : [];

/** An operand of apt may be a package, a package of a release (`bash/stable`) or, in this form, a package file. */
const PACKAGE_FILE = /^(?:\.{0,2}|~[^/]*)\/|\.(?:u?deb|dsc|changes)$/;

const packageFileNames = (use: Use): readonly Found[] =>
  use.operands
    .filter(({ kind, value }) => kind === "dynamic" || PACKAGE_FILE.test(value))
    .map((arg) => reading(arg, use));

/** The readers of this file, by the names that rows use. */
export const PACKAGE_READERS: Readonly<Record<string, Reader>> = {
  "package files": packageFiles,
  "names of package files": packageFileNames,
};
