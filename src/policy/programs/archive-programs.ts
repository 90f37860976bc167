import { fixedEffect, hasOption, roleEffects } from "./argument-roles.ts";
import type { Arg, FoundEffect, OptionTable, UseReader, Use } from "./program-model.ts";
import { readArguments, type ArgumentReading } from "./read-arguments.ts";

const LISTING_LETTERS = new Set(["l", "lb", "lt", "la", "v", "vb", "vt", "t", "p"]);
const EXTRACTING_LETTERS = new Set(["x", "e"]);
const PLAIN = /^-(?:slt|ba|bd|bb[0-3]|p\w*|t\w+|y|r-?|spd|sccUTF-8|inul|idq|c-)$/;
const OUTPUT_FOLDER = /^-o./;

/** 7z and rar: a command word, then options and operands. `@x` reads names from a file. */
function letterCommands(use: Use): readonly FoundEffect[] {
  const [command, ...rest] = use.args;
  if (command === undefined) return [];
  if (command.kind !== "literal") return [use.doubt("word.dynamic", command)];
  const out = rest.find(({ value }) => OUTPUT_FOLDER.test(value) && EXTRACTING_LETTERS.has(command.value));
  const options = rest.filter((arg) => arg.value.startsWith("-") && arg !== out);
  const [archive, ...names] = rest.filter(({ value }) => !value.startsWith("-"));
  return [
    ...options
      .filter((arg) => arg.kind !== "literal" || !PLAIN.test(arg.value))
      .map((arg) => use.doubt("option.unknown", arg)),
    ...rest
      .filter((arg) => arg.value.startsWith("@") || arg.loose === true)
      .map((arg) => use.doubt("operand.unknown", arg)),
    ...(archive === undefined ? [] : archiveEffects(use, command.value, archive)),
    ...memberEffects(use, command.value, { out, names }),
  ];
}

function archiveEffects(use: Use, command: string, archive: Arg): readonly FoundEffect[] {
  const { span } = archive;
  const path = use.place(archive);
  return [
    { kind: LISTING_LETTERS.has(command) || EXTRACTING_LETTERS.has(command) ? "read" : "write", path, span },
  ];
}

interface ExtractedFiles {
  readonly out: Arg | undefined;
  readonly names: readonly Arg[];
}

function memberEffects(use: Use, command: string, { out, names }: ExtractedFiles): readonly FoundEffect[] {
  if (LISTING_LETTERS.has(command)) return [];
  if (!EXTRACTING_LETTERS.has(command))
    return names.map((arg) => ({ kind: "read", path: use.place(arg), span: arg.span }));
  const path = out === undefined ? use.folder : use.place({ ...out, value: out.value.slice("-o".length) });
  // For rar the last name may be the folder to write into.
  const last = names.filter(({ value }) => value.endsWith("/"));
  return [
    { kind: "write", path },
    ...last.map((arg): FoundEffect => ({ kind: "write", path: use.place(arg), span: arg.span })),
  ];
}

const AR_READS = /^-?[tp][OvVPT]*$/;
const AR_EXTRACTS = /^-?x[ovVPT]*$/;

/** `ar`: letters, then the archive. Any option after them may load a plug-in. */
function arEffects(use: Use): readonly FoundEffect[] {
  const [letters, archive, ...members] = use.args;
  if (letters === undefined) return [];
  // A script on stdin decides what is written.
  if (letters.value.includes("M")) return [use.doubt("language.unknown", letters)];
  if (archive === undefined) return [];
  const doubts = use.args
    .filter((arg) => arg.value.startsWith("--") || arg.value.startsWith("@") || arg.kind === "dynamic")
    .map((arg) => use.doubt("option.unknown", arg));
  const path = use.place(archive);
  const { span } = archive;
  if (AR_READS.test(letters.value)) return [...doubts, { kind: "read", path, span }];
  if (AR_EXTRACTS.test(letters.value))
    return [...doubts, { kind: "read", path, span }, { kind: "write", path: use.folder }];
  return [
    ...doubts,
    { kind: "write", path, span },
    ...members.map((arg): FoundEffect => ({ kind: "read", path: use.place(arg), span: arg.span })),
  ];
}

