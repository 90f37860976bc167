import type { Found, Model, Use } from "../model.ts";
import { given, gnu } from "../plain.ts";
import { arEffects, letterCommands } from "./letters.ts";
import { tarEffects } from "./tar.ts";
import { unzipEffects, zipEffects } from "./zip.ts";

const SEVEN: Model = { reads: letterCommands, tells: "--help -h i" };

/** Programs that put files into archives and take them out. */
export const ARCHIVES: Readonly<Record<string, Model>> = {
  tar: { reads: tarEffects, tells: "--version --help --usage -?" },
  gtar: { reads: tarEffects, tells: "--version --help --usage -?" },
  unzip: {
    operands: "data*",
    options: "-lvZpctzT12msMhoqnjCLabBufDKXVWUxi -d:target -P:",
    tells: "-v -h -hh --help --version",
    also: unzipEffects,
  },
  zipinfo: { operands: "read data*", options: "-12smlvhMtTzC -x", tells: "-h --help" },
  zip: {
    operands: "data*",
    singleDash: true,
    options: `-r -R -q -v -j -m -u -f -d -FS -U -F -FF -g -o -l -ll -e -y -X -D -A -J -c -z -i -x -k -S -T -@!ask -n= -t= -tt= -s= -sp -sv
      -sb -P= -b=target -O=write -lf=write -la -li -nw -ws -ic -0 -1 -2 -3 -4 -5 -6 -7 -8 -9 -Z= -TT=loads -unzip-command=loads
      -out=write -output-file=write -logfile-path=write -temp-path=target -recurse-paths -quiet -verbose -junk-paths -move
      -update -freshen -delete -filesync -copy -fix -fixfix -test -encrypt -password= -symlinks -no-extra -no-dir-entries
      -compression-method= -exclude -include -suffixes= -split-size= -grow -latest-time -to-crlf -from-crlf`,
    tells: "--version --help -h -h2 -v -L",
    also: zipEffects,
  },
  "7z": SEVEN,
  "7za": SEVEN,
  "7zr": SEVEN,
  "7zz": SEVEN,
  rar: SEVEN,
  unrar: SEVEN,
  ar: { reads: arEffects, tells: "--version --help -V -h" },
  cpio: gnu(
    "data*",
    `-iotpdvumn0acBbLfrAklsSV -C: -E:read -F:read -H: -I:read -M: -O:write -R: -D:!ask --extract --create --list --pass-through
    --make-directories --verbose --unconditional --preserve-modification-time --numeric-uid-gid --null --reset-access-time
    --block-size= --dereference --nonmatching --append --link --dot --quiet --format= --file=read --to-stdout
    --no-absolute-filenames --absolute-filenames --io-size= --message= --owner= --pattern-file=read --only-verify-crc
    --rename-batch-file=read!ask --rsh-command=loads --rmt-command=loads --force-local --sparse --swap --swap-bytes
    --swap-halfwords --no-preserve-owner --warning= --directory=!ask`,
    cpioEffects,
  ),
  "dpkg-deb": { operands: "read data*", options: "-cIf --contents --info --field --show -W" },
  rpm2cpio: { operands: "read?" },
  cabextract: {
    operands: "data*",
    options: "-l --list",
    also: (use) => (given(use, "-l", "--list") ? [] : [{ kind: "write", path: use.folder }]),
  },
  uuencode: { operands: "read? data?", options: "-m --base64" },
  uudecode: {
    operands: "read*",
    options: "-c -o:write --output-file=write",
    also: () => [{ kind: "write", path: null }],
  },
};

/** The names come on stdin; only `-t` and `--to-stdout` write none. */
function cpioEffects(use: Use): readonly Found[] {
  return [...remoteArchives(use), ...modeEffects(use)];
}

/** A name with a colon is one on another machine. */
const remoteArchives = (use: Use): readonly Found[] =>
  use.options.flatMap(({ name, value }): readonly Found[] =>
    ARCHIVE_OPTIONS.has(name) && value?.value.includes(":") === true
      ? [{ kind: "network", hosts: [], span: value.span }]
      : [],
  );

const ARCHIVE_OPTIONS: ReadonlySet<string> = new Set(["-F", "-I", "-O", "--file"]);

function modeEffects(use: Use): readonly Found[] {
  if (given(use, "-t", "--list", "--to-stdout")) return [];
  if (given(use, "-i", "--extract"))
    return [{ kind: "write", path: given(use, "--absolute-filenames") ? null : use.folder }];
  const [target] = use.operands;
  const passes = given(use, "-p", "--pass-through");
  return [
    { kind: "read", path: null },
    ...(passes && target !== undefined
      ? [{ kind: "write", path: use.place(target), span: target.span } satisfies Found]
      : []),
  ];
}
