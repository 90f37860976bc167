import { fixedEffect, given } from "./argument-roles.ts";
import type { Place } from "../effects/effect.ts";
import type { Arg, Found, Reader, Use } from "./program-model.ts";

const MODE_LETTERS = "rwxXstugoa";

/** The first operand is a mode, unless an option is one or names a file with that mode. */
function chmodEffects(use: Use): readonly Found[] {
  const modeGiven = use.options.some(
    ({ name }) => name === "--reference" || MODE_LETTERS.includes(name.slice(1)),
  );
  return changedRights(
    use,
    modeGiven ? use.operands : use.operands.slice(1),
    given(use, "-R", "--recursive"),
  );
}

const FLAGS = /^[+=]/;

const chattrEffects = (use: Use): readonly Found[] =>
  changedRights(
    use,
    use.operands.filter(({ value }) => !FLAGS.test(value)),
    given(use, "-R"),
  );

const changedRights = (use: Use, files: readonly Arg[], recursive: boolean): readonly Found[] =>
  files.map((file) => ({ kind: "permissions", path: use.place(file), recursive, span: file.span }));

interface CopyTarget {
  readonly sources: readonly Arg[];
  /** The current folder where no target is named. */
  readonly target: Arg;
  /** The target is certainly a folder: files are written into it under their own names. */
  readonly isFolder: boolean;
}

const HERE = { kind: "literal", value: "." } as const;
const FOLDER = /(?:^|\/)\.{0,2}\/?$/;

/** Sources and target; the target may be an option's value. */
function copyTarget(use: Use): CopyTarget {
  const { operands } = use;
  const named = use.options.findLast(({ name }) => name === "-t" || name === "--target-directory")?.value;
  if (named) return { sources: operands, target: named, isFolder: true };
  const last = operands.at(-1);
  if (last === undefined || operands.length === 1)
    return { sources: operands, target: { ...HERE, span: use.span }, isFolder: true };
  const sources = operands.slice(0, -1);
  return {
    sources,
    target: last,
    isFolder: sources.length > 1 || sources[0]?.kind !== "literal" || FOLDER.test(last.value),
  };
}

/** The target and what may be written into it: names that the host obeys mostly start with a dot. */
function writtenTargets(use: Use): readonly Found[] {
  const { sources, target, isFolder } = copyTarget(use);
  const inside = sources
    .filter(({ value }) => isFolder || nameOf(value).startsWith("."))
    .map((source) => below(target, nameOf(source.value), source));
  return [target, ...inside].map((arg) => ({ kind: "write", path: use.place(arg), span: arg.span }));
}

const nameOf = (path: string): string => {
  const end = path.endsWith("/") ? path.length - 1 : path.length;
  return path.slice(path.lastIndexOf("/", end - 1) + 1, end);
};

/** A name in a folder; its kind is the vaguer of the two. */
function below(folder: Arg, name: string, source: Arg): Arg {
  const kind =
    folder.kind === "literal"
      ? source.kind
      : folder.kind === "glob" && source.kind === "dynamic"
        ? "dynamic"
        : folder.kind;
  return { kind, value: `${folder.value}/${name}`, span: source.span };
}

const reads = (use: Use, { sources }: CopyTarget): readonly Found[] =>
  sources.map((source) => ({ kind: "read", path: use.place(source), span: source.span }));

function copyEffects(use: Use): readonly Found[] {
  if (given(use, "-s", "--symbolic-link", "-l", "--link")) return linkEffects(use);
  return readAndWritten(use);
}

const readAndWritten = (use: Use): readonly Found[] => [
  ...reads(use, copyTarget(use)),
  ...writtenTargets(use),
];

/** Whether the path is or holds the current folder or the home: a move of it moves everything. */
const holdsWorkingFolders = (path: Place, { folder, home }: Use): boolean =>
  path !== null && [folder, home].some((inner) => inner !== null && `${inner}/`.startsWith(`${path}/`));

/** A moved file is deleted at its old path and readable at its new one. */
function moveEffects(use: Use): readonly Found[] {
  const forced = given(use, "-f", "--force");
  const all = copyTarget(use);
  const left = all.sources.map((source): Found => ({
    kind: "delete",
    path: use.place(source),
    recursive: holdsWorkingFolders(use.place(source), use),
    forced,
    span: source.span,
  }));
  return [...reads(use, all), ...left, ...writtenTargets(use)];
}

