import type { Model } from "./model.ts";

/** Programs that show files. */
export const INSPECTION: Readonly<Record<string, Model>> = {
  cat: {
    options:
      "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting",
    operands: "read*",
    abbreviates: true,
  },
  ls: {
    options: `-aAbBcCdDfFgGhHiklLmnNopqQrRsStTuUvwxXZ1 -I: --all --almost-all --author --escape --block-size= --ignore-backups
      --color=? --directory --dired --classify=? --file-type --format= --full-time --group-directories-first --no-group
      --human-readable --si --hide= --hyperlink=? --indicator-style= --inode --ignore= --kibibytes --dereference
      --numeric-uid-gid --literal --hide-control-chars --show-control-chars --quote-name --quoting-style= --reverse
      --recursive --size --sort= --time= --time-style= --tabsize= --width= --context --zero`,
    operands: "read*|.",
    abbreviates: true,
  },
  echo: { options: "-neE", operands: "data*", tells: "" },
  pwd: { options: "-LP --logical --physical" },
  rm: {
    options:
      "-f -i -I -r -R -d -v --force --interactive=? --one-file-system --no-preserve-root --preserve-root=? --recursive --dir --verbose",
    operands: "delete*",
    abbreviates: true,
  },
};
