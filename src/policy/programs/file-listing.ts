import { gnu } from "./argument-roles.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";

const LINE_ENDS: Model = {
  operands: "write*",
  options: `-n!write -o!write -kqfblsumv7 -c: -i?!read -O!read --newfile!write --oldfile!write --keepdate --quiet --force --convmode= --info=?!read
    --to-stdout!read --add-eol --newline --safe --verbose --keep-bom --remove-bom --add-bom`,
  tells: "-h -V -L --help --version --license",
};

const NUMBERS = new Set("bs ibs obs cbs count skip seek iseek oseek conv iflag oflag status".split(" "));

/** Programs that write copies of what they read. */
export const PIECES: Readonly<Record<string, Model>> = {
  tee: gnu("write*", "-aip --append --ignore-interrupts --output-error=?"),
  sponge: { operands: "write?", options: "-a" },
  split: gnu(
    "read data?",
    `-NUM -deux -a: -b: -C: -l: -n: -t: --suffix-length= --additional-suffix= --bytes= --line-bytes= --numeric-suffixes=?
    --hex-suffixes=? --elide-empty-files --filter=shell --lines= --number= --separator= --unbuffered --verbose`,
    (use) => parts(use, use.operands[1], "x"),
  ),
  csplit: gnu(
    "read data*",
    `-ksqz -b: -f: -n: --suffix-format= --prefix= --keep-files --suppress-matched --digits= --quiet --silent
    --elide-empty-files`,
    (use) =>
      parts(use, use.options.findLast(({ name }) => name === "-f" || name === "--prefix")?.value, "xx"),
  ),
  dd: { reads: ddEffects },
  dos2unix: LINE_ENDS,
  unix2dos: LINE_ENDS,
  mac2unix: LINE_ENDS,
};

/** Any number of files whose names begin like this. */
function parts(use: Use, prefix: Arg | null | undefined, standard: string): readonly Found[] {
  const { kind, value, span } = prefix ?? { kind: "literal", value: standard, span: use.span };
  const pattern: Arg = { kind: kind === "dynamic" ? kind : "glob", value: `${value}*`, span };
  return [{ kind: "write", path: use.place(pattern), span }];
}

/** `name=value`, each of its own. */
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

/** In a bundle of `tree` a letter takes the next word, never the rest of its own: `-Lo 2 out` writes `out`. */
const bundledValues = (use: Use): readonly Found[] =>
  use.args
    .filter(({ value }) => BUNDLE.test(value) && INNER_VALUE.test(value))
    .map((arg) => use.doubt("option.unknown", arg));

const LS = gnu(
  "read*|.",
  `-aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I: -T: -w: --all --almost-all --author --escape --block-size= --ignore-backups
  --color=? --directory --dired --classify=? --dereference-command-line --dereference-command-line-symlink-to-dir --file-type
  --format= --full-time --group-directories-first --no-group --human-readable --si --hide= --hyperlink=? --indicator-style=
  --inode --ignore= --kibibytes --dereference --numeric-uid-gid --literal --hide-control-chars --show-control-chars
  --quote-name --quoting-style= --reverse --recursive --size --sort= --time= --time-style= --tabsize= --width= --context --zero`,
);

const EZA: Model = {
  operands: "read*|.",
  options: `-1lGxRTaAdDfrbBghHimnoOSuUXZM@ -F? -L: -s: -I: -t: --oneline --long --grid --across --recurse --tree --level= --all
    --almost-all --treat-dirs-as-files --list-dirs --only-dirs --only-files --reverse --sort= --group-directories-first
    --group-directories-last --ignore-glob= --git-ignore --binary --bytes --group --header --links --inode --modified --mounts
    --numeric --flags --blocksize --time= --accessed --created --changed --total-size --no-permissions --octal-permissions
    --no-filesize --no-user --no-time --time-style= --smart-group --git --no-git --git-repos --extended --context --classify=?
    --color= --colour= --color-scale=? --icons=? --no-icons --no-quotes --hyperlink --absolute=? --width= --dereference --stdin!ask`,
};

