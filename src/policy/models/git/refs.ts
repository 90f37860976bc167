import type { Arg, Found, Model, Use } from "../model.ts";
import { LOG, REFS } from "./options.ts";
import { loggedFiles } from "./paths.ts";

/** Lists, when one of these is given or nothing is named; else it makes what is named. */
const LISTS: Readonly<Record<string, ReadonlySet<string>>> = {
  "git branch": new Set(
    `-l --list --contains --no-contains --with --without --merged --no-merged --points-at --show-current`.split(
      /\s+/,
    ),
  ),
  "git tag": new Set(
    `-l --list -n --contains --no-contains --with --without --merged --no-merged --points-at`.split(/\s+/),
  ),
};

function namedRefs(use: Use): readonly Found[] {
  const { program, options, operands } = use;
  const lists = operands.length === 0 || options.some(({ name }) => LISTS[program]?.has(name) === true);
  return lists ? [] : [{ kind: "repository", change: "local", what: program }];
}

const GONE = new Set(["expire", "delete", "drop", "write"]);

/** `reflog`: any first word that is no action names what is shown. */
function loggedRefs(use: Use): readonly Found[] {
  const [action] = use.operands;
  const shown = loggedFiles(use);
  if (action === undefined || action.value === "show") return shown;
  if (action.kind !== "literal") return [use.doubt("word.dynamic", action)];
  return GONE.has(action.value)
    ? [{ kind: "repository", change: "rewritten", what: `${use.program} ${action.value}` }]
    : shown;
}

/** `-d` alone removes; any other use gives a ref another value. */
const updatedRefs = ({ program, options }: Use): readonly Found[] =>
  options.some(({ name }) => name === "-d" || name === "--stdin")
    ? [
        {
          kind: "repository",
          change: options.some(({ name }) => name === "-d") ? "rewritten" : "lost",
          what: `${program} -d`,
        },
      ]
    : [{ kind: "repository", change: "local", what: program }];

/** One name is asked for, two are set. */
const symbolic = ({ program, operands }: Use): readonly Found[] =>
  operands.length > 1 ? [{ kind: "repository", change: "local", what: program }] : [];

/** `+name` in what is pushed goes without asking whether something is lost. */
export const forcedRefs = ({ operands }: Use): readonly Found[] =>
  operands
    .filter(({ value }: Arg) => value.startsWith("+"))
    .map(({ value, span }) => ({ kind: "repository", change: "forced", what: value, span }));

/** Commands about names of commits: branches, tags, and what they pointed to. */
export const NAMES: Readonly<Record<string, Model>> = {
  branch: {
    options: `-arvqilt -u:!local -d!local -D!lost -m!local -M!lost -c!local -C!lost -f!lost --verbose --quiet --track=?!local
      --no-track!local --set-upstream-to=!local --unset-upstream!local ${REFS} --remotes --abbrev=? --no-abbrev --all
      --delete!local --move!local --copy!local --list --show-current --create-reflog!local --edit-description!ask --force!lost
      --recurse-submodules!ask`,
    operands: "data*",
    also: namedRefs,
  },
  tag: {
    options: `-lia -n? -m: -F:read -e!ask -s!ask -u:!ask -v!ask -d!local -f!local --list --delete!local --verify!ask --annotate
      --message= --file=read --edit!ask --sign!ask --no-sign --cleanup= --local-user=!ask --force!local --create-reflog ${REFS}
      --trailer=`,
    operands: "data*",
    also: namedRefs,
  },
  reflog: {
    options: `${LOG} --expire=!ask --expire-unreachable=!ask --rewrite --updateref --stale-fix --dry-run --verbose`,
    operands: "data*",
    also: loggedRefs,
  },
  "update-ref": {
    options: "-d -m: --no-deref --deref --create-reflog --stdin -z --batch-updates",
    operands: "data*",
    also: updatedRefs,
  },
  "symbolic-ref": {
    options: "-d!lost --delete!lost -q --quiet --short --recurse --no-recurse -m:",
    operands: "data*",
    also: symbolic,
  },
  "pack-refs": { options: "--all --prune --no-prune --auto --include= --exclude=", fixed: ["local"] },
  replace: {
    options:
      "-l -d!local -f!local -e!ask -g!ask --list --format= --delete!local --force!local --edit!ask --graft!ask --raw",
    operands: "data*",
    also: ({ program, options, operands }) =>
      operands.length === 0 || options.some(({ name }) => name === "-l" || name === "--list")
        ? []
        : [{ kind: "repository", change: "local", what: program }],
  },
};
