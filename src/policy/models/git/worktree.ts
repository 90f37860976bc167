import type { Arg, Found, Model, Use } from "../model.ts";
import { PATHS_FROM } from "./options.ts";
import { pathIn } from "./paths.ts";

const has = ({ options }: Use, ...names: readonly string[]): boolean =>
  options.some(({ name }) => names.includes(name));
const change = (change: "local" | "lost" | "rewritten", { program }: Use): Found => ({
  kind: "repository",
  change,
  what: program,
});

/** Files that get another content than they have: what was changed in them goes. */
const overwritten = (paths: readonly Arg[], use: Use): readonly Found[] => [
  change("lost", use),
  ...paths.flatMap((arg) => {
    const path = pathIn(arg.value);
    return path === null
      ? []
      : [{ kind: "write", path: use.place({ ...arg, value: path }), span: arg.span } as const];
  }),
];

/** What looks like a file, not like a branch: a dot at the beginning of a name, or an ending. */
const FILE = /(?:^|\/)\.|\.[a-z]\w*$|\/$|[*?]/i;

function checkedOut(use: Use): readonly Found[] {
  const { args, operands } = use;
  const makes = has(use, "-b", "-B", "--orphan", "--detach", "-d", "-t", "--track");
  const dashes = args.find(({ kind, value }) => value === "--" && kind === "literal");
  const after = dashes === undefined ? [] : operands.filter(({ span }) => span[0] > dashes.span[0]);
  if (after.length > 0) return overwritten(after, use);
  const [first] = operands;
  const files =
    has(use, "--ours", "--theirs", "-p", "--patch", "--pathspec-from-file", "-2", "-3") ||
    operands.length > 1 ||
    (first !== undefined && FILE.test(first.value));
  return files && !makes ? overwritten(operands, use) : [change("local", use)];
}

/** Only the index, unless the work tree is named too. */
const restored = (use: Use): readonly Found[] =>
  has(use, "-S", "--staged") && !has(use, "-W", "--worktree")
    ? [change("local", use)]
    : overwritten(use.operands, use);

/** Only with `-f` does it delete; what it deletes stands in no commit. */
function cleaned(use: Use): readonly Found[] {
  if (has(use, "-n", "--dry-run")) return [];
  return [change(has(use, "-f", "--force") ? "rewritten" : "lost", use)];
}

function removed(use: Use): readonly Found[] {
  if (has(use, "-n", "--dry-run")) return [];
  if (has(use, "--cached")) return [change("local", use)];
  const recursive = has(use, "-r");
  const forced = has(use, "-f", "--force");
  const deleted = use.operands.map(
    (arg) => ({ kind: "delete", path: use.place(arg), recursive, forced, span: arg.span }) as const,
  );
  return [change(forced ? "lost" : "local", use), ...deleted];
}

function renamed(use: Use): readonly Found[] {
  if (has(use, "-n", "--dry-run")) return [];
  const sources = use.operands.slice(0, -1);
  const moved = sources.map(
    (arg) =>
      ({ kind: "delete", path: use.place(arg), recursive: false, forced: false, span: arg.span }) as const,
  );
  const targets = use.operands
    .slice(-1)
    .map((arg) => ({ kind: "write", path: use.place(arg), span: arg.span }) as const);
  return [change(has(use, "-f", "--force") ? "lost" : "local", use), ...moved, ...targets];
}

/** Commands that change files of the work tree. */
export const WORK_TREE: Readonly<Record<string, Model>> = {
  checkout: {
    options: `-qlmd -t -b: -B:!lost -f!lost -p!ask -2 -3 -U: --ours --theirs --quiet --progress --no-progress --force!lost --track=?
      --no-track --guess --no-guess --detach --orphan= --merge --conflict= --patch!ask --ignore-skip-worktree-bits
      --ignore-other-worktrees --overwrite-ignore --no-overwrite-ignore --recurse-submodules=? --no-recurse-submodules
      --overlay --no-overlay ${PATHS_FROM}`,
    operands: "data*",
    also: checkedOut,
  },
  switch: {
    options: `-qmd -t -c: -C:!lost -f!lost --create= --force-create=!lost --discard-changes!lost --force!lost --quiet --progress
      --no-progress --track=? --no-track --guess --no-guess --detach --orphan= --merge --conflict= --ignore-other-worktrees
      --overwrite-ignore --no-overwrite-ignore --recurse-submodules=? --no-recurse-submodules`,
    operands: "data*",
    fixed: ["local"],
  },
  restore: {
    options: `-qmSW -s: -p!ask -2 -3 -U: --source= --staged --worktree --ours --theirs --merge --conflict= --patch!ask --quiet
      --progress --no-progress --ignore-unmerged --ignore-skip-worktree-bits --recurse-submodules=? --no-recurse-submodules
      --overlay --no-overlay ${PATHS_FROM}`,
    operands: "data*",
    also: restored,
  },
  reset: {
    options: `-qN -p!ask -U: --hard!rewritten --soft --mixed --merge!lost --keep!lost --quiet --no-quiet --refresh --no-refresh
      --intent-to-add --patch!ask --recurse-submodules=? --no-recurse-submodules ${PATHS_FROM}`,
    operands: "data*",
    fixed: ["local"],
  },
  clean: {
    options: "-dxXqfni -e: --force --dry-run --no-dry-run!lost --quiet --interactive --exclude=",
    operands: "data*",
    also: cleaned,
  },
  rm: {
    options: `-rfnq --force --dry-run --cached --ignore-unmatch --sparse --quiet ${PATHS_FROM}!ask`,
    operands: "data*",
    also: removed,
  },
  mv: {
    options: "-fknv --force --dry-run --no-dry-run!local --verbose --sparse",
    operands: "data*",
    also: renamed,
  },
  "checkout-index": {
    options: `-ufaqn --index --quiet --force --all --no-create --prefix=write --stage= --temp --ignore-skip-worktree-bits -z
      --stdin`,
    operands: "write*",
    fixed: ["lost"],
  },
  "read-tree": {
    options: `-muivn --reset!lost --prefix= --index-output=write --empty!lost --aggressive --trivial --dry-run --quiet -q
      --exclude-per-directory= --no-sparse-checkout --recurse-submodules=? --no-recurse-submodules --debug-unpack`,
    operands: "data*",
    fixed: ["local"],
  },
};
