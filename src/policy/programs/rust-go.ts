import type { Found, Model, Use } from "./program-model.ts";
import {
  allOf,
  always,
  forwards,
  named,
  only,
  shaped,
  verbs,
  writesHereWith,
  writesUnless,
} from "./project-arguments.ts";

const GLOBALS = `-q -v -h --quiet --verbose --color= --offline --locked --frozen -C:loads --config=loads -Z:loads --list --explain=`;
const PLACES = `--manifest-path=check --target-dir=write --lockfile-path=write`;
const PACKAGES = `-p: --package= --workspace --all --exclude= --features= -F: --all-features --no-default-features`;
const TARGETS = `--lib --bins --bin= --examples --example= --tests --test= --benches --bench= --all-targets --doc`;
const BUILD = `${GLOBALS} ${PLACES} ${PACKAGES} ${TARGETS} --release -r --profile= --target= --message-format= --no-fail-fast --no-run -j:
  --jobs= --keep-going --ignore-rust-version --timings --future-incompat-report --unit-graph --no-deps`;
/** A target that is a file describes how to link. */
const TRIPLE = shaped({ "--target": /^[a-z0-9_]+(?:-[a-z0-9_.]+){1,4}$/ });

const tells: Model = {
  options: `${GLOBALS} ${PLACES} ${PACKAGES} --format-version= --no-deps --filter-platform= -i: --invert= --depth= -d --duplicates -e: --edges=
    --prefix= --no-dedupe --charset= -f: --format= --target= --prune= --message-format=`,
  operands: "data*",
  fixed: ["settings"],
};

const CARGO: Model = {
  options: GLOBALS,
  tells: "--version -V --help -h --list -vV",
  commands: {
    test: {
      options: BUILD,
      operands: "data*",
      fixed: ["check"],
      also: allOf(TRIPLE, forwards("cargo test --")),
    },
    check: { options: BUILD, fixed: ["check"], also: TRIPLE },
    clippy: {
      options: `${BUILD} --fix --allow-dirty --allow-staged --allow-no-vcs`,
      operands: "data*",
      fixed: ["check"],
      also: allOf(TRIPLE, writesHereWith("--fix"), forwards("cargo clippy --")),
    },
    fmt: {
      options: `${GLOBALS} ${PLACES} -p: --package= --all --check --message-format=`,
      operands: "data*",
      fixed: ["check"],
      also: (use) => {
        const words = forwards("cargo fmt --")(use);
        const checks = use.operands.some(({ kind, value }) => kind === "literal" && value === "--check");
        return checks ? words : [...words, ...writesUnless("--check")({ ...use, operands: [] })];
      },
    },
    nextest: {
      options: GLOBALS,
      commands: {
        ...named("run list", {
          options: `${BUILD} -E: --filterset= --filter-expr= --run-ignored= --retries= --test-threads= --failure-output= --success-output=
            --status-level= --final-status-level= --partition= --no-capture --nocapture --fail-fast --max-fail= --no-tests= -P: --hide-progress-bar
            --show-progress= --cargo-quiet -T: --config-file=loads --tool-config-file=loads`,
          operands: "data*",
          fixed: ["check"],
          also: allOf(TRIPLE, forwards("cargo test --")),
        }),
        ...named("show-config", tells),
        ...named("self", always("install")),
      },
    },
    ...named("deny", {
      options: `${GLOBALS} ${PLACES} --all-features --workspace`,
      commands: {
        check: {
          options: `${GLOBALS} -A: -W: -D: -c:loads --hide-inclusion-graph`,
          operands: "data*",
          fixed: ["check"],
          also: network,
        },
      },
    }),
    ...named("machete", {
      options: `${GLOBALS} --with-metadata --skip-target-dir --fix!write`,
      operands: "check*|.",
      fixed: ["check"],
    }),
    ...named("metadata tree locate-project pkgid read-manifest verify-project version help", tells),
    ...named(
      "build run bench doc rustc rustdoc fix expand llvm-cov tarpaulin miri package clean",
      always("project"),
    ),
    ...named(
      "install uninstall add remove update fetch vendor generate-lockfile binstall",
      always("install"),
    ),
    ...named("publish login logout owner yank search info audit outdated", always("network")),
    ...named("new init", always("ask")),
  },
  aliases: { t: "test", c: "check", b: "build", r: "run", d: "doc", rm: "remove" },
};

/** Advisories come from the network. */
function network(use: Parameters<NonNullable<Model["also"]>>[0]): ReturnType<NonNullable<Model["also"]>> {
  const local =
    use.operands.length > 0 && use.operands.every(({ value }) => /^(?:licenses|bans|sources)$/.test(value));
  return local ? [] : [{ kind: "network", hosts: [] }];
}

const RUSTFMT: Model = {
  options: `-l -q -v --check --edition= --style-edition= --color= --config=loads --config-path=loads --emit= --files-with-diff --quiet --verbose
    --print-config=loads --backup`,
  operands: "check*",
  tells: "--version -V --help -h",
  fixed: ["check"],
  also: writesUnless("--check"),
};

