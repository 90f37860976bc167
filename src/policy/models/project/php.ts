import type { Model } from "../model.ts";
import { allOf, always, checks, named, only, writesHereWith } from "./parts.ts";

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
