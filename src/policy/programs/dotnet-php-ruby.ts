import { fixedEffect } from "./argument-roles.ts";
import type { Found, Model, Use } from "./program-model.ts";
import {
  allOf,
  always,
  checks,
  COMMAND,
  named,
  noSettings,
  only,
  verbs,
  writesHereWith,
  writesUnless,
} from "./project-arguments.ts";

const DOTNET_OPTIONS = `-v: -c: -f: -r: -h --verbosity= --configuration= --framework= --runtime= --nologo --no-logo --no-build --no-restore -o:write
  --output=write --property=loads -p:loads`;
const DOTNET: Model = {
  options:
    "-d --diagnostics --additionalprobingpath=loads --additional-deps=loads --fx-version=loads --roll-forward=loads",
  tells: "--version --info --list-sdks --list-runtimes --help -h",
  commands: {
    test: {
      options: `${DOTNET_OPTIONS} -t --filter= --list-tests --blame --blame-hang-timeout= --no-progress --logger= -l: --settings=loads -s:loads
        --collect=loads --test-adapter-path=loads -d:write --diag=write --results-directory=write -e:loads --environment=loads --interactive!ask`,
      operands: "check*",
      fixed: ["check"],
      // Behind `--` stand settings, among them folders of programs to load.
      also: allOf(
        noSettings,
        only({
          "--logger -l":
            "trx console html console;verbosity=normal console;verbosity=detailed console;verbosity=minimal",
        }),
      ),
    },
    format: {
      options: `-v: --verify-no-changes --severity= --no-restore --include= --exclude= --diagnostics= --include-generated --verbosity=
        --binarylog=write --report=write`,
      operands: "check*",
      fixed: ["check"],
      // A switch may be turned off by the word behind it.
      also: allOf(writesUnless("--verify-no-changes"), verbs("true false")),
    },
    list: {
      options: `${DOTNET_OPTIONS} --include-transitive --format= --outdated!network --vulnerable!network --deprecated!network`,
      operands: "data*",
      fixed: ["settings"],
    },
    ...named("build run watch clean publish pack msbuild exec vstest fsi script", always("project")),
    ...named("restore add remove tool workload new nuget sdk", always("install")),
    ...named("sln solution store user-secrets dev-certs build-server ef", always("ask", "project")),
  },
  otherwise: always("project"),
};

const SWIFT: Model = {
  fixed: ["input"],
  tells: "--version -version --help -h -help",
  commands: {
    test: {
      options: `-c: -v -q -j: --filter= --skip= --parallel --no-parallel --num-workers= --list-tests --configuration= --verbose --quiet --skip-build --show-codecov-path
        --enable-code-coverage --test-product= -l --jobs= --disable-sandbox!project --package-path=loads --scratch-path=write --build-path=write
        --xunit-output=write --toolchain=loads --swift-sdk=loads --sdk=loads`,
      fixed: ["check"],
    },
    ...named("build run repl sdk plugin experimental-sdk", always("project")),
    package: {
      options: "",
      commands: {
        ...named("describe show-dependencies dump-package tools-version", {
          options: "--type= --format=",
          fixed: ["check"],
        }),
        ...named("update resolve edit unedit add-dependency", always("install")),
        ...named("init clean reset purge-cache", always("ask")),
      },
    },
  },
  otherwise: always("project"),
};

const lint = (options: string, more: Partial<Model> = {}): Model => ({
  options,
  operands: "check*",
  fixed: ["check"],
  tells: "--version version --help -h",
  ...more,
});

const DART_LINT =
  "--fatal-infos --fatal-warnings --no-fatal-warnings --no-fatal-infos --format= --no-pub --pub!network --watch!ask --write=write --packages=loads";
const DART_TEST = `-n: -N: -t: -x: -p: -j: -r: --name= --plain-name= --tags= --exclude-tags= --platform= --concurrency= --reporter= --timeout= --ignore-timeouts
  --run-skipped --no-run-skipped --no-retry --fail-fast --coverage=?write --total-shards= --shard-index= --no-color --color --chain-stack-traces
  --test-randomize-ordering-seed= --no-pub --pub!network --machine --file-reporter=write --configuration=loads --preset= -P:
  --update-goldens!project --coverage-path=write --dart-define=loads --no-test-assets`;
