import { fixedEffect } from "./argument-roles.ts";
import type { Found, Model, Use } from "./program-model.ts";
import {
  addresses,
  allOf,
  type Also,
  always,
  checks,
  named,
  only,
  shaped,
  verbs,
  writesUnless,
} from "./project-arguments.ts";

const project = (tells = "--version -version -v -V --help -h"): Model => ({
  ...always("project"),
  tells,
});

const MIX: Model = {
  fixed: ["project"],
  tells: "--version -v --help -h",
  commands: {
    test: checks(
      `--failed --stale --only= --exclude= --include= --seed= --trace --max-failures= --max-cases= --slowest= --color --no-color --cover --force --raise
       --no-compile --no-deps-check --no-start --partitions= --timeout= --warnings-as-errors --exit-status= --repeat-until-failure= --slowest-modules=
       --preload-modules --no-archives-check --no-elixir-version-check --profile-require= --formatter=loads --require=loads --export-coverage=write
       --breakpoints!ask -b!ask --listen-on-stdin!ask`,
    ),
    format: checks(
      "--check-formatted --check-equivalent --dry-run --no-exit --dot-formatter=loads --stdin-filename=read --migrate!write",
      {
        also: writesUnless("--check-formatted", "--dry-run"),
      },
    ),
    credo: checks(
      "--strict --format= --all --only= --ignore= --checks= --min-priority= --mute-exit-status --verbose --config-file=loads -C: --config-name= --files-included= --files-excluded= -a -A",
      { also: verbs("gen.config gen.check") },
    ),
    ...named("deps help deps.tree xref app.tree", {
      options: "--all --only= --exclude= --format=",
      also: only({ "--format": "pretty plain stats cycles" }),
      operands: "data*",
      fixed: ["check"],
    }),
    ...named(
      "deps.get deps.update deps.clean deps.unlock local.hex local.rebar archive.install hex.info",
      always("install"),
    ),
  },
  otherwise: always("project"),
};

/** `test` alone is the project's tests; all else is its code. */
const testOrProject = ({ operands, folder, program }: Use): readonly Found[] => {
  const [first, ...more] = operands;
  const tests = more.length === 0 && first?.kind === "literal" && first.value === "test";
  return [fixedEffect(tests ? "check" : "project", folder, program)];
};

const ZIG: Model = {
  options: "",
  tells: "version --help -h help env targets",
  commands: {
    ...named("version env targets zen libc help", { options: "-h", fixed: ["settings"] }),
    test: checks(
      "--test-filter= --test-name-prefix= --test-no-exec -O= -target= -fsummary --color= -femit-bin=write --cache-dir=write --global-cache-dir=write --test-cmd=loads --test-runner=loads --zig-lib-dir=loads -I=loads -L=loads -l=loads",
      { singleDash: true, also: shaped({ "-O": /^\w+$/, "-target": /^[\w.-]+$/ }) },
    ),
    "ast-check": checks("--color= -t"),
    fmt: checks("--check --color= --ast-check --exclude= --stdin", {
      also: writesUnless("--check", "--stdin"),
    }),
    build: {
      options:
        "--summary= -D:loads --verbose -p:write --prefix=write --build-file=loads --fetch!network --color= -j:",
      operands: "data*",
      also: testOrProject,
    },
    ...named("run build-exe build-lib build-obj cc c++ translate-c init ar", always("project")),
    fetch: always("install"),
  },
};

const HASKELL_TEST = `--fast --pedantic -j: --jobs= --no-run-tests --coverage --color= --silent -v --verbose --test-arguments=loads --ta=loads --exec=loads --flag=
  --ghc-options=loads --stack-yaml=loads --work-dir=write --system-ghc --no-terminal --test-show-details= --enable-tests --test-options=loads
  --with-ghc=loads --with-compiler=loads -w:loads --project-file=loads --builddir=write --offline`;
