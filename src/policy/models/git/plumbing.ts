import type { Model } from "../model.ts";
import { DIFF, DIFF_LETTERS } from "./options.ts";

const OBJECTS: Model = {
  options: "-qvnr --quiet --strict --missing --batch -z",
  operands: "data*",
  fixed: ["local"],
};

/** What others do with tools and objects; none of it is needed to look at a repository. */
export const PLUMBING: Readonly<Record<string, Model>> = {
  difftool: {
    options: `${DIFF_LETTERS.replace("-puswabzRWDrtcm", "-puswabzRWDrcm")} ${DIFF} -dyg -x:shell --extcmd=shell -t:loads --tool=loads
      --dir-diff --no-prompt --prompt --gui --no-gui --cached --staged`,
    operands: "data*",
    fixed: ["project"],
  },
  mergetool: {
    options: "-yg -t:loads --tool=loads --no-prompt",
    operands: "data*",
    fixed: ["project", "local"],
  },
  "filter-branch": {
    options: `-f -d:write --setup=shell --env-filter=shell --tree-filter=shell --index-filter=shell --parent-filter=shell
      --msg-filter=shell --commit-filter=shell --tag-name-filter=shell --subdirectory-filter= --prune-empty --original= --force
      --state-branch=`,
    operands: "data*",
    fixed: ["rewritten"],
  },
  "filter-repo": {
    options: `-f --force --path= --invert-paths --subdirectory-filter= --analyze --path-glob= --path-rename= --replace-text=read
      --mailmap=read --refs= --strip-blobs-bigger-than=`,
    operands: "data*",
    fixed: ["rewritten"],
  },
  "commit-tree": { options: "-p: -m: -F:read -S?!ask", operands: "data*", fixed: ["local"] },
  "write-tree": OBJECTS,
  mktree: OBJECTS,
  mktag: OBJECTS,
  "unpack-objects": OBJECTS,
  "pack-objects": OBJECTS,
  "index-pack": {
    options: "-v -o:write --stdin --strict --fix-thin --keep=?",
    operands: "write",
    fixed: ["local"],
  },
  "commit-graph": OBJECTS,
  "multi-pack-index": OBJECTS,
  maintenance: OBJECTS,
};