const dart = (first: Readonly<Record<string, Model>>): Model => ({
  options: "-v --verbose --no-color --color --suppress-analytics --disable-analytics",
  tells: "--version --help -h -v",
  commands: {
    analyze: lint(DART_LINT),
    test: lint(DART_TEST),
    ...first,
    ...named("pub create upgrade downgrade channel precache config", always("install")),
    ...named("run build compile drive clean gen-l10n assemble doc fix devtools info", always("project")),
    ...named("doctor devices emulators attach install logs screenshot", always("network")),
  },
  otherwise: always("project"),
});

export const DOTNET_AND_SWIFT: Readonly<Record<string, Model>> = {
  dotnet: DOTNET,
  swift: SWIFT,
  ...named("swiftc xcodebuild xcrun xcode-select pod carthage fastlane msbuild nuget csc fsharpi mono", {
    ...always("ask", "project"),
    tells: "--version -version --help -h -p --print-path",
  }),
  swiftlint: lint(
    "--quiet --strict --lenient --reporter= --fix!project --config=loads --path=check --no-cache",
    {
      commands: {
        lint: lint(
          "--quiet --strict --lenient --reporter= --fix!project --config=loads --path=check --no-cache",
        ),
        ...named("rules version", { fixed: ["settings"] }),
        ...named("analyze generate-docs baseline", always("project")),
      },
      otherwise: lint("--quiet --strict"),
    },
  ),
  swiftformat: lint(
    "--lint --dryrun --quiet --verbose --strict --lenient --swiftversion= --rules= --disable= --enable= --exclude= --config=loads --baseconfig=loads --output=write --cache=write --report=write --inferoptions",
    { also: writesUnless("--lint", "--dryrun", "--inferoptions") },
  ),
  dart: dart({
    format: lint(
      "-o: --output= --set-exit-if-changed --line-length= -l: --fix!write --show= --summary= --page-width= --language-version= --trailing-commas=",
      {
        also: dartFormats,
      },
    ),
  }),
  flutter: dart({}),
};

/** It writes, unless the result goes nowhere or to the screen. */
function dartFormats(use: Use): readonly Found[] {
  const output = use.options.findLast(({ name }) => name === "-o" || name === "--output")?.value?.value;
  const shown = output === "none" || output === "show";
  return shown ? [] : writesUnless()(use);
}