const haskell = (more: Readonly<Record<string, Model>>): Model => ({
  options:
    "--silent --no-terminal --color= --offline --stack-yaml=loads --config-file=loads --project-file=loads",
  tells: "--version --numeric-version -V --help -h",
  commands: {
    test: checks(HASKELL_TEST),
    ...named("build run exec bench repl haddock clean script runghc ghc", always("project")),
    ...named("install update setup upgrade init new fetch unpack get freeze", always("install")),
    ...more,
  },
});

const ELM: Model = checks("--fuzz= --seed= --report= --watch!ask --compiler=loads --project=check", {
  also: verbs("init install make"),
});

export const OTHER_LANGUAGES: Readonly<Record<string, Model>> = {
  mix: MIX,
  ...named("elixir erlc escript elixirc", project("--version -v --help")),
  rebar3: {
    options: "",
    tells: "version --version help",
    commands: {
      ...named(
        "eunit ct dialyzer xref lint",
        checks("--suite= --case= --module= --verbose -v --cover -c", { operands: "" }),
      ),
      ...named("deps tree version help", { operands: "data*", fixed: ["check"] }),
    },
    otherwise: always("project"),
  },
  zig: ZIG,
  stack: haskell({
    ...named("path ls query", { options: "", operands: "data*", fixed: ["check"] }),
    ...named("hoogle templates", always("network")),
  }),
  cabal: haskell({ ...named("info list outdated check", always("network")) }),
  hlint: checks(
    "-j: -q -v -s -c -i: --ignore= --color= --json --cross --threads= --hint=loads -h:loads --report=?write!project --refactor!project --refactor-options=loads --with=loads --cpp-file=loads -X: --no-summary",
    { tells: "--version -V --help -?" },
  ),
  ormolu: checks("-m: --mode= --check-idempotence -o:loads --ghc-opt=loads -c", {
    also: shaped({ "-m": /^(?:check|stdout)$/, "--mode": /^(?:check|stdout)$/ }),
  }),
  ...named("fourmolu stylish-haskell", project()),
  ...named("runghc runhaskell ghcup haskell-language-server", project()),
  "elm-test": ELM,
  ...named("elm spago purs", project()),
  ...named("gap nimble shards crystal-spec nimlangserver", project()),
  ...named("forge cast anvil hardhat truffle foundryup brownie", {
    ...always("network", "project"),
    tells: "--version -V --help -h",
  }),
  nixfmt: checks("-c --check -q -s -v --quiet --strict --verify -w: --width= --filename=", {
    also: writesUnless("-c", "--check"),
  }),
  ...named(
    "alejandra nixpkgs-fmt",
    checks("-c --check -q -e: --exclude= -t: --threads=", { also: writesUnless("-c", "--check") }),
  ),
  taplo: {
    options: "--colors= -v --verbose --log-spans",
    tells: "--version -V --help -h",
    commands: {
      ...named(
        "check lint",
        checks(
          "-c:loads --config=loads --no-auto-config --schema=!network --no-schema --default-schema-catalogs!network --cache-path=write --colors=",
        ),
      ),
      ...named(
        "format fmt",
        checks(
          "--check --diff -c:loads --config=loads --no-auto-config -o: --option= -f --force --colors= --stdin-filepath=read",
          { also: writesUnless("--check") },
        ),
      ),
      get: {
        options: "-f:read --file-path=read -o: --output-format= -s --strip-newline --separator=",
        operands: "data",
      },
    },
  },
};

const PROVE = checks(
  `-l -b -r -v -q -Q -s -f -m -o -c -w -t -T -W -j: -h -H --lib --blib --recurse --verbose --quiet --QUIET --shuffle --failures --comments --merge --color --nocolor --count
   --nocount --jobs= --timer --directives --normalize --ignore-exit --parse --trap --ext= --reverse --rules= --norc --dry -D --state=!project
   -a:write --archive=write -e:loads --exec=loads -I:loads -M:loads -P:loads -S:loads --harness=loads --formatter=loads --source=loads --rc=loads --statefile=write
   --tapversion=`,
);

