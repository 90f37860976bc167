import type { Found, Model, Use } from "../model.ts";
import { fixedEffect } from "../roles.ts";
import { always, checks, named, only, shaped, verbs, writesUnless } from "./parts.ts";

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
