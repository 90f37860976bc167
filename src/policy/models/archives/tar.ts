import type { Arg, Found, Use } from "../model.ts";
import { optionTable } from "../options.ts";
import { readArguments, type Reading } from "../reading.ts";
import { fixedEffect, roleEffects } from "../roles.ts";

const VALUED = "bCfFgHIKLNTVX";

/** The archive and folders of `-C` have roles of their own, below. */
const TABLE = optionTable({
  options: `-AcdrtuxnSkWOmpsMBiajJzZhlRvwoGP -b: -C: -f: -F:loads -g:write -H: -I:loads -K: -L: -N: -T:read!ask -V: -X:read
  --catenate --concatenate --create --delete --diff --compare --append --test-label --list --update --extract --get
  --directory= --file= --info-script=loads --new-volume-script=loads --listed-incremental=write --incremental
  --use-compress-program=loads --to-command=loads --checkpoint=? --checkpoint-action=loads --rsh-command=loads
  --rmt-command=loads --index-file=write --volno-file=write --files-from=read!ask --exclude-from=read --add-file=read
  --exclude= --exclude-backups --exclude-caches --exclude-caches-all --exclude-caches-under --exclude-ignore=
  --exclude-ignore-recursive= --exclude-tag= --exclude-tag-all= --exclude-tag-under= --exclude-vcs --exclude-vcs-ignores
  --check-device --no-check-device --hole-detection= --ignore-failed-read --level= --no-seek --seek --occurrence=?
  --sparse-version= --sparse --no-null --no-recursion --no-unquote --no-verbatim-files-from --null --verbatim-files-from
  --recursion --unquote --anchored --ignore-case --no-anchored --no-ignore-case --no-wildcards --no-wildcards-match-slash
  --wildcards --wildcards-match-slash --keep-directory-symlink --keep-newer-files --keep-old-files --no-overwrite-dir
  --one-top-level=? --overwrite --overwrite-dir --remove-files --skip-old-files --verify --ignore-command-error
  --no-ignore-command-error --to-stdout --atime-preserve=? --clamp-mtime --delay-directory-restore --group= --group-map=read
  --mode= --mtime= --touch --no-delay-directory-restore --no-same-owner --no-same-permissions --numeric-owner --owner=
  --owner-map=read --preserve-permissions --same-permissions --same-owner --sort= --preserve-order --same-order --acls
  --no-acls --no-selinux --no-xattrs --selinux --xattrs --xattrs-exclude= --xattrs-include= --force-local --tape-length=
  --multi-volume --blocking-factor= --read-full-records --ignore-zeros --record-size= --format= --old-archive --portability
  --pax-option= --posix --label= --auto-compress --bzip2 --xz --lzip --lzma --lzop --no-auto-compress --zstd --gzip --gunzip
  --ungzip --compress --uncompress --backup=? --hard-dereference --dereference --starting-file= --newer-mtime= --newer=
  --after-date= --one-file-system --absolute-names --suffix= --strip-components= --transform= --xform= --full-time
  --check-links --no-quote-chars= --quote-chars= --quoting-style= --block-number --show-defaults --show-omitted-dirs
  --show-snapshot-field-ranges --show-transformed-names --show-stored-names --totals=? --utc --verbose --warning=
  --interactive --confirmation --restrict`,
});

const LISTS = new Set(["-t", "--list", "-d", "--diff", "--compare", "--test-label"]);
const TAKES_OUT = new Set(["-x", "--extract", "--get"]);
const MAKES = new Set("-c --create -r --append -u --update -A --catenate --concatenate --delete".split(" "));

/** `tar`, also in its old style: `tar xfC a.tar folder`. */
export function tarEffects(use: Use): readonly Found[] {
  const args = dashed(use.args);
  if (args === null) return use.args.slice(0, 1).map((arg) => use.doubt("word.dynamic", arg));
  const reading = readArguments(args, TABLE, { strict: false, singleDash: false, abbreviates: true });
  const parts = { use, reading, names: new Set(reading.options.map(({ name }) => name)) };
  return [
    ...reading.misread.map(({ doubt, arg, what }) => use.doubt(doubt, arg, what)),
    ...reading.options.flatMap(({ spec, value, name, span }) => [
      ...(value === null || spec.role === "command"
        ? []
        : roleEffects(spec.role, value, use, { forced: false, recursive: false })),
      ...(spec.fixed === null ? [] : [{ ...fixedEffect(spec.fixed, use.folder, name), span }]),
    ]),
    ...modeEffects(parts),
  ];
}

