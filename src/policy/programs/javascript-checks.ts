import { fixedEffect } from "./argument-roles.ts";
import { COVERED, REPORTERS, WATCHES_NOT } from "./node-programs.ts";
import type { Found, Model, Use } from "./program-model.ts";
import {
  allOf,
  always,
  greedy,
  named,
  noSettings,
  only,
  shaped,
  verbs,
  writesHereWith,
  writesUnless,
} from "./project-arguments.ts";

const ESLINT_FORMATS = only({
  "-f --format":
    "stylish json html json-with-metadata compact unix checkstyle junit tap visualstudio jslint-xml codeframe table",
});
const ESLINT: Model = {
  options: `-c:loads -f: -o:write -h --ext= --quiet --max-warnings= --format= --output-file=write --color --no-color --rule= --env= --global=
    --no-eslintrc --no-config-lookup --no-inline-config --report-unused-disable-directives
    --report-unused-disable-directives-severity= --report-unused-inline-configs= --ignore-pattern= --ignore-path=read --no-ignore
    --no-warn-ignored --no-error-on-unmatched-pattern --error-on-unmatched-pattern --exit-on-fatal-error --print-config=check
    --pass-on-no-patterns --pass-on-unpruned-suppressions --debug --stats --cache --no-cache --cache-strategy= --cache-location=write
    --cache-file=write --fix!write --fix-dry-run --fix-type= --stdin --stdin-filename=read --env-info --concurrency=
    --config=loads --rulesdir=loads --resolve-plugins-relative-to=loads --plugin=loads --parser=loads --parser-options=loads
    --flag=loads --suppress-all!project --suppress-rule=loads --suppressions-location=write --prune-suppressions!project
    --init!install --inspect-config!install --mcp!network`,
  operands: "check*|.",
  tells: "--version -v --help -h",
  fixed: ["check"],
  also: ESLINT_FORMATS,
};

const PARSERS = `babel babel-flow babel-ts flow acorn espree meriyah typescript css less scss json json5 jsonc json-stringify graphql
  markdown mdx html vue angular lwc glimmer handlebars yaml`;
const PRETTIER: Model = {
  options: `-c -l -u -h -w!write --check --list-different --write!write --ignore-unknown --log-level= --loglevel= --color --no-color
    --no-config --config-precedence= --no-editorconfig --editorconfig --ignore-path=read --with-node-modules
    --no-error-on-unmatched-pattern --error-on-unmatched-pattern --find-config-path=check --find-config-file=check --file-info=check
    --support-info --no-plugin-search --cache --cache-location=write --cache-strategy= --no-cache --stdin-filepath=check
    --config=loads --plugin=loads --plugin-search-dir=loads --single-quote --no-single-quote --jsx-single-quote --print-width= --tab-width= --use-tabs
    --no-semi --semi --trailing-comma= --arrow-parens= --prose-wrap= --end-of-line= --quote-props= --no-bracket-spacing
    --bracket-same-line --parser= --html-whitespace-sensitivity= --embedded-language-formatting= --object-wrap=
    --experimental-ternaries --experimental-operator-position= --insert-pragma --require-pragma --vue-indent-script-and-style
    --single-attribute-per-line --range-start= --range-end= --debug-check`,
  operands: "check*",
  tells: "--version -v --help -h",
  fixed: ["check"],
  also: only({ "--parser": PARSERS }),
};

const BIOME_OPTIONS = `--colors= --use-server --verbose --config-path=check --max-diagnostics= --skip-parse-errors --no-errors-on-unmatched
  --error-on-warnings --json --reporter= --log-level= --log-kind= --diagnostic-level= --vcs-enabled= --vcs-client-kind=
  --vcs-use-ignore-file= --vcs-root=check --vcs-default-branch= --files-max-size= --files-ignore-unknown=
  --stdin-file-path= --staged --changed --since= --only= --skip= --suppress!write --reason= --unsafe --linter-enabled= --formatter-enabled=
  --organize-imports-enabled= --assist-enabled= --enforce-assist= --indent-style= --indent-width= --line-width= --line-ending=
  --write!write --apply!write --apply-unsafe!write --fix!write --profile-rules --log-file=write --reporter-file=write`;
const biome: Model = { options: BIOME_OPTIONS, operands: "check*|.", fixed: ["check"] };

const OXLINT: Model = {
  options: `-A: -W: -D: -c:loads -f: --config=loads --allow= --warn= --deny= --deny-warnings --max-warnings= --quiet --silent --format= --tsconfig=check
    --ignore-path=read --ignore-pattern= --no-ignore --threads= --print-config --rules --type-aware --type-check
    --report-unused-disable-directives --disable-nested-config --import-plugin --react-plugin --jest-plugin
    --vitest-plugin --jsx-a11y-plugin --nextjs-plugin --react-perf-plugin --promise-plugin --node-plugin --vue-plugin
    --regex-plugin --disable-unicorn-plugin --disable-oxc-plugin --disable-typescript-plugin --no-error-on-unmatched-pattern
    --fix!write --fix-suggestions!write --fix-dangerously!write --init!write --lsp!ask`,
  operands: "check*|.",
  tells: "--version -V --help -h",
  fixed: ["check"],
};

