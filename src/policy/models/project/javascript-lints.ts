import type { Model } from "../model.ts";
import { allOf, always, named, only, verbs, writesHereWith, writesUnless } from "./parts.ts";

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
