import type { Found, Model, Use } from "../model.ts";
import { fixedEffect } from "../roles.ts";
import { COVERED } from "./coverage.ts";
import { allOf, always, greedy, named, noSettings, only, shaped, verbs } from "./parts.ts";
import { REPORTERS, WATCHES_NOT } from "./runner-names.ts";

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
