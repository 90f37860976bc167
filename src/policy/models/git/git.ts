import { LFS } from "../vcs/lfs.ts";
import type { Found, Model, Use } from "../model.ts";
import { CHANGES } from "./changes.ts";
import { EXCHANGE } from "./exchange.ts";
import { HISTORY } from "./history.ts";
import { NESTED } from "./nested.ts";
import { NAMES } from "./refs.ts";
import { isHarmless } from "./settings.ts";
import { STATE } from "./state.ts";
import { WORK_TREE } from "./worktree.ts";
import { PLUMBING } from "./plumbing.ts";

/** Options whose value may ask for signatures, which gpg then checks. */
const SHAPES = new Set(["--format", "--pretty", "--group", "--sort"]);

/** `-c key=value` before a command, and formats that start gpg. */
function asked(use: Use): readonly Found[] {
  const { globals, options } = use;
  const settings = globals.filter(
    ({ name, value }) => name === "-c" && (value?.kind !== "literal" || !isHarmless(value.value)),
  );
  const formats = options.filter(
    ({ name, value }) =>
      SHAPES.has(name) &&
      value !== null &&
      (value.kind !== "literal" || /%G|\(signature|^-?signature/.test(value.value)),
  );
  return [...settings, ...formats].flatMap(({ name, value }) =>
    value === null ? [] : [use.doubt("option.unknown", value, `${name} ${value.value}`)],
  );
}

const NOTHING: readonly Found[] = [];

/** Git obeys the settings of the repository it stands in, whatever it is asked for; so does each of its commands. */
function standing(model: Model): Model {
  const { commands, also, fixed = [] } = model;
  return {
    ...model,
    abbreviates: true,
    // `--help` opens a viewer that the repository's settings name.
    local: true,
    tells: model.tells ?? "-h --help",
    fixed: [...fixed, "settings"],
    also: (use) => [...asked(use), ...(also?.(use) ?? NOTHING)],
    ...(commands === undefined ? {} : { commands: allStanding(commands) }),
  };
}

const allStanding = (commands: Readonly<Record<string, Model>>): Readonly<Record<string, Model>> =>
  Object.fromEntries(Object.entries(commands).map(([name, model]) => [name, standing(model)]));

export const GIT: Readonly<Record<string, Model>> = {
  git: {
    options: `-C:in -c: -P --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs
      --no-replace-objects --no-lazy-fetch --no-advice --version --build-options --html-path --man-path --info-path
      --exec-path=?loads --git-dir=loads --work-tree=loads --namespace=!ask --config-env=!ask -p!ask --paginate!ask --bare!ask
      --super-prefix=!ask --attr-source=!ask --list-cmds=`,
    tells: "-h --help -v --version --exec-path",
    commands: {
      ...allStanding({
        ...CHANGES,
        ...EXCHANGE,
        ...HISTORY,
        ...NAMES,
        ...NESTED,
        ...PLUMBING,
        ...STATE,
        ...WORK_TREE,
      }),
      lfs: LFS,
      version: { options: "--build-options" },
      help: {
        options:
          "-a -g -c --all --guides --verbose --no-verbose --config --no-aliases --no-external-commands",
        tells: "",
      },
    },
  },
};