/** A link makes its target accessible under another name, also for writing. */
function linkEffects(use: Use): readonly Found[] {
  const { sources, target, isFolder } = copyTarget(use);
  const symbolic = given(use, "-s", "--symbolic", "--symbolic-link") && !given(use, "-r", "--relative");
  const opened = sources.flatMap((source) => {
    if (!symbolic || source.value.startsWith("/")) return [source];
    // A symbolic link is relative to the folder that it is in, and whether the target is that folder is unknown here.
    const beside = below({ ...target, value: `${target.value}/..` }, source.value, source);
    return isFolder ? [below(target, source.value, source)] : [beside, below(target, source.value, source)];
  });
  const effects = opened.map((arg): Found => ({ kind: "write", path: use.place(arg), span: arg.span }));
  return [...effects, ...writtenTargets(use)];
}

function installEffects(use: Use): readonly Found[] {
  if (!given(use, "-d", "--directory")) return readAndWritten(use);
  return use.operands.map((folder) => ({ kind: "write", path: use.place(folder), span: folder.span }));
}

/** Patched files lie below the current folder: patch accepts no other names from the diff. */
function patchEffects(use: Use): readonly Found[] {
  const [file] = use.operands;
  const doubts = use.operands.slice(2).map((arg) => use.doubt("operand.unknown", arg));
  if (given(use, "--dry-run"))
    return file === undefined
      ? doubts
      : [...doubts, { kind: "read", path: use.place(file), span: file.span }];
  if (file !== undefined) return [...doubts, { kind: "write", path: use.place(file), span: file.span }];
  return given(use, "-o", "--output") ? doubts : [...doubts, { kind: "write", path: use.folder }];
}

/** The readers of this file, by the names that rows use. */
export const FILE_CHANGES_READERS: Readonly<Record<string, Reader>> = {
  cp: copyEffects,
  mv: moveEffects,
  ln: linkEffects,
  install: installEffects,
  patch: patchEffects,
  mktemp: ({ operands }) => (operands.length > 0 ? [] : [{ kind: "write", path: "/tmp/tmp.*" }]),
  mknod: (use) => (use.operands.length > 2 ? [fixedEffect("system", use.folder, use.program)] : []),
  chmod: chmodEffects,
  chattr: chattrEffects,
};

const NUMBERS = new Set("bs ibs obs cbs count skip seek iseek oseek conv iflag oflag status".split(" "));

/** Any number of files whose names start like this. */
function partFiles(use: Use, prefix: Arg | null | undefined, standard: string): readonly Found[] {
  const { kind, value, span } = prefix ?? { kind: "literal", value: standard, span: use.span };
  const pattern: Arg = { kind: kind === "dynamic" ? kind : "glob", value: `${value}*`, span };
  return [{ kind: "write", path: use.place(pattern), span }];
}

/** Operands of the form `name=value`. */
function ddEffects(use: Use): readonly Found[] {
  return use.args.flatMap((arg) => {
    const equals = arg.value.indexOf("=");
    const name = arg.value.slice(0, Math.max(equals, 0));
    const value: Arg = { ...arg, value: arg.value.slice(equals + 1) };
    if (name === "if") return [{ kind: "read", path: use.place(value), span: arg.span } satisfies Found];
    if (name === "of") return [{ kind: "write", path: use.place(value), span: arg.span } satisfies Found];
    if (arg.loose === true) return [use.doubt("word.dynamic", arg)];
    return NUMBERS.has(name) ? [] : [use.doubt("option.unknown", arg)];
  });
}

const BUNDLE = /^-[^-]/;
const INNER_VALUE = /^-[^-]*?[LPIoHT](?!\d*$)./;

/** In a bundle of `tree`, a letter takes the next word, never the rest of its own: `-Lo 2 out` writes `out`. */
const bundledValues = (use: Use): readonly Found[] =>
  use.args
    .filter(({ value }) => BUNDLE.test(value) && INNER_VALUE.test(value))
    .map((arg) => use.doubt("option.unknown", arg));
/** The readers of this file, by the names that rows use. */
export const FILE_LISTING_READERS: Readonly<Record<string, Reader>> = {
  tree: bundledValues,
  split: (use) => partFiles(use, use.operands[1], "x"),
  csplit: (use) =>
    partFiles(use, use.options.findLast(({ name }) => name === "-f" || name === "--prefix")?.value, "xx"),
  dd: ddEffects,
};