export const SCRIPTING: Readonly<Record<string, Model>> = {
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

/** Linters that only read: what they are given, and settings that are no code. */
const reads = (options: string, more: Partial<Model> = {}): Model => ({
  options,
  operands: "read*",
  tells: "--version --help -h",
  ...more,
});
/** Rules as a text, which name no file of more rules. */
const YAML_RULES = /^(?![\s\S]*extends:\s*["']?[./~])[\s\S]*$/;

/** What it finds is tried out at the services that it is for. */
const verified: Also = ({ options }) =>
  options.some(({ name }) => name === "-n" || name === "--no-verify") ? [] : [{ kind: "network", hosts: [] }];

const TERRAFORM: Model = {
  options: "-chdir=in",
  singleDash: true,
  tells: "version -version --version -v -help --help -h",
  commands: {
    fmt: {
      options: "-check -diff -list=? -recursive -no-color -write=",
      singleDash: true,
      operands: "check*",
      fixed: ["settings"],
      also: writesUnless("-check"),
    },
    // It starts programs that were downloaded.
    validate: always("project"),
    version: { options: "-json", singleDash: true },
    ...named("providers graph output show console state workspace", always("network", "project")),
    ...named(
      "init get login logout plan apply destroy import refresh taint untaint test force-unlock metadata modules query",
      always("network", "project"),
    ),
  },
};

export const TEXT_LINTS: Readonly<Record<string, Model>> = {
  shellcheck: reads(
    `-a -x -s: -S: -e: -i: -o: -f: -C? -W: -P:read --check-sourced --color=? --include= --exclude= --extended-analysis= --format= --list-optional --norc --rcfile=loads
     --enable= --source-path=read --shell= --severity= --wiki-link-count= --external-sources`,
  ),
  hadolint: reads(
    `-f: -t: --ignore= --format= --failure-threshold= --no-color --no-fail --error= --warning= --info= --style= --trusted-registry= --require-label= --strict-labels
     --disable-ignore-pragma --verbose --file-path-in-report= -c:loads --config=loads`,
  ),
  yamllint: reads(
    "-d: -f: -s --config-data= --format= --strict --no-warnings --list-files -c:loads --config-file=loads",
    {
      also: shaped({ "-d": YAML_RULES, "--config-data": YAML_RULES }),
    },
  ),
  actionlint: {
    ...checks(
      "-no-color -color -oneline -verbose -debug -format= -ignore= -shellcheck=loads -pyflakes=loads -config-file=loads -init-config!project -stdin-filename= -version",
      {
        singleDash: true,
        tells: "--version -version --help -help -h",
      },
    ),
  },
  shfmt: reads(
    `-l -d -w!write -s -i: -p -f --list --diff --write!write --simplify --indent= --posix --find --language-dialect= --case-indent
     --binary-next-line --space-redirects --keep-padding --func-next-line --filename= --minify --to-json --from-json --apply-ignore`,
  ),
  terraform: TERRAFORM,
  tofu: TERRAFORM,
  tflint: checks(
    "--recursive --format= -f: --no-color --color --minimum-failure-severity= --enable-rule= --disable-rule= --only= --chdir=in --filter= --fix!project --init!install -c:loads --config=loads --var-file=loads --var=loads --call-module-type=",
  ),
  "ansible-lint": checks(
    "-q -v -p -x: -t: -w: -f: --offline --nocolor --strict --profile= --exclude= --skip-list= --warn-list= --tags= --format= -L -T -R -r:loads -c:loads --config-file=loads --rules-dir=loads --project-dir=loads --fix=?!write --write=?!write -i:read",
    { operands: "check*|." },
  ),
  "ansible-playbook": always("network", "project"),
  "cfn-lint": checks(
    "-t:check --template=check -r: -i: -e --regions= --ignore-checks= --include-checks= --format= -f: --non-zero-exit-code= -a:loads --append-rules=loads --config-file=loads -o:loads --override-spec=loads --output-file=write -u!network --update-specs!network",
  ),
  buf: {
    options: "--debug --timeout= --log-format=",
    tells: "--version --help -h",
    commands: {
      ...named(
        "lint build breaking ls-files",
        checks(
          "--error-format= --path=check --exclude-path= --against=loads --config=loads -o:write --output=write --format=",
          { also: addresses },
        ),
      ),
      format: checks(
        "-d --diff --exit-code --path=check --exclude-path= --error-format= -w!write --write!write -o:write --output=write --config=loads",
      ),
      generate: always("project", "network"),
      ...named("push registry mod dep curl login beta", always("network")),
    },
  },
  protoc: { ...always("project"), tells: "--version --help -h" },
  sqlfluff: {
    options: "",
    tells: "--version --help -h",
    commands: {
      lint: checks(
        "-d: -q -v -n -f: -p: -r: -e: --dialect= --format= --rules= --exclude-rules= --templater= --processes= --nocolor --disable-progress-bar --nofail --ignore= --config=loads --write-output=write --library-path=loads",
      ),
      ...named("rules dialects version", { operands: "data*", fixed: ["settings"] }),
      ...named("fix format", always("project")),
      ...named("parse render", checks("-d: --dialect= --config=loads")),
    },
  },
  codespell: checks(
    "-q: -s -c -f -H -d -x:read -I:read -L: -S: -C: -A: -B: --skip= --ignore-words-list= --ignore-words=read --quiet-level= --summary --count --check-filenames --check-hidden --builtin= --context= -i: --dictionary=read -D:read -w!write --write-changes!write --config=loads --toml=loads",
    { operands: "check*|." },
  ),
  typos: checks(
    "-q -v -j: --format= --hidden --no-ignore --exclude= --files --sort --color= --locale= --isolated --diff -w!write --write-changes!write --config=loads -c:loads --write-file=write --no-unicode --force-exclude",
    { operands: "check*|." },
  ),
  vale: checks(
    "--output= --minAlertLevel= --no-exit --glob= --no-wrap --no-global --ignore-syntax --filter= --ext= --config=loads --sources=loads",
    { also: allOf(only({ "--output": "CLI JSON line" }), verbs("sync fix")) },
  ),
  ...named(
    "editorconfig-checker ec",
    checks(
      "-v -no-color -exclude= -disable-indentation -disable-trim-trailing-whitespace -disable-end-of-line -disable-insert-final-newline -disable-max-line-length -ignore-defaults -verbose -debug -format= -dry-run -init!project -config=loads",
      { singleDash: true },
    ),
  ),
  "detect-secrets": {
    options: "-v",
    tells: "--version --help -h",
    commands: {
      scan: checks(
        "--all-files --exclude-files= --exclude-lines= --no-verify --only-verified!network --list-all-plugins --string= --baseline=write -p:loads --plugin=loads -f:loads --filter=loads --force-use-all-plugins --only-allowlisted -n",
        { also: verified },
      ),
      audit: always("ask"),
    },
  },
  gitleaks: {
    options: "",
    tells: "version --version --help -h",
    commands: {
      ...named(
        "detect protect dir git stdin",
        checks(
          "-v -s:check --source=check --no-git --no-banner --no-color --redact=? --verbose --log-opts=loads --exit-code= --max-target-megabytes= --staged --config=loads -c:loads -r:write --report-path=write -f: --report-format= --report-template=loads -b:read --baseline-path=read --log-level= -l:",
        ),
      ),
      version: {},
    },
  },
  ...named("trivy grype syft snyk semgrep checkov tfsec kubeval kubeconform", {
    ...always("network"),
    tells: "--version -v version --help -h",
  }),
  pandoc: {
    ...always("ask"),
    tells:
      "--version -v --help -h --list-input-formats --list-output-formats --list-extensions --list-highlight-languages",
  },
};
