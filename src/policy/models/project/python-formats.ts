import type { Model } from "../model.ts";
import { allOf, always, named, shaped, writesUnless } from "./parts.ts";

/** Settings in files are no code, but they may name more of them; as a text they are not understood. */
export const PYTHON_SETTINGS = shaped({
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

export const PYTHON_FORMATS: Readonly<Record<string, Model>> = { ruff, black: BLACK, isort: ISORT };