const SHOWS = ["-l", "-v", "-Z", "-p", "-c", "-t"];

/** Extracts files unless an option says otherwise. `-T` changes the archive. */
function unzipEffects(use: Use): readonly FoundEffect[] {
  const [archive] = use.operands;
  if (archive === undefined) return [];
  const { span } = archive;
  const path = use.place(archive);
  const shows = hasOption(use, ...SHOWS) && !hasOption(use, "-T");
  if (shows) return [{ kind: "read", path, span }];
  const target = use.options.findLast(({ name }) => name === "-d");
  return [
    { kind: "read", path, span },
    ...(hasOption(use, "-T") ? [{ kind: "write", path, span } satisfies FoundEffect] : []),
    ...(target === undefined
      ? [{ kind: "write", path: use.folder, span: use.span } satisfies FoundEffect]
      : []),
  ];
}

/** Writes the archive from the other arguments; `-m` deletes them afterwards. */
function zipEffects(use: Use): readonly FoundEffect[] {
  const [archive, ...files] = use.operands;
  if (archive === undefined) return [];
  const moves = hasOption(use, "-m", "-move");
  const stdout = archive.value === "-";
  return [
    ...(stdout
      ? []
      : [{ kind: "write", path: use.place(archive), span: archive.span } satisfies FoundEffect]),
    ...files.flatMap((file) => zippedFileEffects(use, file, moves)),
  ];
}

function zippedFileEffects(use: Use, file: Arg, moves: boolean): readonly FoundEffect[] {
  const { span } = file;
  const path = use.place(file);
  const gone: FoundEffect = { kind: "delete", path, recursive: true, forced: false, span };
  return [{ kind: "read", path, span }, ...(moves ? [gone] : [])];
}

const VALUED = "bCfFgHIKLNTVX";

const LISTS = new Set(["-t", "--list", "-d", "--diff", "--compare", "--test-label"]);
const EXTRACTS = new Set(["-x", "--extract", "--get"]);
const MAKES = new Set("-c --create -r --append -u --update -A --catenate --concatenate --delete".split(" "));

/** `tar`, also in its old style: `tar xfC a.tar folder`. */
function tarEffects(use: Use, table: OptionTable): readonly FoundEffect[] {
  const args = withDashes(use.args);
  if (args === null) return use.args.slice(0, 1).map((arg) => use.doubt("word.dynamic", arg));
  const reading = readArguments(args, table, { strict: false, singleDash: false, abbreviates: true });
  const parts = { use, reading, names: new Set(reading.options.map(({ name }) => name)) };
  return [
    ...reading.misread.map(({ doubt, arg, what }) => use.doubt(doubt, arg, what)),
    ...reading.options.flatMap(({ spec, value, name, span }) => [
      ...(value === null || spec.role === "command" ? [] : roleEffects(spec.role, value, use)),
      ...(spec.fixed === null ? [] : [{ ...fixedEffect(spec.fixed, use.folder, name), span }]),
    ]),
    ...tarModeEffects(parts),
  ];
}

/** Rewrites the old style as the new one; null when its letters are unknown. */
function withDashes(args: readonly Arg[]): readonly Arg[] | null {
  const [letters, ...rest] = args;
  if (letters === undefined || letters.value.startsWith("-")) return args;
  if (letters.kind !== "literal") return null;
  const made: Arg[] = [];
  let next = 0;
  for (const letter of letters.value.split("")) {
    made.push({ ...letters, value: `-${letter}` });
    const value = VALUED.includes(letter) ? rest[next++] : undefined;
    if (value !== undefined) made.push(value);
  }
  return [...made, ...rest.slice(next)];
}