export const RUST: Readonly<Record<string, Model>> = {
  cargo: CARGO,
  "cargo-clippy": { tells: "--version -V --help", ...always("ask") },
  "cargo test --": {
    options: `-q -h -Z:loads --nocapture --no-capture --test-threads= --exact --ignored --include-ignored --list --skip= --show-output --quiet
      --test --bench --color= --format= --force-run-in-process --exclude-should-panic --shuffle --shuffle-seed=
      --report-time --ensure-time --logfile=write`,
    operands: "data*",
  },
  "cargo clippy --": {
    options: `-D: -W: -A: -F: -C:loads -Z:loads --deny= --warn= --allow= --forbid= --cap-lints= --no-deps -v`,
  },
  "cargo fmt --": {
    options:
      "--check -l -q -v --color= --edition= --style-edition= --config=loads --config-path=loads --emit=",
    operands: "check*",
  },
  rustfmt: RUSTFMT,
  rustc: {
    options: `-v -V --version -h --print= --explain= --verbose --edition= --crate-type= --crate-name= --test -O -g -A: -W: -D: -F: --cfg= --check-cfg= --color=
      --error-format= --cap-lints= --target= --emit=write -o:write --out-dir=write -C:loads -Z:loads -L:loads -l:loads --extern=loads`,
    operands: "project",
    tells: "--version -V -vV -Vv --help -h",
    also: allOf(TRIPLE, shaped({ "--print": /^[\w-]+$/ })),
  },
  rustup: {
    options: "-v -q --verbose --quiet",
    tells: "--version -V --help -h",
    commands: {
      ...named("show which help", { options: "-v --verbose --toolchain=", operands: "data*" }),
      ...named("toolchain component target override", {
        options: "--toolchain= --installed -v -q",
        commands: {
          list: { options: "--toolchain= --installed -v -q --verbose --quiet" },
          ...named("install add update remove uninstall link set unset", always("install")),
        },
      }),
      ...named("install update upgrade uninstall self default check set completions", always("install")),
      ...named("run doc man", always("ask", "project")),
    },
  },
};

const GO_BUILD = `-C=in -a -n -p= -race -msan -asan -cover -covermode= -coverpkg= -v -work -x -mod= -tags= -trimpath -buildvcs=? -json
  -modcacherw -toolexec=loads -overlay=loads -modfile=loads -pkgdir=loads -ldflags=loads -gcflags=loads -asmflags=loads
  -gccgoflags=loads -compiler=loads -buildmode=loads -installsuffix=loads -linkshared!project -pgo=loads`;
const TEST = `${GO_BUILD} -run= -skip= -count= -short -timeout= -failfast -list= -parallel= -cpu= -shuffle= -bench= -benchmem -benchtime= -fuzz=
  -fuzztime= -fuzzminimizetime= -vet= -fullpath -blockprofilerate= -memprofilerate= -mutexprofilefraction= -i -c!project
  -o=write -coverprofile=write -cpuprofile=write -memprofile=write -blockprofile=write -mutexprofile=write
  -trace=write -outputdir=write -exec=loads -artifacts!project -args!ask`;
/** Analysers can be chosen by name; programs that analyse cannot. */
const VET = `${GO_BUILD} -c= -fix!project -diff -vettool=loads -appends -asmdecl -assign -atomic -bools -buildtag -buildtags -cgocall -composites=?
  -copylocks=? -defers -directive -errorsas -framepointer -httpresponse -ifaceassert -loopclosure=? -lostcancel=? -nilfunc=? -printf=?
  -printf.funcs= -shadow=? -shift -sigchanyzer -slog -stdmethods=? -stdversion -stringintconv -structtag=? -testinggoroutine
  -tests=? -timeformat -unmarshal -unreachable=? -unsafeptr=? -unusedresult=? -unusedresult.funcs= -unusedwrite -waitgroup -hostport`;

const MODULES = only({ "-mod": "readonly vendor" });

/** `name@version` is fetched. */
const fetched = (use: Use): readonly Found[] =>
  use.operands
    .filter(({ value }) => value.includes("@"))
    .map(({ span }) => ({ kind: "network", hosts: [], span }));

const flags = (model: Model): Model => ({ ...model, singleDash: true, tells: "-h -help --help" });
const goTells = flags({ options: `-C=in -json=? -m -f= -n -v`, operands: "data*", fixed: ["settings"] });

