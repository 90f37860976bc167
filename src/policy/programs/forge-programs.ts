import type { Arg, Found, Model, Use } from "./program-model.ts";

/** All that is asked of a forge goes over the network; what looks like a file may be sent there. */
function sent(use: Use): readonly Found[] {
  const files = use.operands.flatMap((arg: Arg) => {
    const value = arg.value.slice(arg.value.lastIndexOf("=") + 1).replace(/^@/, "");
    return /^(?:\.|\/(?!\/))/.test(value)
      ? [{ kind: "read", path: use.place({ ...arg, value }), span: arg.span } as const]
      : [];
  });
  return [{ kind: "network", hosts: [] }, ...files];
}

const ASKS: Model = { reads: sent };
const LISTS: Model = { options: "-h: --host=", operands: "data*" };
/** Keys of settings are words of a few kinds; what else is asked for may be a token. */
const tokens = (use: Use): readonly Found[] =>
  use.operands
    .filter(({ kind, value }) => kind !== "literal" || /token|oauth|password/i.test(value))
    .map((arg) => use.doubt("operand.unknown", arg));
const INSTALLS: Model = { operands: "data*", fixed: ["install"] };
/** Prints a token, or changes what later commands do. */
const KEEPS: Model = { operands: "data*", fixed: ["ask"] };

const GROUPS =
  `api attestation browse cache codespace gist gpg-key issue label org pr project release repo ruleset run search secret
  ssh-key status variable workflow agent-task preview`.split(/\s+/);
const GITLAB_GROUPS =
  `api changelog ci cluster deploy-key duo incident issue iteration job label milestone mr opentofu pipeline
  release repo schedule securefile snippet ssh-key stack token user variable work-items check-update`.split(
    /\s+/,
  );

const asking = (groups: readonly string[]): Readonly<Record<string, Model>> =>
  Object.fromEntries(groups.map((group) => [group, ASKS]));

/** Clients of services that keep repositories. */
export const FORGES: Readonly<Record<string, Model>> = {
  gh: {
    options: "-R: --repo=",
    tells: "--version --help version help",
    commands: {
      ...asking(GROUPS),
      auth: KEEPS,
      alias: { commands: { list: LISTS, set: KEEPS, delete: KEEPS, import: KEEPS } },
      config: {
        commands: { get: { ...LISTS, also: tokens }, list: LISTS, set: KEEPS, "clear-cache": KEEPS },
      },
      extension: {
        commands: {
          list: LISTS,
          search: ASKS,
          browse: ASKS,
          install: INSTALLS,
          upgrade: INSTALLS,
          remove: KEEPS,
        },
      },
      completion: { options: "-s: --shell=" },
      help: { operands: "data*" },
    },
  },
  glab: {
    options: "-R: --repo=",
    tells: "--version --help version help -v -h",
    commands: {
      ...asking(GITLAB_GROUPS),
      auth: KEEPS,
      alias: { commands: { list: LISTS, set: KEEPS, delete: KEEPS } },
      config: { commands: { get: KEEPS, set: KEEPS, edit: KEEPS } },
      completion: { options: "-s: --shell=" },
      help: { operands: "data*" },
    },
  },
};

/** It puts scripts of its own where git runs them. */
const hooked = ({ folder }: Use): readonly Found[] => [
  { kind: "write", path: folder === null ? null : `${folder}/.git/hooks` },
];

/** Programs around git: what shows differences, what works in a window of its own, what runs hooks. */
export const VIEWERS: Readonly<Record<string, Model>> = {
  delta: {
    options: `-ns -w: --line-numbers --side-by-side --dark --light --color-only --raw --navigate --hyperlinks --no-gitconfig
      --diff-so-fancy --diff-highlight --keep-plus-minus-markers --syntax-theme= --width= --tabs= --wrap-max-lines=
      --max-line-length= --true-color= --list-languages --list-syntax-themes --show-config --show-colors --show-syntax-themes
      --paging=!ask --pager=!ask --diff-args=!ask --config=loads --features=!ask`,
    operands: "read*",
    fixed: ["settings"],
    tells: "-V --version -h --help",
  },
  difft: {
    options: `--color= --display= --width= --context= --background= --syntax-highlight= --ignore-comments --list-languages
      --language= --override= --skip-unchanged --exit-code --check-only --strip-cr= --sort-paths --tab-width= --byte-limit=
      --graph-limit= --parse-error-limit= --missing-as-empty`,
    operands: "read read",
    tells: "-V --version -h --help",
  },
  tig: { operands: "data*", fixed: ["local", "settings"], tells: "-v --version -h --help" },
  lazygit: {
    options: "-p:in --path=in",
    operands: "data*",
    fixed: ["local", "settings"],
    tells: "-v --version -h --help",
  },
  gitk: { operands: "data*", fixed: ["settings", "ask"] },
  "pre-commit": {
    options: "--color=",
    tells: "-V --version -h --help",
    commands: {
      run: {
        options: `-av -c:loads --config=loads --all-files --files=read --verbose --show-diff-on-failure --hook-stage= --color=
          --from-ref= --to-ref= --fail-fast`,
        operands: "data*",
        fixed: ["network", "project", "local"],
      },
      install: { options: "-f -t: --overwrite --install-hooks", operands: "data*", also: hooked },
      uninstall: { options: "-t:", also: hooked },
      "install-hooks": { fixed: ["install"] },
      autoupdate: { options: "--bleeding-edge --freeze --repo=", fixed: ["network"] },
      "validate-config": { operands: "read*" },
      "validate-manifest": { operands: "read*" },
      "sample-config": {},
      gc: { fixed: ["ask"] },
      clean: { fixed: ["ask"] },
    },
  },
};

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