const PHPUNIT = checks(
  `--filter= --testdox --testsuite= --exclude-testsuite= --group= --exclude-group= --covers= --uses= --list-tests --list-suites --list-groups --stop-on-failure --stop-on-error
   --stop-on-defect --stop-on-warning --stop-on-risky --stop-on-skipped --stop-on-incomplete --colors=? --no-coverage --no-progress --no-results --no-output
   --order-by= --random-order --random-order-seed= --display-warnings --display-deprecations --display-errors --display-notices
   --display-skipped --display-incomplete --fail-on-warning --fail-on-risky --fail-on-empty-test-suite --fail-on-deprecation --verbose -v --debug --columns=
   --process-isolation --strict-coverage --disallow-test-output --do-not-cache-result --cache-result --test-suffix= --coverage-text=?write
   --no-logging --repeat= --teamcity --reverse-list --coverage-html=write --coverage-clover=write --coverage-xml=write
   --coverage-php=write --log-junit=write --log-teamcity=write --testdox-html=write --testdox-text=write --cache-directory=write -c:loads
   --configuration=loads --bootstrap=loads --no-configuration --prepend=loads --printer=loads --loader=loads --extension=loads --include-path=loads
   -d:loads --generate-configuration!project --migrate-configuration!project --parallel -p --processes= --compact --ci --dirty --retry --bail`,
);
const PHP_LINT = checks(
  `-l: -q -v -n -s -p --level= --no-progress --error-format= --memory-limit= --no-ansi --ansi --verbose --quiet --xdebug --debug --report= --standard= --extensions= --ignore=
   --sniffs= --exclude= --severity= --warning-severity= --error-severity= --parallel= --threads= --no-cache --show-info= --output-format= --colors --no-colors --encoding=
   -c:loads --config=loads --configuration=loads -a:loads --autoload-file=loads --generate-baseline=?write --fix!project --alter!project --report-file=write
   --bootstrap=loads --basepath= --root=loads -r:loads --set-baseline=write`,
  {
    also: allOf(
      only({
        "--standard": "PSR1 PSR2 PSR12 PEAR Squiz Zend Generic MySource",
        "--report": "full summary json xml checkstyle csv emacs source diff junit code info performance",
        "--error-format --output-format":
          "raw table checkstyle json junit prettyJson gitlab github teamcity console text emacs pylint compact xml sarif",
      }),
      writesHereWith("--generate-baseline"),
    ),
  },
);
/** Its `-l` takes no value. */
const PHPCS: Model = { ...PHP_LINT, options: PHP_LINT.options?.replace("-l: ", "-l ") ?? "" };
/** Its `--report` names a file. */
const PSALM: Model = {
  ...PHP_LINT,
  options: PHP_LINT.options?.replace("--report= ", "--report=write ") ?? "",
};
const PHP_TOOLS: Readonly<Record<string, Model>> = {
  ...named("phpunit pest", PHPUNIT),
  phpstan: {
    options: "",
    tells: "--version -V --help -h",
    commands: {
      ...named("analyse analyze", PHP_LINT),
      ...named("clear-result-cache worker diagnose", always("project")),
    },
  },
  phpcs: PHPCS,
  psalm: PSALM,
  ...named("parallel-lint phpmd", PHP_LINT),
  ...named("phpcbf php-cs-fixer pint rector", { ...always("project"), tells: "--version -V --help -h" }),
};
const COMPOSER: Model = {
  options:
    "-q -v -n --quiet --verbose --no-interaction --ansi --no-ansi --no-plugins --no-scripts --no-cache --profile -d:in --working-dir=in",
  tells: "--version -V --help -h",
  commands: {
    test: { operands: "", fixed: ["check"] },
    ...named(
      "show validate licenses depends why prohibits why-not check-platform-reqs status suggests fund",
      {
        options:
          "-i -s -t -N -D -P --installed --locked --tree --name-only --direct --path --platform --no-check-all --no-check-lock --no-check-publish --strict --format= -f: --no-dev --recursive -r --all -a!network --latest!network -l!network --outdated!network -o!network",
        operands: "data*",
        fixed: ["check"],
      },
    ),
    ...named(
      "install i update u upgrade require r req remove rm uninstall create-project global self-update reinstall bump dump-autoload dumpautoload",
      always("install"),
    ),
    ...named("outdated audit search browse home diagnose archive", always("network")),
    ...named("run-script run exec", always("project")),
    ...named("config init clear-cache cc clearcache", always("ask")),
  },
  otherwise: always("project"),
};

export const PHP: Readonly<Record<string, Model>> = { ...PHP_TOOLS, composer: COMPOSER };

const RSPEC = checks(
  `-f: -e: -t: -b -c -w -P:check -E: -p? -o:write -O:loads -r:loads -I:loads -X:loads --format= --example= --example-matches= --tag= --backtrace --color --no-color
   --force-color --fail-fast=? --no-fail-fast --only-failures --next-failure --dry-run --order= --seed= --pattern=check --exclude-pattern= --profile=?
   --no-profile --warnings --failure-exit-code= --error-exit-code= --deprecation-out=write --out=write --options=loads --require=loads
   --default-path=check --bisect=?!project --init!project --drb!project -d!ask`,
  {
    also: only({
      "-f --format": "p progress d doc documentation h html j json f failures",
    }),
  },
);