/** The old style as the new one; null when its letters cannot be seen. */
function dashed(args: readonly Arg[]): readonly Arg[] | null {
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
  readonly reading: Reading;
  readonly names: ReadonlySet<string>;
}

function modeEffects(parts: Parts): readonly Found[] {
  const { use, names } = parts;
  const mode = [LISTS, TAKES_OUT, MAKES].filter((set) => [...names].some((name) => set.has(name)));
  if (mode.length !== 1) return [{ kind: "unknown", doubt: "operand.unknown", what: use.program }];
  if (mode[0] === LISTS) return [...archives(parts, "read"), ...(names.has("-d") ? members(parts) : [])];
  if (mode[0] === MAKES) return [...archives(parts, "write"), ...members(parts)];
  return [...archives(parts, "read"), ...takenOut(parts)];
}

const REMOTE = /^[^/]+:/;

/** The archives; a name with a colon is one on another machine. */
function archives({ use, reading, names }: Parts, kind: "read" | "write"): readonly Found[] {
  return reading.options.flatMap(({ name, value }): readonly Found[] => {
    if ((name !== "-f" && name !== "--file") || value === null) return [];
    if (REMOTE.test(value.value) && !names.has("--force-local"))
      return roleEffects("host", value, use, { forced: false, recursive: false });
    return roleEffects(kind, value, use, { forced: false, recursive: false });
  });
}

/** The folders that `-C` leads to, one from the other, and from which offset of the text each of them holds. */
function foldersOf({ reading, use }: Parts): readonly (readonly [from: number, folder: Arg])[] {
  let folder: Arg = { kind: "literal", value: ".", span: use.span };
  const folders: [number, Arg][] = [[-1, folder]];
  for (const { name, value, span } of reading.options)
    if ((name === "-C" || name === "--directory") && value !== null) {
      folder = within(folder, value);
      folders.push([span[0], folder]);
    }
  return folders;
}

/** Each operand with the folder that holds where it stands: both come in the order of the text, words of one brace in any. */
function placed(parts: Parts): readonly (readonly [member: Arg, folder: Arg])[] {
  const folders = foldersOf(parts);
  let at = 0;
  return parts.reading.operands.map((member) => {
    while ((folders[at + 1]?.[0] ?? Number.MAX_SAFE_INTEGER) <= member.span[0]) at += 1;
    return [member, (folders[at] as (typeof folders)[number])[1]];
  });
}

function within(folder: Arg, arg: Arg): Arg {
  if (arg.value.startsWith("/")) return arg;
  const kind = folder.kind === "literal" ? arg.kind : folder.kind;
  return { kind, value: `${folder.value}/${arg.value}`, span: arg.span };
}

function members(parts: Parts): readonly Found[] {
  const { use, names } = parts;
  const removes = names.has("--remove-files");
  return placed(parts).flatMap(([member, folder]): readonly Found[] => {
    const { span } = member;
    const path = use.place(within(folder, member));
    const gone: Found = { kind: "delete", path, recursive: true, forced: false, span };
    return [{ kind: "read", path, span }, ...(removes ? [gone] : [])];
  });
}

/** With these, members may have names that lead anywhere. */
const FREE = ["-P", "--absolute-names", "--transform", "--xform"];

function takenOut(parts: Parts): readonly Found[] {
  const { use, reading, names } = parts;
  if (names.has("-O") || names.has("--to-stdout")) return [];
  const last = foldersOf(parts)
    .slice(-1)
    .map(([, folder]) => folder);
  const folders = [...placed(parts).map(([, folder]) => folder), ...last];
  const places = new Set(folders.map((folder) => use.place(folder)));
  const top = reading.options.some(({ name, value }) => name === "--one-top-level" && value !== null);
  if (top || FREE.some((name) => names.has(name))) places.add(null);
  return [...places].map((path) => ({ kind: "write", path }));
}