interface Parts {
  readonly use: Use;
  readonly reading: ArgumentReading;
  readonly names: ReadonlySet<string>;
}

function tarModeEffects(parts: Parts): readonly FoundEffect[] {
  const { names } = parts;
  const mode = [LISTS, EXTRACTS, MAKES].filter((set) => [...names].some((name) => set.has(name)));
  if (mode.length !== 1)
    return [{ kind: "unknown", doubt: "operand.unknown", what: "more than one mode, or none" }];
  if (mode[0] === LISTS) return [...archives(parts, "read"), ...(names.has("-d") ? members(parts) : [])];
  if (mode[0] === MAKES) return [...archives(parts, "write"), ...members(parts)];
  return [...archives(parts, "read"), ...extractedEffects(parts)];
}

const REMOTE = /^[^/]+:/;

/** The archives; a name with a colon is on another machine. */
function archives({ use, reading, names }: Parts, kind: "read" | "write"): readonly FoundEffect[] {
  return reading.options.flatMap(({ name, value }): readonly FoundEffect[] => {
    if ((name !== "-f" && name !== "--file") || value === null) return [];
    if (REMOTE.test(value.value) && !names.has("--force-local")) return roleEffects("host", value, use);
    return roleEffects(kind, value, use);
  });
}

/** The folders that `-C` changes to, each relative to the one before, and the offset from which each applies. */
function foldersOf({ reading, use }: Parts): readonly (readonly [from: number, folder: Arg])[] {
  let folder: Arg = { kind: "literal", value: ".", span: use.span };
  const folders: [number, Arg][] = [[-1, folder]];
  for (const { name, value, span } of reading.options)
    if ((name === "-C" || name === "--directory") && value !== null) {
      folder = argInFolder(folder, value);
      folders.push([span[0], folder]);
    }
  return folders;
}

/**
 * Each operand with the folder in force at its position. Both lists are in text order; words from one brace may be in
 * any order.
 */
function membersWithFolders(parts: Parts): readonly (readonly [member: Arg, folder: Arg])[] {
  const folders = foldersOf(parts);
  let at = 0;
  return parts.reading.operands.map((member) => {
    while ((folders[at + 1]?.[0] ?? Number.MAX_SAFE_INTEGER) <= member.span[0]) at += 1;
    return [member, (folders[at] as (typeof folders)[number])[1]];
  });
}

function argInFolder(folder: Arg, arg: Arg): Arg {
  if (arg.value.startsWith("/")) return arg;
  const kind = folder.kind === "literal" ? arg.kind : folder.kind;
  const user = folder.user === true ? { user: true as const } : {};
  return { kind, value: `${folder.value}/${arg.value}`, span: arg.span, ...user };
}

function members(parts: Parts): readonly FoundEffect[] {
  const { use, names } = parts;
  const removes = names.has("--remove-files");
  return membersWithFolders(parts).flatMap(([member, folder]): readonly FoundEffect[] => {
    const { span } = member;
    const path = use.place(argInFolder(folder, member));
    const gone: FoundEffect = { kind: "delete", path, recursive: true, forced: false, span };
    return [{ kind: "read", path, span }, ...(removes ? [gone] : [])];
  });
}

/** With these options, members may have names that lead anywhere. */
const UNSAFE_NAMES = ["-P", "--absolute-names", "--transform", "--xform"];

function extractedEffects(parts: Parts): readonly FoundEffect[] {
  const { use, reading, names } = parts;
  if (names.has("-O") || names.has("--to-stdout")) return [];
  const last = foldersOf(parts)
    .slice(-1)
    .map(([, folder]) => folder);
  const folders = [...membersWithFolders(parts).map(([, folder]) => folder), ...last];
  const places = new Set(folders.map((folder) => use.place(folder)));
  const top = reading.options.some(({ name, value }) => name === "--one-top-level" && value !== null);
  if (top || UNSAFE_NAMES.some((name) => names.has(name))) places.add(null);
  return [...places].map((path) => ({ kind: "write", path }));
}

