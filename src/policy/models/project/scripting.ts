import type { Found, Model, Use } from "../model.ts";
import { fixedEffect } from "../roles.ts";
import { always, named, only, writesUnless } from "./parts.ts";

const checks = (options: string, more: Partial<Model> = {}): Model => ({
  options,
  operands: "check*",
  fixed: ["check"],
  tells: "--version -v -V --help -h",
  ...more,
});

const RSPEC = checks(
  `-f: -e: -t: -b -c -w -P: -E: -p? -o:write -O:loads -r:loads -I:loads -X:loads --format= --example= --example-matches= --tag= --backtrace --color --no-color
   --force-color --fail-fast=? --no-fail-fast --only-failures --next-failure --dry-run --order= --seed= --pattern= --exclude-pattern= --profile=?
   --no-profile --warnings --failure-exit-code= --error-exit-code= --deprecation-out=write --out=write --options=loads --require=loads
   --default-path=check --bisect=?!project --init!project --drb!project -d!ask`,
  {
    also: only({
      "-f --format": "p progress d doc documentation h html j json f failures",
    }),
  },
);

const RUBOCOP = checks(
  `-D -d -E -F -L -P -S -V -l -x -f: -n --lint --format= --only= --except= --display-cop-names --no-display-cop-names --display-style-guide --display-only-fail-level-offenses
   --extra-details --fail-level= --fail-fast --force-exclusion --no-color --color --parallel --no-parallel --cache= --list-target-files --only-guide-cops
   --show-cops=? --debug --ignore-parent-exclusion --force-default-config --ignore-disable-comments --display-time --stderr -s:read --stdin=read
   --layout -a!write -A!write -o:write --out=write --autocorrect!write --auto-correct!write --autocorrect-all!write --auto-correct-all!write --fix-layout!write
   --safe --auto-gen-config!project --regenerate-todo!project -c:loads --config=loads -r:loads --require=loads --plugin=loads
   --cache-root=write --init!project --start-server!process --server!process --lsp!ask`,
  {
    also: only({
      "-f --format":
        "p progress s simple c clang e emacs f files fu fuubar g github h html j json ju junit o offenses pa pacman q quiet t tap w worst a autogenconf m markdown",
    }),
  },
);

/** A task or a command of the project: only `test` is known to be its tests. */
const tasks = (options: string, tells = "--version -v -V --help -h"): Model => ({
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
    options: "",
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
    exec: { options: "", commands: RUBY_TOOLS, otherwise: always("project") },
    ...named("list show info check platform version help licenses", {
      options: "--name-only --paths --path --only-group= --without-group= --dry-run --ruby",
      operands: "data*",
      fixed: ["settings"],
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
);
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
  ...named("phpcs psalm parallel-lint phpmd", PHP_LINT),
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
        fixed: ["settings"],
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

const PROVE = checks(
  `-l -b -r -v -q -Q -s -f -m -o -c -w -t -T -W -j: -h -H --lib --blib --recurse --verbose --quiet --QUIET --shuffle --failures --comments --merge --color --nocolor --count
   --nocount --jobs= --timer --directives --normalize --ignore-exit --parse --trap --ext= --reverse --rules= --norc --dry -D --state=!project
   -a:write --archive=write -e:loads --exec=loads -I:loads -M:loads -P:loads -S:loads --harness=loads --formatter=loads --source=loads --rc=loads --statefile=write
   --tapversion=`,
);

export const SCRIPTING: Readonly<Record<string, Model>> = {
  ...RUBY_TOOLS,
  ...named("bundle bundler", BUNDLE),
  gem: GEM,
  ...named("rbenv rvm chruby", { ...always("install"), tells: "--version --help version versions" }),
  ...PHP_TOOLS,
  composer: COMPOSER,
  prove: PROVE,
  ...named("cpan cpanm carton", { ...always("install"), tells: "--version --help -V" }),
  bats: checks(
    "-r -t -p -T -c -x -j: -f: --recursive --tap --pretty --timing --count --jobs= --filter= --filter-status= --filter-tags= --trace --verbose-run --print-output-on-failure --no-tempdir-cleanup -F: --formatter= --show-output-of-passing-tests --abort -o:write --output=write --report-formatter=loads --setup-suite-file=loads --gather-test-outputs-in=write --line-reference-format=",
    {
      also: only({ "-F --formatter": "pretty tap tap13 junit" }),
    },
  ),
  busted: checks(
    "-v -t: -c -o: --verbose --tags= --exclude-tags= --filter= --filter-out= --no-coverage --shuffle --seed= --repeat= --pattern= -r: --run= -p: --lua=loads -m:loads --lpath=loads --cpath=loads --helper=loads -f:loads --config-file=loads --loaders=loads -e:code -C:loads --directory=loads",
    {
      also: only({ "-o": "plainTerminal utfTerminal TAP json junit gtest" }),
    },
  ),
  luacheck: checks(
    "-q -g -u -r -a --std= --globals= --read-globals= --ignore= --only= --enable= --codes --ranges --no-color --formatter=loads --max-line-length= --no-max-line-length -j: --config=loads --no-config --cache=write --exclude-files= --include-files=",
  ),
  stylua: checks(
    "--check --verify --color= -g: --glob= --output-format= --num-threads= --respect-ignores -a --allow-hidden -f:loads --config-path=loads -s --search-parent-directories --stdin-filepath=read",
    {
      also: writesUnless("--check"),
    },
  ),
};
