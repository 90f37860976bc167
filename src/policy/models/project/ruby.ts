import type { Found, Model, Use } from "../model.ts";
import { fixedEffect } from "../roles.ts";
import { always, checks, COMMAND, named, only } from "./parts.ts";

const RSPEC = checks(
  `-f: -e: -t: -b -c -w -P:check -E: -p? -o:write -O:loads -r:loads -I:loads -X:loads --format= --example= --example-matches= --tag= --backtrace --color --no-color
   --force-color --fail-fast=? --no-fail-fast --only-failures --next-failure --dry-run --order= --seed= --pattern=check --exclude-pattern= --profile=?
   --no-profile --warnings --failure-exit-code= --error-exit-code= --deprecation-out=write --out=write --options=loads --require=loads
   --default-path=check --bisect=?!project --init!project --drb!project -d!ask`,
  {
    also: only({
      "-f --format": "p progress d doc documentation h html j json f failures",
    }),
  },
);

const RUBOCOP = checks(
  `-D -d -E -F -L -P -S -V -l -x!write -f: -n --lint --format= --only= --except= --display-cop-names --no-display-cop-names --display-style-guide --display-only-fail-level-offenses
   --extra-details --fail-level= --fail-fast --force-exclusion --no-color --color --parallel --no-parallel --cache= --list-target-files --only-guide-cops
   --show-cops=? --debug --ignore-parent-exclusion --force-default-config --ignore-disable-comments --display-time --stderr -s:read --stdin=read
   --layout -a!write -A!write -o:write --out=write --autocorrect!write --auto-correct!write --autocorrect-all!write --auto-correct-all!write --fix-layout!write
   --safe --auto-gen-config!project --regenerate-todo!project -c:loads --config=loads -r:loads --require=loads --plugin=loads
   --cache-root=write --init!project --start-server!process --server!process --lsp!ask`,
  {
    operands: "check*|.",
    also: only({
      "-f --format":
        "p progress s simple c clang e emacs f files fu fuubar g github h html j json ju junit o offenses pa pacman q quiet t tap w worst a autogenconf m markdown",
    }),
  },
);

/** A task or a command of the project: only `test` is known to be its tests. */
const tasks = (options: string, tells = "--version -V --help -h"): Model => ({
  options,
  operands: "data*",
  tells,
  also: testsOr,
});

function testsOr({ operands, folder, program }: Use): readonly Found[] {
  const [first] = operands;
  const tests = first?.kind === "literal" && /^(?:test|spec)$/.test(first.value) && operands.length === 1;
  return [fixedEffect(tests ? "check" : "project", folder, program)];
}

const RAKE = tasks(
  "-q -s -v -t -T? -P -W? -n -j: -m --quiet --silent --verbose --trace --tasks --dry-run --prereqs -f:loads --rakefile=loads -r:loads -I:loads -e:code -E:code -p:code",
);
const RUBY_TOOLS: Readonly<Record<string, Model>> = {
  rspec: RSPEC,
  ...named("rubocop standardrb", RUBOCOP),
  rake: RAKE,
  rails: {
    tells: "--version -v --help -h",
    commands: {
      test: checks(
        "-n: -v -b -f -e: -s: --name= --verbose --seed= --fail-fast -d --defer-output -c --no-color -w",
      ),
    },
    otherwise: always("project"),
  },
  minitest: checks("-n: -v -s: --name= --verbose --seed="),
};

const BUNDLE_OPTIONS = "--no-color --verbose --retry= -r:";
const BUNDLE: Model = {
  options: BUNDLE_OPTIONS,
  tells: "--version -v --help -h version",
  fixed: ["install"],
  commands: {
    exec: { commands: RUBY_TOOLS, otherwise: COMMAND },
    ...named("version help", { operands: "data*" }),
    // The list of packages is a program.
    ...named("list show info check platform licenses", {
      options: "--name-only --paths --path --only-group= --without-group= --dry-run --ruby",
      operands: "data*",
      fixed: ["check"],
    }),
    config: {
      options: "",
      commands: { ...named("list get", { options: "--parseable", operands: "data*", fixed: ["settings"] }) },
      otherwise: always("ask"),
    },
    ...named(
      "install update add remove lock cache package binstubs clean init inject pristine plugin",
      always("install"),
    ),
    ...named("outdated open gem", always("network")),
    ...named("doctor console viz", always("project")),
  },
};
const GEM: Model = {
  options: "-v -q --verbose --quiet --config-file=loads",
  tells: "--version -v --help -h",
  commands: {
    ...named("list query environment env help which contents dependency specification check", {
      options:
        "-l -a -d -q -v: -i --local --all --details --no-details --versions --no-versions --installed --exact --prerelease --remote!network -r!network -b!network --both!network",
      operands: "data*",
      fixed: ["settings"],
    }),
    ...named("install update uninstall cleanup pristine fetch unpack lock rdoc", always("install")),
    ...named("push yank owner search outdated signin signout sources info server mirror", always("network")),
    ...named("build exec open cert", always("project")),
  },
};

export const RUBY: Readonly<Record<string, Model>> = {
  ...RUBY_TOOLS,
  ...named("bundle bundler", BUNDLE),
  gem: GEM,
  ...named("rbenv rvm chruby", { ...always("install"), tells: "--version --help version versions" }),
};
