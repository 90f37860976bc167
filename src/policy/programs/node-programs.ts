import { fixedEffect, roleEffects } from "./argument-roles.ts";
import type { Found, GivenOption, Model, Use } from "./program-model.ts";
import { allOf, always, forwards, greedy, named, only, word } from "./project-arguments.ts";
import { programEffects } from "./python-programs.ts";
import { inlineEffects } from "./shell-builtins.ts";

const OPTIONS = `--test --test-only --test-force-exit --test-name-pattern= --test-skip-pattern= --test-reporter= --test-reporter-destination=
  --test-concurrency= --test-timeout= --test-shard= --test-isolation= --experimental-test-isolation=
  --test-coverage-include= --test-coverage-exclude= --test-coverage-lines= --test-coverage-branches=
  --test-coverage-functions= --experimental-test-coverage --experimental-test-module-mocks
  --experimental-test-snapshots --test-update-snapshots!project --test-global-setup=loads
  --test-rerun-failures=write --watch!ask --watch-path=check --watch-preserve-output --run= --check -c
  --experimental-strip-types --no-experimental-strip-types --no-strip-types --strip-types --experimental-transform-types --enable-source-maps
  --no-warnings --trace-warnings --disable-warning= --no-deprecation --trace-deprecation --throw-deprecation
  --pending-deprecation --unhandled-rejections= --stack-trace-limit= --stack-size= --max-old-space-size= --max-semi-space-size=
  --expose-gc --expose_gc --trace-uncaught --trace-exit --trace-sigint --preserve-symlinks --preserve-symlinks-main
  --input-type= --experimental-default-type= --experimental-vm-modules --experimental-sqlite --no-experimental-sqlite
  --experimental-json-modules --experimental-import-meta-resolve --experimental-require-module --experimental-wasm-modules
  --no-experimental-fetch --no-global-search-paths --frozen-intrinsics --zero-fill-buffers --title= -C= --conditions=
  --abort-on-uncaught-exception --interpreted-frames-native-stack --jitless --no-addons --dns-result-order= --harmony
  -e= --eval= -p= -pe --print= -i --interactive -r=loads --require=loads --import=loads --loader=loads
  --experimental-loader=loads --env-file=loads --env-file-if-exists=loads --icu-data-dir=loads
  --openssl-config=loads --snapshot-blob=loads --build-snapshot!project --build-sea=loads --experimental-config-file=?loads
  --experimental-default-config-file!project --inspect=?!network --inspect-brk=?!network --inspect-wait=?!network
  --inspect-port=!network --debug-port=!network --cpu-prof!project --heap-prof!project --prof!project
  --cpu-prof-dir=write --heap-prof-dir=write --diagnostic-dir=write --redirect-warnings=write --trace-event-file-pattern=write
  --report-dir=write --report-directory=write --report-on-signal!project --tls-keylog=write --disable-wasm-trap-handler`;

const NPM_OPTIONS = `-s -d -q -a -l -w:check --silent --quiet --verbose --loglevel= --workspace=check --workspaces --no-workspaces
  --include-workspace-root --if-present --ignore-scripts --foreground-scripts --json --long --parseable --depth= --all
  --omit= --include= --production --prod --dev --only= --color=? --no-color --no-audit --no-fund --no-progress
  --offline --prefer-offline --no-update-notifier --prefix=in -C:in --global -g --location= --package-lock-only
  --script-shell=loads --node-options=loads --shell=loads --userconfig=loads --globalconfig=loads --no-package-lock`;

const tells: Model = { options: NPM_OPTIONS, operands: "data*", fixed: ["settings"] };

const reporters = only({
  "--test-reporter": "spec tap dot junit lcov",
});

const LIGHT = { forced: false, recursive: false };

const INLINE: ReadonlySet<string> = new Set(["-e", "--eval", "-p", "--print", "-pe"]);

const inlines = (texts: readonly GivenOption[], use: Use): readonly Found[] =>
  texts.map(({ name, value }) => inlineEffects((name === "-pe" ? use.operands[0] : value) ?? word("", use)));

/** `--run` starts a script of the package. */
const scripts = ({ options, folder, program }: Use): readonly Found[] =>
  options
    .filter(({ name }) => name === "--run")
    .map(({ value }) =>
      fixedEffect(value?.kind === "literal" && value.value === "test" ? "check" : "project", folder, program),
    );

/** The entry of the table that judges what is handed on to a package's tests. */
const TEST_WORDS = "npm test --";

const handsOn = forwards(TEST_WORDS);

