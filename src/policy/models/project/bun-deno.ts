import type { Model } from "../model.ts";
import { programEffects } from "./interpreters.ts";
import { addresses, allOf, always, named, only, writesUnless } from "./parts.ts";
import { REPORTERS } from "./runner-names.ts";
import { runsScript } from "./scripts.ts";

const BUN_OPTIONS = `--silent --cwd=in --bun -b --smol --no-install --no-clear-screen --config=loads -c:loads -r:loads --preload=loads
  --require=loads --import=loads --env-file=loads --install=loads --hot!ask --watch!ask --inspect=?!network
  --filter= --if-present -e:code --eval=code -p:code --print=code`;
const bunTells: Model = { options: "--all -a --json", operands: "data*", fixed: ["settings"] };

const BUN: Model = {
  options: BUN_OPTIONS,
  tells: "--version -v --help -h --revision",
  commands: {
    test: {
      options: `${BUN_OPTIONS} -t: --test-name-pattern= --timeout= --bail=? --coverage --only --todo --rerun-each= --seed= --randomize
        --concurrent --max-concurrency= --only-failures --pass-with-no-tests --dots
        --coverage-reporter= --coverage-dir=write --reporter= --reporter-outfile=write -u!project --update-snapshots!project`,
      operands: "check*",
      fixed: ["check"],
      also: only({ "--reporter": REPORTERS }),
    },
    pm: {
      commands: {
        ...named("ls list bin hash why", bunTells),
        ...named(
          "trust untrusted migrate pack default-trusted version cache whoami pkg view",
          always("install"),
        ),
      },
    },
    ...named("why", bunTells),
    run: { options: BUN_OPTIONS, strict: true, operands: "data*", also: runsScript },
    ...named("install i add a remove rm update link unlink patch ci", always("install")),
    ...named("x create c init upgrade", always("install", "project")),
    ...named("outdated audit publish info", always("network")),
    ...named("build exec repl", always("project")),
    ...named("help", bunTells),
  },
  otherwise: { reads: (use) => programEffects(use.args[0], use) },
};

const DENO_OPTIONS = `-q --quiet --no-config --no-lock --lock=write --frozen=? --cached-only --no-remote --no-npm --unstable --node-modules-dir=?
  --vendor=? --no-check=? --ignore= --json --log-level= -L: -c:loads --config=loads --import-map=loads
  --cert=loads --preload=loads --import=loads --require=loads -r?!network --reload=?!network --watch=?!ask
  --inspect=?!network --inspect-brk=?!network --env-file=?loads --location=host --ext= --seed= --v8-flags=!ask`;
const GRANTS = `--allow-read=? -R --allow-write=?!project -W!project --allow-env=? -E --allow-sys=? -S --allow-hrtime --allow-import=?!network
  --deny-read=? --deny-write=? --deny-net=? --deny-env=? --deny-sys=? --deny-run=? --deny-ffi=? --no-prompt
  --allow-net=?!project -N!project --allow-run=?!project --allow-ffi=?!project --allow-all!project -A!project`;

const DENO: Model = {
  options: DENO_OPTIONS,
  tells: "--version -V -v --help -h",
  // Alone it reads a program from stdin.
  fixed: ["input"],
  commands: {
    test: {
      options: `${DENO_OPTIONS} ${GRANTS} --filter= --fail-fast=? --parallel --coverage=?write --doc --no-run --trace-leaks --permit-no-files
        --shuffle=? --reporter= --junit-path=write --coverage-raw-data-only --clean --hide-stacktraces --type-check=? --check=?`,
      operands: "check*",
      fixed: ["check"],
      also: addresses,
    },
    lint: {
      options: `${DENO_OPTIONS} --rules --rules-include= --rules-exclude= --rules-tags= --compact --fix!write --rules-dir=loads --permit-no-files`,
      operands: "check*|.",
      fixed: ["check"],
      also: addresses,
    },
    fmt: {
      options: `${DENO_OPTIONS} --check --use-tabs=? --line-width= --indent-width= --single-quote=? --prose-wrap= --no-semicolons=? --permit-no-files`,
      operands: "check*",
      fixed: ["check"],
      also: allOf(addresses, writesUnless("--check")),
    },
    check: {
      options: `${DENO_OPTIONS} --all --doc --doc-only`,
      operands: "check*",
      fixed: ["check"],
      also: addresses,
    },
    info: { options: DENO_OPTIONS, operands: "check*", fixed: ["check"], also: addresses },
    doc: {
      options: `${DENO_OPTIONS} --filter= --private --lint`,
      operands: "check*",
      fixed: ["check"],
      also: addresses,
    },
    ...named("help types completions", bunTells),
    ...named("run task serve compile bench repl bundle jupyter x", always("project", "network")),
    ...named(
      "install i add remove rm uninstall cache vendor upgrade outdated update clean create",
      always("install"),
    ),
    ...named("publish deploy audit", always("network")),
    eval: { options: "-p --print --ext=", operands: "code data*" },
  },
  otherwise: always("project"),
};

export const BUN_AND_DENO: Readonly<Record<string, Model>> = {
  bun: BUN,
  deno: DENO,
  ...named("bunx", always("install", "project")),
};
