import type { Found, Model, Use } from "../model.ts";
import { allOf, always, forwards, greedy, named, only } from "./parts.ts";
import { REPORTERS, WATCHES_NOT } from "./runner-names.ts";
import { runsScript, TEST_WORDS } from "./scripts.ts";

const OPTIONS = `-s -d -q -a -l -w:check --silent --quiet --verbose --loglevel= --workspace=check --workspaces --no-workspaces
  --include-workspace-root --if-present --ignore-scripts --foreground-scripts --json --long --parseable --depth= --all
  --omit= --include= --production --prod --dev --only= --color=? --no-color --no-audit --no-fund --no-progress
  --offline --prefer-offline --no-update-notifier --prefix=in -C:in --global -g --location= --package-lock-only
  --script-shell=loads --node-options=loads --shell=loads --userconfig=loads --globalconfig=loads --no-package-lock`;

const tells: Model = { options: OPTIONS, operands: "data*", fixed: ["settings"] };

const test: Model = {
  options: OPTIONS,
  operands: "data*",
  fixed: ["check"],
  also: forwards(TEST_WORDS),
};

const NPM: Model = {
  options: OPTIONS,
  tells: "--version -v --help -h -l --usage",
  commands: {
    ...named("ls list la ll explain why root prefix bin query sbom", tells),
    ...named(
      `audit outdated view info show v search find s se ping whoami owner author dist-tag dist-tags docs home repo
       bugs issues doctor fund star stars unstar profile org ogr team token access hook login adduser add-user logout
       publish unpublish deprecate undeprecate diff trust stage`,
      always("network"),
    ),
    ...named(
      `install i in ins inst insta instal isnt isnta isntal isntall add ci clean-install ic install-clean isntall-clean
       update up upgrade udpate uninstall un unlink remove rm r prune dedupe ddp find-dupes link ln shrinkwrap cache`,
      always("install"),
    ),
    ...named(
      "install-test it install-ci-test cit sit exec x init create innit",
      always("install", "project"),
    ),
    ...named("rebuild rb start stop restart pack", always("project")),
    // With a word it opens a viewer of manuals.
    help: { options: OPTIONS },
    ...named("set edit explore completion get", always("ask")),
    config: {
      options: OPTIONS,
      commands: {
        ...named("list ls", tells),
        get: { ...tells, also: tokens },
        ...named("set delete rm edit fix", always("ask")),
      },
    },
    pkg: {
      options: OPTIONS,
      commands: { get: tells, ...named("set delete fix", { operands: "data*", also: changesPackage }) },
    },
    version: { options: OPTIONS, operands: "data*", fixed: ["settings"], also: changesVersion },
    run: { options: `${OPTIONS} --list`, operands: "data*", also: runsScript },
    test,
  },
  aliases: { "run-script": "run", rum: "run", urn: "run", t: "test", tst: "test" },
};

/** Some of its settings are the keys to a registry. */
export function tokens(use: Use): readonly Found[] {
  return use.operands
    .filter(({ kind, value }) => kind !== "literal" || /auth|password|token|cert|key|\/\//i.test(value))
    .map((arg) => use.doubt("operand.unknown", arg));
}

/** Writes the file, commits and tags. */
function changesVersion(use: Use): readonly Found[] {
  return use.operands.length === 0
    ? []
    : [
        { kind: "write", path: use.folder },
        { kind: "repository", change: "local", what: use.program },
      ];
}

function changesPackage(use: Use): readonly Found[] {
  return [{ kind: "write", path: use.folder }];
}

/**
 * What is handed on to the tests of a package, whichever runner they have. Only what means no harm to any of jest,
 * vitest, mocha, ava, tap and node's own.
 */
const FORWARDED: Model = {
  options: `-t: -g: -i -b -v -s -u!project -r:loads -c:loads --require=loads --import=loads --config=loads
    --run --coverage=? --no-coverage --grep= --fgrep= --invert --watch=? --no-watch --watchAll=? --verbose --silent
    --bail=? --ci --runInBand --maxWorkers= --maxConcurrency= --testPathPattern= --testPathPatterns= --testNamePattern=
    --passWithNoTests --testTimeout= --timeout= --shard= --color --no-color --colors --reporter=? --reporters= --only
    --onlyChanged --onlyFailures --changed=? --findRelatedTests --detectOpenHandles --forceExit --exit --json --tap
    --listTests --no-cache --retry= --project= --selectProjects= --fail-fast --serial --match= --test-name-pattern=
    --test-only --test-reporter= --test-concurrency= --hideSkippedTests --no-file-parallelism --parallel --jobs=
    --updateSnapshot!project --update!project --quiet --headless --workers= --grep-invert= --list -x -q -k: --tb= --lf`,
  operands: "check*",
  also: allOf(
    WATCHES_NOT,
    only({ "--reporter --reporters --test-reporter": REPORTERS }),
    greedy("--reporters", REPORTERS),
  ),
};

const fetches = always("install", "project").reads;
const runs = always("project").reads;

/** What the project does not have is fetched, unless that is refused before anything else is said. */
function runsPackage(use: Use): readonly Found[] {
  const [first, second] = use.args;
  const stays = use.program === "npx" && first?.kind === "literal" && /^--no(?:-install)?$/.test(first.value);
  const named = second?.kind === "literal" && /^[\w@][\w@./-]*$/.test(second.value);
  return (stays && named ? runs : fetches)?.(use) ?? [];
}

export const NPM_TOOLS: Readonly<Record<string, Model>> = {
  npm: NPM,
  ...named("npx pnpx", { reads: runsPackage, tells: "--version -v --help -h" }),
  [TEST_WORDS]: FORWARDED,
};
