import type { Model } from "../model.ts";
import { allOf, always, forwards, named, shaped, writesHereWith, writesUnless } from "./parts.ts";

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