/** A name with a colon is on another machine. */
const remoteArchives = (use: Use): readonly FoundEffect[] =>
  use.options.flatMap(({ name, value }): readonly FoundEffect[] =>
    ARCHIVE_OPTIONS.has(name) && value?.value.includes(":") === true
      ? [{ kind: "network", hosts: [], span: value.span }]
      : [],
  );

const ARCHIVE_OPTIONS: ReadonlySet<string> = new Set(["-F", "-I", "-O", "--file"]);

/** Names come from stdin; only `-t` and `--to-stdout` write none of them. */
function cpioEffects(use: Use): readonly FoundEffect[] {
  return [...remoteArchives(use), ...modeEffects(use)];
}

function modeEffects(use: Use): readonly FoundEffect[] {
  if (hasOption(use, "-t", "--list", "--to-stdout")) return [];
  if (hasOption(use, "-i", "--extract"))
    return [{ kind: "write", path: hasOption(use, "--absolute-filenames") ? null : use.folder }];
  const [target] = use.operands;
  const passes = hasOption(use, "-p", "--pass-through");
  return [
    { kind: "read", path: null },
    ...(passes && target !== undefined
      ? [{ kind: "write", path: use.place(target), span: target.span } satisfies FoundEffect]
      : []),
  ];
}

const SUFFIX = /\.(?:gz|z|Z|tgz|taz|bz2?|tbz2?|xz|lzma|txz|tlz|zst|tzst|lz4|br)$/;
const TO_STDOUT: ReadonlySet<string> = new Set(["-c", "--stdout", "--to-stdout"]);
const COMPRESS_INFO: ReadonlySet<string> = new Set(["-t", "-l", "--test", "--list"]);
const CHANGES: ReadonlySet<string> = new Set(["-d", "-z", "--decompress", "--uncompress", "--compress"]);
const SUFFIX_OPTIONS = new Set(["-S", "--suffix"]);

/** `.envrc.gz` is decompressed to `.envrc`. */
function unpackedEffects(use: Use): readonly FoundEffect[] {
  const names = use.options.map(({ name }) => name);
  if (names.some((name) => TO_STDOUT.has(name))) return [];
  const shows = names.findLastIndex((name) => COMPRESS_INFO.has(name));
  const changes = names.findLastIndex((name) => CHANGES.has(name));
  if (shows > changes) return [];
  // If there are several modes, the last one counts, or the one that the program prefers.
  const replaced = shows === -1 ? [] : use.operands;
  const own = use.options.findLast(({ name }) => SUFFIX_OPTIONS.has(name))?.value?.value ?? "";
  const bare = use.operands.flatMap((arg): readonly FoundEffect[] => {
    const { value, span } = arg;
    const isOwn = own !== "" && value.endsWith(own) && value.length > own.length;
    const name = isOwn ? value.slice(0, -own.length) : value.replace(SUFFIX, "");
    return name === value ? [] : [{ kind: "write", path: use.place({ ...arg, value: name }), span }];
  });
  return [
    ...replaced.map((arg): FoundEffect => ({ kind: "write", path: use.place(arg), span: arg.span })),
    ...bare,
  ];
}

/** The readers of this file, by the names that rows use. */
export const ARCHIVE_READERS: Readonly<Record<string, UseReader>> = {
  tar: tarEffects,
  unzip: unzipEffects,
  zip: zipEffects,
  "7z": letterCommands,
  ar: arEffects,
  cpio: cpioEffects,
  cabextract: (use) => (hasOption(use, "-l", "--list") ? [] : [{ kind: "write", path: use.folder }]),
  uudecode: () => [{ kind: "write", path: null }],
  "a file beside": unpackedEffects,
};
