import type { Found, Model, Use } from "../model.ts";
import { allOf, always, named, only, shaped, verbs } from "./parts.ts";

const BUILD = `-C=in -a -n -p= -race -msan -asan -cover -covermode= -coverpkg= -v -work -x -mod= -tags= -trimpath -buildvcs=? -json
  -modcacherw -toolexec=loads -overlay=loads -modfile=loads -pkgdir=loads -ldflags=loads -gcflags=loads -asmflags=loads
  -gccgoflags=loads -compiler=loads -buildmode=loads -installsuffix=loads -linkshared!project -pgo=loads`;
const TEST = `${BUILD} -run= -skip= -count= -short -timeout= -failfast -list= -parallel= -cpu= -shuffle= -bench= -benchmem -benchtime= -fuzz=
  -fuzztime= -fuzzminimizetime= -vet= -fullpath -blockprofilerate= -memprofilerate= -mutexprofilefraction= -i -c!project
  -o=write -coverprofile=write -cpuprofile=write -memprofile=write -blockprofile=write -mutexprofile=write
  -trace=write -outputdir=write -exec=loads -artifacts!project -args!ask`;
/** Analysers can be chosen by name; programs that analyse cannot. */
const VET = `${BUILD} -c= -fix!project -diff -vettool=loads -appends -asmdecl -assign -atomic -bools -buildtag -buildtags -cgocall -composites=?
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
const tells = flags({ options: `-C=in -json=? -m -f= -n -v`, operands: "data*", fixed: ["settings"] });

const GO: Model = {
  options: "-C=in",
  singleDash: true,
  tells: "-h --help -help",
  commands: {
    test: flags({ options: TEST, operands: "check*", fixed: ["check"], also: allOf(MODULES, fetched) }),
    vet: flags({ options: VET, operands: "check*", fixed: ["check"], also: allOf(MODULES, fetched) }),
    list: flags({
      options: `${BUILD.replace("-json", "-json=?")} -m -f= -deps -test -e -find -compiled -export!project -reuse=read -u!network -versions!network
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
        ...named("graph why verify", { ...tells, also: fetched }),
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