/** Programs that say which files there are, and what they are. */
export const LISTING: Readonly<Record<string, Model>> = {
  ls: LS,
  dir: LS,
  vdir: LS,
  eza: EZA,
  exa: EZA,
  tree: {
    operands: "read*|.",
    // With -R it starts itself again in every folder, to write a file there.
    options: `-adlfxqNQpugshDFiASnCXJvtcUr -R!ask -L: -P: -I: -o:write -H: -T: --gitignore --gitfile=read --info --infofile=read
      --matchdirs --ignore-case --filelimit= --noreport --charset= --prune --si --du --timefmt= --dirsfirst --filesfirst
      --sort= --metafirst --inodes --device --nolinks --hintro=read --houtro=read --fromfile --fromtabfile --caseless --hyperlink`,
    also: bundledValues,
  },
  stat: gnu("read*", "-Lft -c: --dereference --file-system --cached= --format= --printf= --terse"),
  file: gnu(
    "read*",
    // Files of magic are its own language, and can be written.
    `-bikLhnN0prsSzZcdl -v -m:read!ask -e: -F: -P: -f:read -C!ask --magic-file=read!ask --uncompress --uncompress-noreport --brief
    --checking-printout --exclude= --exclude-quiet= --files-from=read --separator= --mime --apple --extension --mime-type
    --mime-encoding --keep-going --list --dereference --no-dereference --no-buffer --no-pad --print0 --preserve-date
    --parameter= --raw --special-files --no-sandbox --compile!ask --debug`,
  ),
  du: gnu(
    "read*|.",
    `-0abcDHhklLmPSsx -B: -d: -t: -X:read --null --all --apparent-size --block-size= --bytes --total --dereference-args
    --max-depth= --files0-from=read --human-readable --inodes --dereference --count-links --no-dereference --separate-dirs
    --si --summarize --threshold= --time=? --time-style= --exclude-from=read --exclude= --one-file-system`,
  ),
  df: gnu(
    "data*",
    `-ahHiklPTv -B: -t: -x: --all --block-size= --human-readable --si --inodes --local --no-sync --output=? --portability
    --sync --total --type= --print-type --exclude-type=`,
  ),
  lsblk: gnu(
    "read*",
    `-ADJMOPSTabdfilmnprstyz -E: -I: -e: -o: -w: -x: --noempty --discard --dedup= --include= --json --merge --output-all
    --pairs --scsi --tree=? --all --bytes --nodeps --exclude= --fs --ascii --list --perms --noheadings --output= --paths
    --raw --inverse --topology --width= --sort= --shell --zoned --sysroot=read`,
  ),
  findmnt: gnu(
    "data*",
    `-smkAabCcDefiJlnPRrUuvyx -p? -w: -d: -F:read -N: -O: -o: -S: -T: -M: -t: --fstab --mtab --kernel --poll=? --timeout=
    --all --ascii --bytes --nocanonicalize --canonicalize --df --direction= --evaluate --tab-file=read --first-only --invert
    --json --list --task= --noheadings --options= --output= --output-all --pairs --pseudo --shadowed --submounts --raw --real
    --source= --target= --tree --mountpoint= --types= --uniq --notruncate --nofsroot --shell --verify --verbose --vfs-all`,
  ),
  namei: gnu("read*", "-lmonvxZ --long --modes --owners --nosymlinks --vertical --mountpoints --context"),
  basename: gnu("data*", "-az -s: --multiple --suffix= --zero"),
  dirname: gnu("data*", "-z --zero"),
  realpath: gnu(
    "read*",
    `-emLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --relative-to= --relative-base=
    --strip --no-symlinks --zero`,
  ),
  readlink: gnu(
    "read*",
    "-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent --verbose --zero",
  ),
  pwd: { options: "-LP --logical --physical" },
  lsof: {
    operands: "read*",
    options: `-aAbChlnNOPRtUvVwX -c: -d: -D:!ask -e:!ask -f? -F? -g? -i?!network -k:!ask -K? -L? -m:!ask -o? -p: -r? -s? -S? -T? -u: -x? -z? -Z?
      -E -H -Q -M`,
    tells: "-v -h -?",
  },
};
