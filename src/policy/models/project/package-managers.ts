import type { Found, Model, Use } from "../model.ts";
import { fixedEffect } from "../roles.ts";
import { CHECKERS } from "./checkers.ts";
import { tokens } from "./npm.ts";
import { always, COMMAND, named, word } from "./parts.ts";
import { runsScript, SCRIPT, TESTS } from "./scripts.ts";

const PNPM_OPTIONS = `-r -w -s -P -D -g -F: --recursive --workspace-root --silent --filter= --filter-prod= -C:in --dir=in --parallel
  --stream --aggregate-output --if-present --no-bail --bail --sort --no-sort --reverse --workspace-concurrency= --color
  --no-color --reporter= --loglevel= --offline --prefer-offline --json --long --parseable --depth= --prod --dev
  --no-optional --only-projects --fail-if-no-match --use-stderr --resume-from= --include-workspace-root --global
  --ignore-workspace --test-pattern= --changed-files-ignore-pattern= --script-shell=loads --global-dir=loads
  --ignore-pnpmfile --config=loads --pnpmfile=loads --node-options=loads`;
const pnpmTells: Model = { options: PNPM_OPTIONS, operands: "data*", fixed: ["settings"] };

const PNPM: Model = {
  options: PNPM_OPTIONS,
  tells: "--version -v --help -h",
  commands: {
    ...CHECKERS,
    ...named("list why root bin help licenses", pnpmTells),
    ...named("outdated audit view publish search ping whoami login logout", always("network")),
    ...named(
      `add install update remove link unlink import prune dedupe fetch env self-update setup patch patch-commit
       approve-builds deploy cat-file cat-index`,
      always("install"),
    ),
    ...named("dlx create install-test", always("install", "project")),
    ...named("rebuild pack", always("project")),
    ...named("start restart stop", SCRIPT),
    ...named("config set get init server", always("ask")),
    store: {
      options: PNPM_OPTIONS,
      commands: { path: pnpmTells, status: pnpmTells, prune: always("install") },
    },
    exec: { options: PNPM_OPTIONS, commands: CHECKERS, otherwise: COMMAND },
    run: { options: PNPM_OPTIONS, strict: true, operands: "data*", also: runsScript },
    test: TESTS,
  },
  aliases: {
    ...aliases("list", "ls la ll"),
    ...aliases("install", "i"),
    ...aliases("update", "up upgrade"),
    ...aliases("remove", "rm un uninstall"),
    ...aliases("test", "t tst"),
    ...aliases("run", "run-script"),
    ...aliases("rebuild", "rb"),
    ...aliases("link", "ln"),
    ...aliases("install-test", "it"),
  },
  otherwise: SCRIPT,
};

const YARN_OPTIONS = `-s -W -A -p -v -i -t --silent --cwd=in --json --verbose --no-progress --offline --non-interactive --depth=
  --pattern= --recursive --all --parallel --interlaced --topological --topological-dev --include= --exclude= --since=?
  --from= --jobs= -j: --no-private --production --prod --use-yarnrc=loads --script-shell=loads --mutex=loads`;
const yarnTells: Model = { options: YARN_OPTIONS, operands: "data*", fixed: ["settings"] };
const yarnRun: Model = { options: YARN_OPTIONS, strict: true, operands: "data*", also: yarnScript };

const YARN: Model = {
  options: YARN_OPTIONS,
  tells: "--version -v --help -h",
  fixed: ["install"],
  commands: {
    ...CHECKERS,
    ...named("list why bin help versions licenses explain", yarnTells),
    ...named("outdated audit npm info login logout owner publish tag team search", always("network")),
    ...named(
      `install add remove up upgrade upgrade-interactive link unlink import plugin set dedupe patch patch-commit
       global cache autoclean policies unplug`,
      always("install"),
    ),
    ...named("dlx create", always("install", "project")),
    ...named("rebuild pack exec node constraints", always("project")),
    start: SCRIPT,
    ...named("init version stage", always("ask")),
    config: {
      options: YARN_OPTIONS,
      commands: {
        list: yarnTells,
        get: { ...yarnTells, also: tokens },
        ...named("set delete unset", always("ask")),
      },
    },
    run: yarnRun,
    test: TESTS,
    workspace: { options: YARN_OPTIONS, strict: true, operands: "data*", also: yarnInWorkspace },
    workspaces: {
      options: YARN_OPTIONS,
      commands: {
        ...named("info list", yarnTells),
        run: yarnRun,
        foreach: { options: YARN_OPTIONS, strict: true, operands: "data*", also: yarnAgain },
        focus: always("install"),
      },
    },
  },
  otherwise: SCRIPT,
};

/** A script, and where there is none of that name, a program of the packages. */
function yarnScript(use: Use): readonly Found[] {
  const [name] = use.operands;
  const checks = name?.kind === "literal" && Object.hasOwn(CHECKERS, name.value);
  return checks ? [fixedEffect("check", use.folder, use.program), ...yarnAgain(use)] : runsScript(use);
}

/** `yarn workspace name …`: the rest is a command of yarn again. */
function yarnInWorkspace(use: Use): readonly Found[] {
  const [workspace, ...rest] = use.operands;
  return workspace === undefined ? [] : use.command([word("yarn", workspace), ...rest]);
}

function yarnAgain(use: Use): readonly Found[] {
  const [first] = use.operands;
  return first === undefined ? [] : use.command([word("yarn", first), ...use.operands]);
}

function aliases(of: string, names: string): Readonly<Record<string, string>> {
  return Object.fromEntries(names.split(" ").map((name) => [name, of]));
}

export const PACKAGE_MANAGERS: Readonly<Record<string, Model>> = {
  pnpm: PNPM,
  yarn: YARN,
  ...named("yarnpkg", YARN),
  ...named("corepack nvm volta fnm n asdf mise rtx", always("install")),
};