const GO: Model = {
  options: "-C=in",
  singleDash: true,
  tells: "-h --help -help",
  commands: {
    test: flags({ options: TEST, operands: "check*", fixed: ["check"], also: allOf(MODULES, fetched) }),
    vet: flags({ options: VET, operands: "check*", fixed: ["check"], also: allOf(MODULES, fetched) }),
    list: flags({
      options: `${GO_BUILD.replace("-json", "-json=?")} -m -f= -deps -test -e -find -compiled -export!project -reuse=read -u!network -versions!network
        -retracted!network`,
      operands: "data*",
      fixed: ["settings"],
      also: allOf(MODULES, fetched),
    }),
    env: flags({ options: "-json -changed -w!ask -u!ask", operands: "data*", fixed: ["settings"] }),
    doc: flags({
      options: "-C=in -all -src -short -u -c -cmd -ex -http!network",
      operands: "data*",
      fixed: ["settings"],
    }),
    version: flags({ options: "-m -v -json", operands: "read*" }),
    help: { operands: "data*" },
    fmt: flags({ options: "-n -x -mod=", operands: "check*", fixed: ["check"], also: formats }),
    mod: {
      singleDash: true,
      commands: {
        ...named("graph why verify", { ...goTells, also: fetched }),
        edit: flags({ options: "-json -print", operands: "read", fixed: ["settings"] }),
        ...named("download tidy vendor init", always("install")),
      },
    },
    tool: { singleDash: true, commands: {}, options: "-n" },
    ...named("build run generate fix clean", always("project")),
    ...named("install get work", always("install")),
    ...named("bug telemetry", always("network")),
  },
};

function formats({ options, folder }: Use): readonly Found[] {
  return options.some(({ name }) => name === "-n") ? [] : [{ kind: "write", path: folder }];
}

const gofmt = (more: string): Model =>
  flags({
    options: `-l -d -s -e -w!write -r= -cpuprofile=write -memprofile=write ${more}`,
    operands: "read*",
  });

const GOLANGCI: Model = {
  options:
    "-v --verbose --color= -j: --concurrency= -h --help --cpu-profile-path=write --mem-profile-path=write --trace-path=write",
  tells: "--version --help -h",
  commands: {
    run: {
      options: `-v -j: -c:loads -E: -D: -p: -e: --verbose --color= --config=loads --no-config --timeout= --disable-all --enable-all --enable= --disable=
        --enable-only= --default= --fast --fast-only --out-format= --tests=? --build-tags= --new --new-from-rev= --new-from-merge-base=
        --new-from-patch=read --concurrency= --max-issues-per-linter= --max-same-issues= --show-stats --issues-exit-code= --presets=
        --sort-results --print-issued-lines=? --print-linter-name=? --whole-files --skip-dirs= --skip-files= --exclude= --uniq-by-line=?
        --allow-parallel-runners --allow-serial-runners --modules-download-mode= --path-prefix= --path-mode= --go= --fix!project
        --cpu-profile-path=write --mem-profile-path=write --trace-path=write --output.text.path=write --output.json.path=write`,
      operands: "check*",
      fixed: ["check"],
      // Behind a colon stands a file.
      also: shaped({ "--out-format": /^[\w,-]+$/ }),
    },
    ...named("version help", { options: "--format= --short --json", operands: "data*", fixed: ["settings"] }),
    ...named("linters formatters", {
      options: "--format= --short --json -c:loads --config=loads",
      operands: "data*",
      fixed: ["check"],
    }),
    ...named("fmt migrate custom cache config completion", always("project")),
  },
};

const lint = (options: string): Model =>
  flags({ options: `${options} -config=loads`, operands: "check*", fixed: ["check"] });

export const GO_TOOLS: Readonly<Record<string, Model>> = {
  go: GO,
  gofmt: gofmt(""),
  gofumpt: gofmt("-extra -lang= -modpath="),
  goimports: gofmt("-local= -srcdir=read -format-only -v"),
  "golangci-lint": GOLANGCI,
  staticcheck: lint("-checks= -f= -tests=? -go= -tags= -explain= -fail= -show-ignored -list-checks"),
  golint: lint("-min_confidence= -set_exit_status"),
  revive: lint("-formatter= -exclude= -set_exit_status -max_open_files="),
  errcheck: lint("-blank -asserts -ignoretests -exclude=read -verbose -abspath -tags="),
  govulncheck: always("network"),
  gotestsum: {
    options: `-f: --format= --format-hide-empty-pkg --no-color --no-summary= --hide-summary= --packages= --rerun-fails=? --rerun-fails-max-failures= --max-fails=
      --junitfile=write --jsonfile=write --post-run-command=shell --raw-command!ask --watch!ask --debug`,
    operands: "check*",
    fixed: ["check"],
    // Words of their own for `go test`.
    also: shaped({ "--packages": /^[^-\s]\S*(?:\s+[^-\s]\S*)*$/ }),
  },
  ginkgo: flags({
    options: `-r -v -vv -p -race -cover -trace -focus= -skip= -label-filter= -procs= -nodes= -timeout= -fail-fast -keep-going -randomize-all -seed=
      -dry-run -no-color -succinct -tags= -repeat= -flake-attempts= -o=write -output-dir=write -coverprofile=write -junit-report=write
      -exec=loads -toolexec=loads -until-it-fails!ask`,
    operands: "check*",
    fixed: ["check"],
    also: verbs("bootstrap generate unfocus watch build"),
  }),
  gopls: always("ask"),
  delve: always("project"),
  dlv: always("project"),
};