const STYLELINT: Model = {
  options: `-f: -q -o:write -i:read --formatter= --quiet --max-warnings= --allow-empty-input --aei --ignore-pattern= --ip= --ignore-path=read
    --color --no-color --cache --cache-location=write --cache-strategy= --disable-default-ignores --di --report-needless-disables --rd
    --report-invalid-scope-disables --report-descriptionless-disables --print-config --stdin-filename=read --fix=?!write --ignore-disables
    --id --output-file=write --config=loads -c:loads --config-basedir=loads --custom-formatter=loads --custom-syntax=loads --quiet-deprecation-warnings`,
  operands: "check*",
  tells: "--version -v --help -h",
  fixed: ["check"],
  also: only({ "-f --formatter": "compact github json string tap unix verbose" }),
};

const MARKDOWNLINT: Model = {
  options: `-d -f!write -h -i: -j -o:write -p:read -q -r:loads -s -c:loads --config=loads --config-pointer= --configPointer= --dot --fix!write --ignore= --json
    --output=write --ignore-path=read --quiet --rules=loads --stdin --enable= --disable=`,
  operands: "check*",
  tells: "--version -V --help -h",
  fixed: ["check"],
};

/** Linters of which only a few options are known: what they are given is checked, with the project's settings. */
const lint = (options: string, operands = "check*|."): Model => ({
  options: `--fix!write --config=loads ${options}`,
  operands,
  fixed: ["check"],
});

const CSPELL = lint(
  "-c:loads --no-progress --no-summary --quiet --words-only --unique --gitignore --dot --exclude= -e: --show-suggestions --no-must-find-files",
);

export const JAVASCRIPT_LINTS: Readonly<Record<string, Model>> = {
  eslint: ESLINT,
  eslint_d: { ...ESLINT, also: allOf(verbs("start stop restart status"), ESLINT_FORMATS) },
  prettier: PRETTIER,
  biome: {
    tells: "--version -V --help -h",
    commands: {
      ...named("check lint format ci", biome),
      ...named("version explain rage", { operands: "data*", fixed: ["settings"] }),
    },
  },
  oxlint: OXLINT,
  oxfmt: {
    options:
      "-c:loads --config=loads --check --list-different --threads= --ignore-path=read --no-error-on-unmatched-pattern --with-node-modules",
    operands: "check*",
    fixed: ["check"],
    also: writesUnless("--check", "--list-different"),
  },
  dprint: {
    options: "-c:loads --config=loads",
    commands: {
      check: lint("-c:loads --excludes= --includes= --verbose --list-different --allow-no-files --staged"),
    },
  },
  stylelint: STYLELINT,
  markdownlint: MARKDOWNLINT,
  "markdownlint-cli2": lint("--no-globs --config-pointer="),
  standard: lint("--env= --global= --plugin=loads --parser=loads --ext= --verbose --stdin"),
  xo: lint(
    "--quiet --reporter=loads --env= --global= --ignore= --space=? --no-semicolon --prettier --plugin=loads --extend=loads",
  ),
  tslint: lint(
    "-c:loads -p:check --project=check -t: --format= -e: --exclude= -r:loads --rules-dir=loads --formatters-dir=loads -o:write",
  ),
  knip: {
    ...lint(
      `-c:loads --production --strict --include= --exclude= --workspace= -W: --no-progress -n --reporter= --no-exit-code --max-issues=
     --dependencies --exports --files --no-config-hints --tsConfig=check -t:check --directory=check --preprocessor=loads --debug
     --include-entry-exports --no-gitignore --cycles --include-libs --isolate-workspaces --cache --trace-exports`,
      "",
    ),
    also: allOf(
      writesHereWith("--fix"),
      only({
        "--reporter": "symbols compact codeowners json codeclimate markdown disclosure github-actions",
      }),
    ),
  },
  depcheck: lint(
    "--json --ignores= --ignore-dirs= --ignore-patterns= --skip-missing=? --quiet --parsers=loads --detectors=loads --specials=loads",
  ),
  madge: lint(
    "-c -s --circular --summary --extensions= --exclude= --json --no-spinner --no-color --orphans --leaves --ts-config=check --webpack-config=loads -i:write --image=write",
    "check*",
  ),
  cspell: {
    options: "--no-progress",
    commands: {
      ...named("lint check", CSPELL),
      ...named("init link add trace suggestions sug dictionaries cache", always("ask")),
    },
    otherwise: CSPELL,
  },
  commitlint: lint(
    "-f: --from= -t: --to= -l --last -V --verbose -q --quiet --strict -c --color --no-color -e?read --edit=?read -x:loads --extends=loads -p:loads -g:loads",
    "",
  ),
  htmlhint: lint("-c:loads -f: --format= -i: --ignore= --nocolor --warn -r:loads --rulesdir=loads"),
  solhint: {
    ...lint("-c:loads -f:loads --formatter=loads -q --quiet -w: --max-warnings= --ignore-path=read"),
    also: verbs("init-config stdin list-rules"),
  },
};

