import type { Found, Model, Use } from "../model.ts";
import { roleEffects } from "../roles.ts";
import { allOf, always, named, noResponseFiles, shaped } from "./parts.ts";

export const PYTEST: Model = {
  options: `-x -v -q -s -l -h -k: -m: -r: -n: -d -W: -c:loads -p: -o:loads --tb= --lf --last-failed --ff --failed-first --nf --new-first --sw
    --stepwise --sw-skip --stepwise-skip --sw-reset --stepwise-reset --lfnf= --last-failed-no-failures= --maxfail=
    --exitfirst --co --collect-only --durations= --durations-min= --no-header --no-summary --disable-warnings
    --disable-pytest-warnings --pythonwarnings= --showlocals --no-showlocals --show-capture= --capture= --color=
    --code-highlight= --full-trace --force-short-summary --strict --strict-markers --strict-config --markers --fixtures --funcargs
    --fixtures-per-test --ignore= --ignore-glob= --deselect= --setup-show --setup-only --setup-plan --verbose --quiet
    --verbosity= --xfail-tb --runxfail --noconftest --keep-duplicates --collect-in-virtualenv --cache-clear --cache-show=?
    --doctest-modules --doctest-glob= --doctest-report= --doctest-ignore-import-errors --doctest-continue-on-failure
    --no-fold-skipped --assert= --import-mode= --log-level= --log-cli-level= --log-format= --log-date-format=
    --log-cli-format= --log-disable= --log-file=write --debug=?write!ask --junitxml=write --junit-xml=write --junit-prefix=
    --junitprefix= --report-log=write --html=write --self-contained-html --json-report --json-report-file=write
    --basetemp=tree --rootdir=check --confcutdir=check --config-file=loads --override-ini=loads --pastebin=!network
    --pdb!ask --pdbcls=loads --trace!ask --pyargs!project --plugin=loads --version
    --numprocesses= --dist= --maxprocesses= --cov=? --cov-report= --cov-branch --cov-append --cov-fail-under= --no-cov
    --no-cov-on-fail --cov-context= --cov-config=loads --timeout= --timeout-method= --session-timeout= --asyncio-mode=
    --anyio-mode= --reruns= --reruns-delay= --only-rerun= --rerun-except= --randomly-seed= --randomly-dont-reorganize
    --random-order --random-order-seed= --benchmark-skip --benchmark-only --benchmark-disable --benchmark-enable
    --benchmark-columns= --benchmark-sort= --benchmark-min-rounds= --runslow --run-slow --slow --integration
    --snapshot-update!project --snapshot-details --inline-snapshot=!project --hypothesis-seed= --hypothesis-show-statistics
    --hypothesis-profile= --count= --repeat-scope= --picked=? --testmon --forked --instafail --sugar --no-sugar --ds=
    --reuse-db --create-db --nomigrations --no-migrations --mypy --ruff --flake8 --black --isort --pylint --nbval-lax`,
  operands: "check*",
  tells: "--version -V --help -h",
  fixed: ["check"],
  also: allOf(noResponseFiles, shaped({ "-p": /^no:[\w.]+$/ }), reports),
};

/** `--cov-report=html:folder` names where it goes. */
function reports(use: Use): readonly Found[] {
  return use.options.flatMap(({ name, value }) => {
    const cut = value?.value.indexOf(":") ?? -1;
    if (name !== "--cov-report" || value === null || cut === -1) return [];
    const tail = value.value.slice(cut + 1);
    return tail === "skip-covered"
      ? []
      : roleEffects("write", { ...value, value: tail }, use, { forced: false, recursive: false });
  });
}

/** What `coverage run` takes is a program again. */
const COVERAGE: Model = {
  options: "--version --rcfile=loads",
  commands: {
    ...named("report debug", {
      options: `-m -i --show-missing --include= --omit= --skip-covered --no-skip-covered --skip-empty --sort= --format= --fail-under=
        --precision= --ignore-errors --contexts= --data-file=read --rcfile=loads -q --quiet`,
      operands: "data*",
      fixed: ["check"],
    }),
    ...named("run combine html xml json lcov annotate erase", always("project")),
  },
};

const DJANGO: Model = {
  options: "",
  commands: { ...named("runserver", always("network", "project")) },
  otherwise: always("project"),
};

export const PYTHON_TESTS: Readonly<Record<string, Model>> = {
  ...named("pytest py.test pytest-3", PYTEST),
  coverage: COVERAGE,
  ...named("coverage3 python3-coverage", COVERAGE),
  "django-admin": DJANGO,
  ...named("tox nox", { ...always("install", "project"), tells: "--version --help -h" }),
  ...named("behave robot locust", { ...always("project"), tells: "--version --help -h" }),
};
