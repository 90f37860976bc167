import type { Found, Model, Use } from "../model.ts";

/** It puts scripts of its own where git runs them. */
export const hooked = ({ folder }: Use): readonly Found[] => [
  { kind: "write", path: folder === null ? null : `${folder}/.git/hooks` },
];

const attributed = ({ operands, folder }: Use): readonly Found[] =>
  operands.length === 0 ? [] : [{ kind: "write", path: folder === null ? null : `${folder}/.gitattributes` }];

const shown = (options = ""): Model => ({ options, operands: "data*", fixed: ["settings"] });
const reached = (options = ""): Model => ({ options, operands: "data*", fixed: ["network", "local"] });

/** Large files of git: alone, and as a command of git. */
export const LFS: Model = {
  tells: "-h --help --version version help env",
  fixed: ["settings"],
  commands: {
    env: shown(),
    version: shown(),
    status: shown("-pj --porcelain --json"),
    "ls-files": shown(
      "-ldnsa -I: -X: --long --size --debug --all --deleted --name-only --json --include= --exclude=",
    ),
    logs: { fixed: ["settings"], commands: { last: shown(), show: shown() } },
    pointer: { options: "--file=read --pointer=read --stdin --check --strict", fixed: ["settings"] },
    track: {
      ...shown("-nvl --dry-run --verbose --lockable --not-lockable --no-excluded --filename --json"),
      also: attributed,
    },
    untrack: { ...shown(), also: attributed },
    fetch: reached("-ap -I: -X: --all --recent --prune --refetch --include= --exclude="),
    pull: reached("-I: -X: --include= --exclude="),
    push: { ...reached("-a --all --dry-run --object-id --stdin"), fixed: ["network", "remote"] },
    clone: reached(),
    lock: reached("-r: -j --remote= --json"),
    unlock: reached("-fj --force --json --id="),
    locks: reached("-j --json --verify --local --cached --path= --id= --limit="),
    checkout: { ...shown("--to=write --ours --theirs --base"), fixed: ["lost"] },
    prune: { ...shown("-dvfn --dry-run --verbose --force --recent --verify-remote"), fixed: ["lost"] },
    migrate: {
      options: "--include= --exclude= --everything --above= --top= --unit=",
      operands: "data*",
      fixed: ["rewritten"],
    },
    install: {
      options: "-fl --force --local --system --worktree --skip-repo --skip-smudge --manual",
      operands: "data*",
      also: hooked,
    },
    uninstall: { options: "-l --local --system --worktree --skip-repo", operands: "data*", also: hooked },
    update: { options: "-fm --force --manual", also: hooked },
  },
};