const JEST_REPORTERS = "default summary verbose agent github-actions silent";

/** Operands of it are patterns that choose among the project's own tests. */
const JEST: Model = {
  options: `-t: -i -b?  -o -e -w: -h -f -u!project -c:loads --testNamePattern= --runInBand --bail=? --onlyChanged --onlyFailures
    --expand --ci=? --verbose=? --silent=? --coverage=? --no-coverage --collectCoverage=? --coverageReporters= --coverageProvider=
    --collectCoverageFrom= --coverageDirectory=write --watchAll=? --watch=? --cache --no-cache --listTests
    --passWithNoTests --findRelatedTests --testPathPattern= --testPathPatterns= --testPathIgnorePatterns= --testMatch=
    --testRegex= --runTestsByPath --maxWorkers= --maxConcurrency= --detectOpenHandles --detectLeaks --forceExit
    --testTimeout= --color --colors --no-color --no-colors --json --outputFile=write --selectProjects=
    --ignoreProjects= --shard= --changedSince= --changedFilesWithAncestor --lastCommit --showConfig --showSeed --seed=
    --randomize --logHeapUsage --noStackTrace --notify=? --useStderr --errorOnDeprecated --injectGlobals --no-watchman
    --watchman --clearMocks --resetMocks --restoreMocks --resetModules --openHandlesTimeout= --waitForUnhandledRejections
    --workerThreads --workerIdleMemoryLimit= --debug --updateSnapshot!project --env= --testEnvironment=
    --config=loads --rootDir=loads --roots=loads --projects=loads --cacheDirectory=write --clearCache!project
    --reporters= --globalSetup=loads --globalTeardown=loads --setupFiles=loads --setupFilesAfterEnv=loads
    --runner=loads --testRunner=loads --transform=loads --resolver=loads --testSequencer=loads --preset=loads
    --testResultsProcessor=loads --moduleNameMapper=loads --filter=loads --snapshotSerializers=loads --init!project`,
  operands: "data*",
  tells: "--version -v --help -h",
  fixed: ["check"],
  also: allOf(
    WATCHES_NOT,
    only({
      "--reporters": JEST_REPORTERS,
      "--env --testEnvironment": "node",
      "--coverageReporters": COVERED,
    }),
    greedy("--reporters", JEST_REPORTERS),
    greedy("--coverageReporters", COVERED),
  ),
};

const VITEST_OPTIONS = `-t: -h -u!project -c:loads -r:check -w!ask --run --testNamePattern= --dir=check --root=check --coverage=? --no-coverage
  --coverage.enabled=? --coverage.provider= --coverage.reporter= --coverage.include= --coverage.exclude= --coverage.all=?
  --coverage.thresholds.lines= --coverage.thresholds.functions= --coverage.reportsDirectory=write --reporter= --outputFile=write
  --bail= --changed=? --project= --testTimeout= --hookTimeout= --teardownTimeout= --color --no-color --pool=
  --maxWorkers= --minWorkers= --no-file-parallelism --fileParallelism=? --maxConcurrency= --passWithNoTests
  --hideSkippedTests --globals=? --typecheck=? --typecheck.only --shard= --retry= --sequence.shuffle=? --sequence.seed=
  --sequence.concurrent --silent=? --logHeapUsage --allowOnly=? --no-allowOnly --no-isolate --isolate=? --environment=
  --mode= --exclude= --disable-console-intercept --disableConsoleIntercept --expandSnapshotDiff --printConsoleTrace
  --watch=? --no-watch --standalone!ask --ui!network --open!ask --api=?!network --browser=?!project --json=?
  --filesOnly --static-parse --update!project --config=loads --globalSetup=loads --setupFiles=loads
  --dangerouslyIgnoreUnhandledErrors --clearScreen=? --no-clearScreen --strictTags --tagsFilter=`;
const VITEST_ALSO = allOf(
  WATCHES_NOT,
  only({
    "--reporter": REPORTERS,
    "--environment": "node jsdom happy-dom edge-runtime",
    "--pool": "threads forks vmThreads vmForks",
    "--coverage.provider": "v8 istanbul",
    "--coverage.reporter": COVERED,
  }),
);
const vitest: Model = { options: VITEST_OPTIONS, operands: "data*", fixed: ["check"], also: VITEST_ALSO };

