import type { Model } from "../model.ts";
import { gnu } from "../plain.ts";

const SUM = gnu(
  "read*",
  `-bctwz -l: --binary --check --tag --text --zero --length= --ignore-missing --quiet --status --strict --warn`,
);
const BASE = gnu("read?", "-diD -w: --decode --ignore-garbage --wrap=");
const HEXDUMP = gnu(
  "read*",
  `-bcCdoxvX -L? -e: -f:read!ask -n: -s: --one-byte-octal --one-byte-char --canonical --two-bytes-decimal --two-bytes-octal
  --two-bytes-hex --color=? --format= --format-file=read!ask --length= --skip= --no-squeezing --one-byte-hex`,
);

/** Programs that show bytes as text, and sums of them. */
export const BYTES: Readonly<Record<string, Model>> = {
  md5sum: SUM,
  sha1sum: SUM,
  sha224sum: SUM,
  sha256sum: SUM,
  sha384sum: SUM,
  sha512sum: SUM,
  b2sum: SUM,
  b3sum: {
    operands: "read*",
    options: "-c -l: --check --length= --no-names --raw --tag --quiet --num-threads= --no-mmap --keyed",
  },
  cksum: gnu(
    "read*",
    "-cwz -a: -l: --algorithm= --check --length= --tag --untagged --zero --ignore-missing --quiet --status --strict --warn --debug --raw --base64",
  ),
  sum: gnu("read*", "-rs --sysv"),
  shasum: {
    operands: "read*",
    options: `-bcstUqwS0 -a: --algorithm= --binary --check --text --UNIVERSAL --01 --ignore-missing --quiet --status --strict --tag
      --warn`,
    tells: "--version --help -v -h",
  },
  base64: BASE,
  base32: BASE,
  basenc: gnu(
    "read?",
    `-di -w: --base64 --base64url --base32 --base32hex --base16 --base2msbf --base2lsbf --z85 --decode --ignore-garbage
    --wrap=`,
  ),
  hexdump: HEXDUMP,
  hd: HEXDUMP,
  od: gnu(
    "read*",
    `-abcdfiloshxvBDeFHILOX -A: -j: -N: -S: -t: -w? --address-radix= --endian= --skip-bytes= --read-bytes= --strings=?
    --format= --output-duplicates --width=? --traditional`,
  ),
  xxd: {
    // Its second operand is written.
    operands: "read write?",
    singleDash: true,
    options: `-a -autoskip -b -bits -C -capitalize -c= -cols= -d -e -E -EBCDIC -g= -groupsize= -i -include -l= -len= -n= -name= -o= -p
      -ps -plain -postscript -r -revert -s= -seek= -u -uppercase -R=`,
    tells: "-h -help -v -version --version --help",
  },
  // `@file` holds more arguments.
  strings: gnu(
    "read*",
    `-NUM -adfwo -n: -t: -T: -e: -U: -s: --all --data --print-file-name --bytes= --radix= --include-all-whitespace --target=
    --encoding= --unicode= --output-separator=`,
    (use) =>
      use.operands
        .filter(({ value }) => value.startsWith("@"))
        .map((arg) => use.doubt("option.loads-code", arg)),
  ),
};
