import type { Model } from "./program-model.ts";
import { allOf, always, checks, named, noResponseFiles, shaped, writesUnless } from "./project-arguments.ts";

/** Settings in files are no code, but they may name more of them; as a text they are not understood. */
const PYTHON_SETTINGS = shaped({
  "--config": /^[^="']+\.(?:toml|cfg|ini)$/,
  "--config-file": /^[^="']+$/,
});

const RUFF = `-q -v -s -n -e --quiet --verbose --silent --no-cache --cache-dir=write --config=check --isolated --exclude= --extend-exclude=
  --force-exclude --no-force-exclude --respect-gitignore --no-respect-gitignore --stdin-filename=read --target-version= --preview
  --no-preview --extension= --diff --color= --line-length=`;
const ruff: Model = {
  options: RUFF,
  tells: "--version -V --help -h",
  commands: {
    check: {
      options: `${RUFF} --select= --extend-select= --ignore= --extend-ignore= --per-file-ignores= --extend-per-file-ignores= --fixable=
        --unfixable= --extend-fixable= --output-format= --statistics --show-files --show-settings --exit-zero
        --exit-non-zero-on-fix --show-fixes --no-show-fixes --no-fix --no-unsafe-fixes --unsafe-fixes --ignore-noqa --show-source
        --no-show-source -o:write --output-file=write --fix!write --fix-only!write --add-noqa=?!write -w!ask --watch!ask`,
      operands: "check*|.",
      fixed: ["check"],
      also: PYTHON_SETTINGS,
    },
    format: {
      options: `${RUFF} --check --output-format= --exit-non-zero-on-format --range=`,
      operands: "check*",
      fixed: ["check"],
      also: allOf(PYTHON_SETTINGS, writesUnless("--check", "--diff")),
    },
    ...named("rule linter config version help", {
      options: "-q -v --all --output-format= --output= -h --help",
      operands: "data*",
    }),
    analyze: {
      options: RUFF,
      commands: { graph: { options: RUFF, operands: "check*|.", fixed: ["check"] } },
    },
    clean: always("project"),
    server: always("ask"),
  },
  otherwise: { options: RUFF, operands: "check*", fixed: ["check"], also: PYTHON_SETTINGS },
};

const BLACK: Model = {
  options: `-l: -t: -S -C -q -v -c:code -x -W: --check --diff --color --no-color --fast --safe --line-length= --target-version= --pyi --ipynb
    --skip-string-normalization --skip-magic-trailing-comma --skip-source-first-line --preview --unstable --enable-unstable-feature=
    --required-version= --exclude= --extend-exclude= --force-exclude= --include= --stdin-filename= --workers= --quiet
    --verbose --config=check --no-cache --line-ranges= --code=code`,
  operands: "check*",
  tells: "--version --help -h",
  fixed: ["check"],
  also: allOf(PYTHON_SETTINGS, writesUnless("--check", "--diff")),
};

const ISORT: Model = {
  options: `-c -q -v -d -l: -w: -m: -p: -o: -s: --check --check-only --diff --stdout --profile= --line-length= --line-width= --multi-line= --project=
    --thirdparty= --skip= --skip-glob= --extend-skip= --filter-files --skip-gitignore --color --quiet --verbose --trailing-comma
    --use-parentheses --force-single-line-imports --sl --py= --python-version= --src=read --atomic!write --show-files
    --show-config --float-to-top --combine-as --sp=loads --settings-path=loads --settings-file=loads --settings=loads`,
  operands: "check*",
  fixed: ["check"],
  tells: "--version --help -h -V",
  also: writesUnless(
    "--check",
    "--check-only",
    "-c",
    "--diff",
    "-d",
    "--stdout",
    "--show-files",
    "--show-config",
  ),
};

const PYTHON_FORMATS: Readonly<Record<string, Model>> = { ruff, black: BLACK, isort: ISORT };

const FLAKE8: Model = {
  options: `-v -q -h -j: --verbose --quiet --count --color= --format= --max-line-length= --max-doc-length= --select= --extend-select= --ignore=
    --extend-ignore= --per-file-ignores= --exclude= --extend-exclude= --filename= --stdin-display-name= --hang-closing
    --indent-size= --disable-noqa --show-source --no-show-source --statistics --exit-zero --jobs= --max-complexity= --doctests
    --builtins= --isolated --benchmark --output-file=write --tee --config=loads --append-config=loads --enable-extensions=
    --require-plugins= --bug-report --docstring-convention= --import-order-style= --max-cognitive-complexity=`,
  operands: "check*",
  fixed: ["check"],
  tells: "--version --help -h",
};

const MYPY: Model = {
  options: `-p: -m: -v -h -n: -c:code --package= --module= --strict --ignore-missing-imports --show-error-codes --hide-error-codes --no-error-summary
    --pretty --no-pretty --no-incremental --incremental --python-version= --platform= --disallow-untyped-defs --disallow-incomplete-defs
    --disallow-untyped-calls --disallow-untyped-decorators --disallow-any-generics --disallow-any-explicit --disallow-any-expr
    --disallow-any-unimported --disallow-any-decorated --disallow-subclassing-any --check-untyped-defs --warn-unused-ignores
    --warn-unused-configs --warn-return-any --warn-redundant-casts --warn-unreachable --warn-no-return --no-warn-no-return
    --no-color-output --color-output --exclude= --exclude-gitignore --follow-imports= --follow-untyped-imports --explicit-package-bases
    --namespace-packages --no-namespace-packages --show-column-numbers --show-error-end --show-error-context --show-error-code-links
    --show-absolute-path --disable-error-code= --enable-error-code= --no-implicit-reexport --implicit-reexport
    --no-implicit-optional --implicit-optional --strict-equality --strict-optional --no-strict-optional --extra-checks --allow-redefinition
    --allow-untyped-globals --local-partial-types --no-site-packages --no-silence-site-packages --scripts-are-modules --skip-version-check
    --soft-error-limit= --verbose --output= -O: --sqlite-cache --skip-cache-mtime-checks --fast-module-lookup --files=check
    --config-file=check --cache-dir=write --junit-xml=write --any-exprs-report=write --html-report=write --txt-report=write
    --xml-report=write --cobertura-xml-report=write --linecount-report=write --lineprecision-report=write
    --python-executable=loads --custom-typeshed-dir=loads --custom-typing-module=loads --shadow-file=loads --command=code
    --install-types!install --non-interactive --pdb!ask --always-true= --always-false= --disable-memoryview-promotion`,
  operands: "check*",
  fixed: ["check"],
  tells: "--version -V --help -h",
  also: allOf(noResponseFiles, PYTHON_SETTINGS),
};

const PYLINT: Model = {
  options: `-E -j: -s: -r: -f: -d: -e: -v -h --errors-only --jobs= --disable= --enable= --max-line-length= --score= --reports= --output-format=
    --fail-under= --fail-on= --ignore= --ignore-patterns= --ignore-paths= --msg-template= --recursive= --py-version= --persistent=
    --verbose --exit-zero --list-msgs --list-msgs-enabled --help-msg= --max-args= --max-locals= --max-branches=
    --max-statements= --disable-all --extension-pkg-allow-list= --good-names= --min-similarity-lines= --confidence= --from-stdin
    --rcfile=loads --init-hook=code --load-plugins=loads --output=write --source-roots=check --generate-rcfile --generate-toml-config`,
  operands: "check*",
  fixed: ["check"],
  tells: "--version --help -h",
  also: shaped({
    "-f": /^(?:text|json2?|colorized|parseable|msvs|github|no-header)$/,
    "--output-format": /^(?:text|json2?|colorized|parseable|msvs|github|no-header)$/,
  }),
};

const PYRIGHT: Model = {
  options: `-p:check --project=check --outputjson --warnings --stats --verbose --level= --pythonversion= --pythonplatform= --skipunannotated
    --dependencies --ignoreexternal --threads=? -v:loads --venvpath=loads --venv-path=loads --pythonpath=loads
    --typeshedpath=loads -t:loads --createstub=!project --verifytypes= -w!ask --watch!ask --gitlaboutput --baselinefile=read --writebaseline!project`,
  operands: "check*",
  fixed: ["check"],
  tells: "--version --help -h",
};

export const PYTHON_LINTS: Readonly<Record<string, Model>> = {
  ...PYTHON_FORMATS,
  flake8: FLAKE8,
  ...named("mypy", MYPY),
  ...named("dmypy", { ...always("project"), tells: "--version --help" }),
  pylint: PYLINT,
  ...named("pyright basedpyright", PYRIGHT),
  ty: {
    commands: {
      check: checks(
        "--output-format= --error= --warn= --ignore= --exit-zero --python-version= --project=check --python=loads -q -v",
      ),
      version: {},
    },
  },
  bandit: checks(
    "-r -q -v -l -i -f: -x: -s: -t: -n: -a: -c:loads -p:loads --format= --exclude= --skip= --tests= --severity-level= --confidence-level= --recursive --quiet --exit-zero -o:write --output=write",
  ),
  pydocstyle: checks(
    "-v -d -s -e --select= --ignore= --convention= --count --explain --match= --add-ignore=",
  ),
  ...named(
    "pycodestyle pep8",
    checks(
      "-v -q --max-line-length= --select= --ignore= --exclude= --count --statistics --show-source --first --diff",
    ),
  ),
  pyflakes: checks(""),
  vulture: checks("--min-confidence= --exclude= --ignore-names= --sort-by-size --make-whitelist -v"),
  radon: {
    options: "--config=loads",
    commands: named(
      "cc mi raw hal",
      checks(
        "-s -a -j -n: -x: -e: -i: --min= --max= --show-complexity --average --total-average --exclude= --json -O:write --output-file=write",
      ),
    ),
  },
  autopep8: {
    ...checks(
      "-i!write --in-place!write -r -d -a -v -j: --diff --recursive --aggressive --exit-code --max-line-length= --select= --ignore= --exclude=",
    ),
  },
  yapf: {
    ...checks(
      "-i!write --in-place!write -r -d -q -p --diff --recursive --quiet --parallel --style=loads -e: --exclude=",
    ),
  },
  ...named("docformatter pyupgrade autoflake unify", { ...always("project"), tells: "--version --help -h" }),
};
