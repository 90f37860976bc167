import type { Model } from "../model.ts";
import { gnu } from "../plain.ts";
import { fixedEffect } from "../roles.ts";
import { copies, installs, links, moves } from "./copying.ts";
import { PATCH } from "./patch.ts";
import { chattrEffects, chmodEffects } from "./rights.ts";

const BACKUP = "-b -S: --backup=? --suffix=";
const INTO = "-t: -T --target-directory= --no-target-directory";

/** Programs that make, change and remove files. */
export const CHANGES: Readonly<Record<string, Model>> = {
  cp: gnu(
    "data*",
    `${BACKUP} ${INTO} -adfHilLnpPrRsuvxZ --archive --attributes-only --copy-contents --force --interactive --link --dereference
    --no-clobber --no-dereference --preserve=? --no-preserve= --parents --recursive --reflink=? --remove-destination
    --sparse= --strip-trailing-slashes --symbolic-link --update=? --verbose --one-file-system --context=? --debug`,
    copies,
  ),
  mv: gnu(
    "data*",
    `${BACKUP} ${INTO} -finuvZ --force --interactive --no-clobber --no-copy --strip-trailing-slashes --update=? --verbose
    --context --debug --exchange`,
    moves,
  ),
  ln: gnu(
    "data*",
    `${BACKUP} ${INTO} -dFfiLnPrsv --directory --force --interactive --logical --no-dereference --physical --relative
    --symbolic --verbose`,
    links,
  ),
  link: { operands: "data data", also: links },
  install: gnu(
    "data*",
    `${BACKUP} ${INTO} -cCdDpsvZ -g: -m: -o: --compare --directory --group= --mode= --owner= --preserve-timestamps --strip
    --strip-program=loads --verbose --preserve-context --context=?`,
    installs,
  ),
  rm: gnu(
    "delete*",
    `-f -i -I -r -R -d -v --force --interactive=? --one-file-system --no-preserve-root --preserve-root=? --recursive --dir
    --verbose`,
  ),
  rmdir: gnu("delete*", "-pv --ignore-fail-on-non-empty --parents --verbose"),
  patch: PATCH,
  unlink: { operands: "delete" },
  srm: { operands: "delete*", options: "-dfirRvz --force --recursive" },
  trash: { operands: "delete*", options: "-fvrR" },
  mkdir: gnu("target*", "-pvZ -m: --mode= --parents --verbose --context=?"),
  touch: gnu(
    "write*",
    "-acfhm -d: -r:read -t: --no-create --date= --no-dereference --reference=read --time=",
  ),
  truncate: gnu("write*", "-co -r:read -s: --no-create --io-blocks --reference=read --size="),
  fallocate: gnu(
    "write",
    `-cdinpvxz -l: -o: --collapse-range --dig-holes --insert-range --keep-size --length= --offset= --punch-hole --verbose
    --posix --zero-range`,
  ),
  shred: gnu(
    "write*",
    "-fvxz -u!delete -n: -s: --force --iterations= --random-source=read --size= --remove=?!delete --verbose --exact --zero",
  ),
  mktemp: gnu(
    "write?",
    "-dqtu -p:target --directory --quiet --suffix= --tmpdir=?target --dry-run",
    ({ operands }) => (operands.length > 0 ? [] : [{ kind: "write", path: "/tmp/tmp.*" }]),
  ),
  mkfifo: gnu("write*", "-Z -m: --mode= --context=?"),
  mknod: gnu("write data*", "-Z -m: --mode= --context=?", (use) =>
    use.operands.length > 2 ? [fixedEffect("system", use.folder, use.program)] : [],
  ),
  // Of the two programs of this name, one takes code.
  rename: {
    operands: "code write*",
    options: "-nvfos --verbose --no-act --force --nono --symlink --no-overwrite",
  },
  sync: gnu("read*", "-df --data --file-system"),
  chmod: gnu(
    "data*",
    // A mode may look like an option: `chmod -x file`.
    `-RcfvrwxXstugoa --changes --silent --quiet --verbose --no-preserve-root --preserve-root --reference= --recursive`,
    chmodEffects,
  ),
  chown: gnu(
    "pattern permissions*",
    `-RcfhvHLP --changes --silent --quiet --verbose --dereference --no-dereference --from= --no-preserve-root --preserve-root
    --reference=pattern --recursive`,
  ),
  chgrp: gnu(
    "pattern permissions*",
    `-RcfhvHLP --changes --silent --quiet --verbose --dereference --no-dereference --no-preserve-root --preserve-root
    --reference=pattern --recursive`,
  ),
  chattr: { operands: "data*", options: "-RVfaAcCdDeFijmPsStTux -v: -p:", also: chattrEffects },
  setfacl: {
    operands: "permissions*",
    options: `-bkndRLP -m: -M:read -x: -X:read --set= --set-file=read --modify= --modify-file=read --remove= --remove-file=read
      --remove-all --remove-default --no-mask --mask --default --restore=read!ask --test --recursive --logical --physical`,
  },
  setfattr: gnu(
    "permissions*",
    "-h -n: -v: -x: --name= --value= --remove= --no-dereference --restore=read!ask",
  ),
  chcon: {
    operands: "pattern permissions*",
    options: "-RvhHLP -u: -r: -t: -l: --recursive --verbose --reference=pattern",
  },
  restorecon: { operands: "permissions*", options: "-RrvFnip --recursive" },
  setcap: { operands: "data*", options: "-qrv -n:", fixed: ["privilege"] },
};