const NODE: Model = {
  options: OPTIONS,
  singleDash: true,
  strict: true,
  operands: "data*",
  tells: "--version -v --help -h --v8-options --completion-bash -V",
  also: node,
};

function node(use: Use): readonly Found[] {
  return [...reporters(use), ...destinations(use), ...programs(use)];
}

function programs(use: Use): readonly Found[] {
  const { options, operands, folder, program } = use;
  const has = (...names: readonly string[]): boolean => options.some(({ name }) => names.includes(name));
  const texts = options.filter(({ name }) => INLINE.has(name));
  const [file] = operands;
  if (has("--test"))
    return [
      fixedEffect("check", folder, program),
      ...inlines(texts, use),
      ...operands.flatMap((arg) => roleEffects("check", arg, use, LIGHT)),
    ];
  if (texts.length > 0) return inlines(texts, use);
  if (has("--run")) return [...scripts(use), ...handsOn(use)];
  return has("--check", "-c")
    ? operands.flatMap((arg) => roleEffects("read", arg, use, LIGHT))
    : programEffects(file, use);
}

/** Where reports go: a stream by its name, or a file. */
function destinations(use: Use): readonly Found[] {
  return use.options.flatMap(({ name, value }) =>
    name !== "--test-reporter-destination" ||
    value === null ||
    value.value === "stdout" ||
    value.value === "stderr"
      ? []
      : roleEffects("write", value, use, LIGHT),
  );
}

/** Runners of TypeScript files: what node does, and their own options are not known. */
const RUNNER: Model = {
  options:
    "-h -e:code -p:code --eval=code -r:loads --require=loads --import=loads --tsconfig=loads -P:loads --project=loads -T --transpile-only --test!project",
  tells: "--version -v --help -h",
  strict: true,
  operands: "data*",
  also: (use) => programEffects(use.operands[0], use),
};

export const NODES: Readonly<Record<string, Model>> = {
  ...named("node nodejs", NODE),
  ...named("tsx ts-node ts-node-esm ts-node-transpile-only babel-node vite-node jiti esno", RUNNER),
  ...named(
    "nodemon ts-node-dev pm2 forever live-server http-server serve",
    always("ask", "project", "network"),
  ),
};

const test: Model = {
  options: NPM_OPTIONS,
  operands: "data*",
  fixed: ["check"],
  also: forwards(TEST_WORDS),
};

const scriptHandsOn = forwards(TEST_WORDS, 1);

const NPM: Model = {
  options: NPM_OPTIONS,
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
    help: { options: NPM_OPTIONS },
    ...named("set edit explore completion get", always("ask")),
    config: {
      options: NPM_OPTIONS,
      commands: {
        ...named("list ls", tells),
        get: { ...tells, also: tokens },
        ...named("set delete rm edit fix", always("ask")),
      },
    },
    pkg: {
      options: NPM_OPTIONS,
      commands: { get: tells, ...named("set delete fix", { operands: "data*", also: changesPackage }) },
    },
    version: { options: NPM_OPTIONS, operands: "data*", fixed: ["settings"], also: changesVersion },
    run: { options: `${NPM_OPTIONS} --list`, operands: "data*", also: runsScript },
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

/** Nobody is there to end what watches. */
export const WATCHES_NOT = only({ "--watch --watchAll": "false" }, "option.unknown");

/** Reporters that come with a test runner; any other name is a package or a file that it loads. */
export const REPORTERS = `default verbose basic dot json junit tap tap-flat hanging-process github-actions blob tree summary agent
  spec min list progress nyan landing doc json-stream xunit markdown html lcov line minimal null github`;

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

/** What `run` and the like start: the tests, another script, or nothing but a list. */
export function runsScript(use: Use): readonly Found[] {
  const [script] = use.operands;
  if (script === undefined) return [fixedEffect("settings", use.folder, use.program)];
  if (script.kind !== "literal" || script.value !== "test")
    return [fixedEffect("project", use.folder, use.program)];
  return [fixedEffect("check", use.folder, use.program), ...scriptHandsOn(use)];
}

/** `test` of the package managers that hand on everything behind it. */
export const TESTS: Model = {
  // The script gets `--help` too.
  tells: "",
  reads: (use) => [fixedEffect("check", use.folder, use.program), ...forwards(TEST_WORDS)(use)],
};

/** A script of the project, or a program in its packages. */
export const SCRIPT: Model = { ...always("project"), tells: "" };

/** Reports of coverage that come with the tool; any other name is a package that it loads. */
export const COVERED =
  "text text-summary text-lcov lcov lcovonly html html-spa json json-summary cobertura clover teamcity none";
