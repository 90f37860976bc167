import type { Found, Model, Use } from "../model.ts";
import { copied, emptied, hostPart } from "./copies.ts";
import { given, part, reading, valuesOf, writing } from "./parts.ts";

const FLAGS = `-avqcrRbudlLkKHpEAXogDtOJUNSnxWzCPhi468sFymI0 --archive --verbose --quiet --no-motd --checksum --recursive
  --relative --no-relative --no-implied-dirs --backup --update --inplace --append --append-verify --dirs --old-dirs
  --mkpath --links --copy-links --copy-unsafe-links --safe-links --munge-links --copy-dirlinks --keep-dirlinks
  --hard-links --perms --no-perms --executability --acls --xattrs --owner --no-owner --group --no-group --devices
  --copy-devices --specials --times --no-times --atimes --open-noatime --crtimes --omit-dir-times --omit-link-times
  --super --fake-super --sparse --preallocate --dry-run --whole-file --no-whole-file --one-file-system --existing
  --ignore-existing --remove-source-files --del --delete --delete-before --delete-during --delete-delay --delete-after
  --delete-excluded --delete-missing-args --ignore-missing-args --ignore-errors --force --partial --delay-updates
  --prune-empty-dirs --numeric-ids --size-only --ignore-times --fuzzy --compress --cvs-exclude --from0 --no-dirs
  --secluded-args --protect-args --old-args --trust-sender --blocking-io --stats --8-bit-output --human-readable
  --no-human-readable --progress --itemize-changes --list-only --fsync --ipv4 --ipv6 --no-recursive --no-links
  --no-compress --no-inc-recursive --info= --debug= --stderr= --outbuf=`;

const VALUES = `-B: -M: -f: -T:target -@: --suffix= --chmod= --block-size= --max-delete= --max-size= --min-size= --max-alloc=
  --timeout= --contimeout= --modify-window= --compress-choice= --zc= --compress-level= --zl= --skip-compress= --filter=
  --exclude= --include= --address= --port= --sockopts= --bwlimit= --stop-after= --stop-at= --protocol= --iconv=
  --checksum-choice= --cc= --checksum-seed= --out-format= --log-file-format= --usermap= --groupmap= --chown= --copy-as=
  --remote-option=`;

const FILES = `--exclude-from=read --include-from=read --files-from=read --password-file=read --compare-dest=read
  --copy-dest=read --link-dest=read --read-batch=read --backup-dir=target --partial-dir=target --temp-dir=target
  --log-file=write --write-batch=write --only-write-batch=write
  -e:shell --rsh=shell --rsync-path=loads --early-input=read --daemon!process --config=loads --dparam=loads
  --no-detach!process`;

const DELETING = [
  "--del",
  "--delete",
  "--delete-before",
  "--delete-during",
  "--delete-delay",
  "--delete-after",
  "--delete-excluded",
  "--delete-missing-args",
];

/** Reads on both sides and changes nothing. */
const isDry = (use: Use): boolean => given(use, "-n", "--dry-run", "--list-only") || use.operands.length < 2;

function synchronised(use: Use): readonly Found[] {
  if (isDry(use))
    return copied(use, hostPart).map((found) =>
      found.kind === "write" ? { ...found, kind: "read" } : found,
    );
  const moved = given(use, "--remove-source-files") ? use.operands.slice(0, -1) : [];
  return [
    ...copied(use, hostPart),
    ...moved.filter((arg) => hostPart(arg) === null).map((arg) => writing(arg, use)),
    ...(given(use, ...DELETING) ? emptied(use, hostPart) : []),
  ];
}

/** Rules of a filter may stand in files: `merge FILE`, `. FILE`. */
const filterFiles = (use: Use): readonly Found[] =>
  valuesOf(use, "-f", "--filter").flatMap((rule) => {
    const file = /^(?:merge|\.)[^\s_]*[\s_]+([^]+)$/.exec(rule.value)?.[1];
    return file === undefined ? [] : [reading(part(rule, file), use)];
  });

/** The other side would obey these; nothing on this one does. */
const remoteOptions = (use: Use): readonly Found[] =>
  valuesOf(use, "-M", "--remote-option").map((arg) => use.doubt("option.unknown", arg));

export const RSYNC: Readonly<Record<string, Model>> = {
  rsync: {
    options: `${FLAGS} ${VALUES} ${FILES}`,
    operands: "data*",
    tells: "--version -V --help",
    also: (use) => [...synchronised(use), ...filterFiles(use), ...remoteOptions(use)],
  },
};