const VITEST: Model = {
  ...vitest,
  tells: "--version -v --help -h",
  commands: {
    ...named("bench init", always("project")),
    ...named("watch dev", always("project", "ask")),
    run: vitest,
    list: vitest,
    related: { ...vitest, also: allOf(VITEST_ALSO, notWatching) },
  },
  // Without `run` it watches, but only where a person sits at a terminal.
  otherwise: vitest,
};

function notWatching(use: Use): readonly Found[] {
  const runs = [...use.options, ...use.globals].some(({ name }) => name === "--run");
  return runs ? [] : [fixedEffect("ask", use.folder, "a watch")];
}

const MOCHA: Model = {
  options: `-g: -f: -i -b -R: -t: -s: -u: -A -G -C -c -p -j: --grep= --fgrep= --invert --bail --no-bail --recursive --reporter= --timeout= --slow= --exit
    --no-exit --parallel --no-parallel --jobs= --color --no-color --dry-run --forbid-only --forbid-pending --check-leaks
    --fail-zero --retries= --full-trace --inline-diffs --diff --no-diff --sort --async-only --allow-uncaught --ignore= --exclude=
    --extension= --list-reporters --list-interfaces --pass-on-failing-test-suite --no-timeout --no-timeouts --global=
    -w!ask --watch!ask -n:loads -r:loads --require=loads --config=loads --package=loads --ui= --file=check --spec=check
    -O:loads --reporter-option=loads --reporter-options=loads --node-option=loads --inspect!network --opts=loads`,
  operands: "check*",
  tells: "--version -V --help -h",
  fixed: ["check"],
  also: allOf(
    only({ "-R --reporter": REPORTERS, "-u --ui": "bdd tdd qunit exports" }),
    verbs("init inspect debug"),
  ),
};

const AVA: Model = {
  options: `-m: -s -T: -c: -t -v -u!project -w!ask --match= --tap --fail-fast --serial --verbose --timeout= --concurrency= --color --no-color
    --no-cache --no-worker-threads --update-snapshots!project --watch!ask --config=loads --node-arguments=loads`,
  operands: "check*",
  fixed: ["check"],
  also: verbs("debug reset-cache"),
};

const TAP: Model = {
  options: `-R: -j: -t: -b -B -c -C -g: -i --reporter= --jobs= --timeout= --bail --no-bail --color --no-color --disable-coverage --no-coverage
    --allow-incomplete-coverage --allow-empty-coverage --show-full-coverage --grep= --only --invert --coverage-report=
    --snapshot!project -w!ask --watch!ask --node-arg=loads --before=loads --after=loads --plugin=loads --coverage-map=loads --test-env=loads
    -r:loads --require=loads --save=write --output-file=write -o:write --output-dir=write`,
  operands: "check*",
  fixed: ["check"],
  also: allOf(
    only({ "-R --reporter": `${REPORTERS} terse base tree-counts silent`, "--coverage-report": COVERED }),
    verbs("plugin build config debug repl report"),
  ),
};

const TAPE: Model = {
  options:
    "-r:loads -i:read -s --require=loads --import=loads --ignore=read --strict --only --no-only --ignore-pattern=",
  operands: "check*",
  fixed: ["check"],
};

const JASMINE: Model = {
  options: `--filter= --filter-path= --random= --seed= --fail-fast --parallel= --no-color --color --verbose --stop-on-failure=
    --config=loads --helper=loads --require=loads --reporter=loads`,
  operands: "check*",
  fixed: ["check"],
  also: allOf(noSettings, verbs("init examples")),
};

/** The tests as the scaffolding of a framework starts them. */
const SCRIPTS: Model = {
  options: "--config=loads",
  commands: { test: JEST, ...named("start build eject", always("project")) },
};

const NG: Model = {
  options: "",
  commands: {
    test: {
      options: `--watch=? --no-watch --browsers= --code-coverage=? --progress=? --no-progress --include=check --exclude= --source-map=? -c:
        --configuration= --karma-config=loads --main=loads --polyfills=loads --reporters=loads --ts-config=check`,
      operands: "data",
      fixed: ["check"],
      also: allOf(WATCHES_NOT, shaped({ "--browsers": /^Chrome(?:Headless)?$/ })),
    },
    version: { fixed: ["settings"] },
  },
};

export const JAVASCRIPT_TESTS: Readonly<Record<string, Model>> = {
  jest: JEST,
  vitest: VITEST,
  mocha: MOCHA,
  _mocha: MOCHA,
  ava: AVA,
  tap: TAP,
  tape: TAPE,
  jasmine: JASMINE,
  "react-scripts": SCRIPTS,
  ng: NG,
};
