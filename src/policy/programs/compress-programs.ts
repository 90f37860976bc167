import { gnu } from "./argument-roles.ts";
import type { Found, Model, Use } from "./program-model.ts";

const SUFFIX = /\.(?:gz|z|Z|tgz|taz|bz2?|tbz2?|xz|lzma|txz|tlz|zst|tzst|lz4|br)$/;
const TO_STDOUT: ReadonlySet<string> = new Set(["-c", "--stdout", "--to-stdout"]);
const SHOWS: ReadonlySet<string> = new Set(["-t", "-l", "--test", "--list"]);
const CHANGES: ReadonlySet<string> = new Set(["-d", "-z", "--decompress", "--uncompress", "--compress"]);
const OWN = new Set(["-S", "--suffix"]);

/** `.envrc.gz` gives `.envrc`, which is written under that name. */
function unpackedEffects(use: Use): readonly Found[] {
  const names = use.options.map(({ name }) => name);
  if (names.some((name) => TO_STDOUT.has(name))) return [];
  const shows = names.findLastIndex((name) => SHOWS.has(name));
  const changes = names.findLastIndex((name) => CHANGES.has(name));
  if (shows > changes) return [];
  // Of several modes the last one counts, or the one that the program prefers.
  const replaced = shows === -1 ? [] : use.operands;
  const own = use.options.findLast(({ name }) => OWN.has(name))?.value?.value ?? "";
  const bare = use.operands.flatMap((arg): readonly Found[] => {
    const { value, span } = arg;
    const isOwn = own !== "" && value.endsWith(own) && value.length > own.length;
    const name = isOwn ? value.slice(0, -own.length) : value.replace(SUFFIX, "");
    return name === value ? [] : [{ kind: "write", path: use.place({ ...arg, value: name }), span }];
  });
  return [
    ...replaced.map((arg): Found => ({ kind: "write", path: use.place(arg), span: arg.span })),
    ...bare,
  ];
}

/** A file is replaced, unless an option only shows or tests it. */
const GZIP = gnu(
  "write*",
  `-NUM -c!read -t!read -l!read -dfknNqrvaA -S: --stdout!read --to-stdout!read --test!read --list!read --decompress --uncompress
  --force --keep --no-name --name --quiet --recursive --rsyncable --suffix= --synchronous --verbose --fast --best --ascii`,
  unpackedEffects,
);
const ZCAT = gnu(
  "read*",
  "-cdfklnNqrtv -S: --stdout --decompress --force --keep --list --quiet --recursive --test --verbose",
);
const BZIP2: Model = {
  operands: "write*",
  options: `-NUM -c!read -t!read -dzfkqvsLV --stdout!read --test!read --decompress --compress --force --keep --quiet --verbose
    --small --fast --best --repetitive-fast --repetitive-best --license`,
  also: unpackedEffects,
};
const XZ_OPTIONS = `-NUM -dzfkeqvQH -S: -T: -M: -F: -C: --compress --decompress --uncompress --force --keep --single-stream --no-sparse
  --suffix= --files=?read!ask --files0=?read!ask --format= --check= --ignore-check --extreme --threads= --block-size= --block-list=
  --flush-timeout= --memlimit-compress= --memlimit-decompress= --memlimit-mt-decompress= --memlimit= --memory= --no-adjust --raw
  --lzma1=? --lzma2=? --x86=? --arm=? --delta=? --quiet --verbose --no-warn --robot --info-memory --long-help`;
const XZ = gnu(
  "write*",
  `${XZ_OPTIONS} -c!read -t!read -l!read --stdout!read --to-stdout!read --test!read --list!read`,
  unpackedEffects,
);
const XZCAT = gnu("read*", `${XZ_OPTIONS} -ctl --stdout --to-stdout --test --list`);
const ZSTD_OPTIONS = `-NUM -dzfkvqCHr -M? -T? -D:read -o:write --decompress --uncompress --compress --force --keep --rm!ask --trace=write
  --progress --no-progress --filelist=read!ask --output-dir-flat=target --output-dir-mirror=target --asyncio --no-asyncio --check
  --no-check --ultra --fast=? --adapt=? --long=? --patch-from=read --single-thread --auto-threads= --rsyncable --exclude-compressed
  --stream-size= --size-hint= --target-compressed-block-size= --format= --sparse --no-sparse --pass-through --no-pass-through
  --memory= --memlimit= --mmap-dict --no-mmap-dict --no-dictID --no-compress-literals --compress-literals --no-row-match-finder
  --row-match-finder --quiet --verbose`;
const ZSTD: Model = {
  operands: "write*",
  options: `${ZSTD_OPTIONS} -c!read -t!read -l!read --stdout!read --test!read --list!read`,
  tells: "--version --help -V -h -H",
  also: unpackedEffects,
};
const ZSTDCAT: Model = { operands: "read*", options: `${ZSTD_OPTIONS} -ctl --stdout --test --list` };

/** Programs that make files smaller and larger again. */
export const COMPRESS: Readonly<Record<string, Model>> = {
  gzip: GZIP,
  gunzip: GZIP,
  pigz: GZIP,
  unpigz: GZIP,
  uncompress: GZIP,
  compress: { operands: "write*", options: "-dfvrk -c!read -b:", also: unpackedEffects },
  zcat: ZCAT,
  gzcat: ZCAT,
  bzip2: BZIP2,
  bunzip2: BZIP2,
  bzcat: {
    operands: "read*",
    options: "-cdfkqvst --stdout --decompress --force --quiet --verbose --small --test",
  },
  xz: XZ,
  unxz: XZ,
  lzma: XZ,
  unlzma: XZ,
  xzcat: XZCAT,
  lzcat: XZCAT,
  zstd: ZSTD,
  unzstd: ZSTD,
  zstdmt: ZSTD,
  zstdcat: ZSTDCAT,
  lz4: {
    // Without a second operand it makes up a name beside the first.
    operands: "write write?",
    options:
      "-NUM -c!read -t!read -dzfkqvlm --stdout!read --test!read --list!read --decompress --compress --force --keep --rm!ask --best --fast=?",
    also: unpackedEffects,
  },
  lz4cat: { operands: "read*", options: "-dcfqv" },
  brotli: {
    operands: "write*",
    options: `-NUM -c!read -t!read -dfknvj -o:write -q: -w: -S: -D:read -Z --stdout!read --test!read --decompress --force --keep --rm
      --no-copy-stat --output=write --quality= --lgwin= --suffix= --dictionary=read --best --verbose`,
    also: unpackedEffects,
  },
};