const RUBOCOP = checks(
  `-D -d -E -F -L -P -S -V -l -x!write -f: -n --lint --format= --only= --except= --display-cop-names --no-display-cop-names --display-style-guide --display-only-fail-level-offenses
   --extra-details --fail-level= --fail-fast --force-exclusion --no-color --color --parallel --no-parallel --cache= --list-target-files --only-guide-cops
   --show-cops=? --debug --ignore-parent-exclusion --force-default-config --ignore-disable-comments --display-time --stderr -s:read --stdin=read
   --layout -a!write -A!write -o:write --out=write --autocorrect!write --auto-correct!write --autocorrect-all!write --auto-correct-all!write --fix-layout!write
   --safe --auto-gen-config!project --regenerate-todo!project -c:loads --config=loads -r:loads --require=loads --plugin=loads
   --cache-root=write --init!project --start-server!process --server!process --lsp!ask`,
  {
    operands: "check*|.",
    also: only({
      "-f --format":
        "p progress s simple c clang e emacs f files fu fuubar g github h html j json ju junit o offenses pa pacman q quiet t tap w worst a autogenconf m markdown",
    }),
  },
);

/** A task or a command of the project: only `test` is known to be its tests. */
const tasks = (options: string, tells = "--version -V --help -h"): Model => ({
  options,
  operands: "data*",
  tells,
  also: testsOr,
});

function testsOr({ operands, folder, program }: Use): readonly Found[] {
  const [first] = operands;
  const tests = first?.kind === "literal" && /^(?:test|spec)$/.test(first.value) && operands.length === 1;
  return [fixedEffect(tests ? "check" : "project", folder, program)];
}

const RAKE = tasks(
  "-q -s -v -t -T? -P -W? -n -j: -m --quiet --silent --verbose --trace --tasks --dry-run --prereqs -f:loads --rakefile=loads -r:loads -I:loads -e:code -E:code -p:code",
);
const RUBY_TOOLS: Readonly<Record<string, Model>> = {
  rspec: RSPEC,
  ...named("rubocop standardrb", RUBOCOP),
  rake: RAKE,
  rails: {
    tells: "--version -v --help -h",
    commands: {
      test: checks(
        "-n: -v -b -f -e: -s: --name= --verbose --seed= --fail-fast -d --defer-output -c --no-color -w",
      ),
    },
    otherwise: always("project"),
  },
  minitest: checks("-n: -v -s: --name= --verbose --seed="),
};

const BUNDLE_OPTIONS = "--no-color --verbose --retry= -r:";
const BUNDLE: Model = {
  options: BUNDLE_OPTIONS,
  tells: "--version -v --help -h version",
  fixed: ["install"],
  commands: {
    exec: { commands: RUBY_TOOLS, otherwise: COMMAND },
    ...named("version help", { operands: "data*" }),
    // The list of packages is a program.
    ...named("list show info check platform licenses", {
      options: "--name-only --paths --path --only-group= --without-group= --dry-run --ruby",
      operands: "data*",
      fixed: ["check"],
    }),
    config: {
      options: "",
      commands: { ...named("list get", { options: "--parseable", operands: "data*", fixed: ["settings"] }) },
      otherwise: always("ask"),
    },
    ...named(
      "install update add remove lock cache package binstubs clean init inject pristine plugin",
      always("install"),
    ),
    ...named("outdated open gem", always("network")),
    ...named("doctor console viz", always("project")),
  },
};
const GEM: Model = {
  options: "-v -q --verbose --quiet --config-file=loads",
  tells: "--version -v --help -h",
  commands: {
    ...named("list query environment env help which contents dependency specification check", {
      options:
        "-l -a -d -q -v: -i --local --all --details --no-details --versions --no-versions --installed --exact --prerelease --remote!network -r!network -b!network --both!network",
      operands: "data*",
      fixed: ["settings"],
    }),
    ...named("install update uninstall cleanup pristine fetch unpack lock rdoc", always("install")),
    ...named("push yank owner search outdated signin signout sources info server mirror", always("network")),
    ...named("build exec open cert", always("project")),
  },
};

export const RUBY: Readonly<Record<string, Model>> = {
  ...RUBY_TOOLS,
  ...named("bundle bundler", BUNDLE),
  gem: GEM,
  ...named("rbenv rvm chruby", { ...always("install"), tells: "--version --help version versions" }),
};
