import type { Arg, Found, Model, Use } from "../model.ts";
import { fixedEffect } from "../roles.ts";
import { always, named } from "./parts.ts";

/** A plain setting on the command line; of what is written otherwise, a shell may run some. */
const PLAIN = /^(?!SHELL=|MAKEFLAGS=|MAKEFILES=|\.)[A-Za-z_][\w-]*[:?+]?=[\w./:,-]*$/;

const isOdd = (arg: Arg): boolean =>
  arg.kind !== "literal" || (arg.value.includes("=") && !PLAIN.test(arg.value));

/** What stands in rules runs, and already does when they are only read. */
function targets(use: Use): readonly Found[] {
  return [
    fixedEffect("project", use.folder, use.program),
    ...use.operands.filter(isOdd).map((arg) => use.doubt("operand.unknown", arg)),
  ];
}

const MAKE: Model = {
  options: `-n -k -s -B -i -w -q -t -d -p -r -R -e -S -j? -l? -C:in -f:project -I:project -o: -W: --dry-run --just-print --recon --keep-going --silent --quiet
    --always-make --ignore-errors --print-directory --no-print-directory --question --touch --jobs=? --load-average=? --directory=in
    --file=project --makefile=project --include-dir=project --debug=? --trace --output-sync=? -O? --warn-undefined-variables
    --no-builtin-rules --no-builtin-variables --environment-overrides --stop --no-keep-going --old-file= --what-if= --eval=shell -E:shell`,
  operands: "data*",
  tells: "--version -v --help -h",
  abbreviates: true,
  also: targets,
};

const JUST: Model = {
  options: `-n -q -v -d:in -f:project -l --dry-run --quiet --verbose --working-directory=in --justfile=project --list --summary --show= --evaluate --variables
    --unstable --color= --shell=loads --shell-arg=loads --command=!ask -c:!ask --set=!ask --dotenv-path=loads --choose!ask --edit!ask --init!ask
    --dump --fmt!project --check --unsorted --groups --yes`,
  operands: "data*",
  tells: "--version -V --help -h",
  also: targets,
};

/** Builders with a language of their own: whatever they are told, it is the project's code that says what happens. */
const builder = (tells: string): Model => ({ ...always("project"), tells });

const CTEST: Model = {
  options: `-V -VV -N -Q -F -j=? -R= -E= -L= -LE= -I= -C= -O=write -S=loads -SP=loads -D=!network -M=!network -T=!network --output-on-failure
    --test-dir=check --verbose --extra-verbose --show-only=? --parallel=? --progress --no-tests= --repeat= --rerun-failed
    --stop-on-failure --timeout= --test-load= --schedule-random --stop-time= --quiet --build-config= --tests-regex= --exclude-regex=
    --label-regex= --label-exclude= --preset= --list-presets --print-labels --no-label-summary --output-log=write
    --output-junit=write --script=loads --build-and-test!project --overwrite=loads --dashboard=!network --resource-spec-file=read`,
  singleDash: true,
  tells: "--version -version --help -h -help",
  fixed: ["check"],
};

const MESON: Model = {
  options: "",
  tells: "--version -v --help -h",
  commands: {
    test: {
      options: `-C:check -q -v -t: --no-rebuild --suite= --no-suite= --list --verbose --quiet --print-errorlogs --timeout-multiplier= --num-processes= -j:
        --repeat= --no-stdsplit --logbase= --benchmark --wrapper=loads --wrap=loads --gdb!ask --gdb-path=loads --setup= --test-args=loads --max-lines= --maxfail=`,
      operands: "data*",
      fixed: ["check"],
    },
    introspect: {
      options:
        "-a --all --targets --tests --buildoptions --projectinfo --dependencies --buildsystem-files -i -f --indent --force-object-output",
      operands: "check",
      fixed: ["settings"],
    },
    ...named("install", always("ask", "project")),
    ...named("subprojects wrap", always("install")),
    ...named("setup compile configure dist init rewrite devenv env2mfile", always("project")),
  },
};

/** `-E` begins a small shell of its own. */
const CMAKE: Model = {
  tells: "--version -version --help -h -help",
  reads: (use) => {
    const [first] = use.args;
    const project = fixedEffect("project", use.folder, use.program);
    return first?.value === "-E" ? [project, use.doubt("language.unknown", first)] : [project];
  },
};

const BAZEL: Model = {
  options: "--noworkspace_rc",
  tells: "version help --version --help",
  commands: {
    ...named("version help info", { options: "--gnu_format", operands: "data*", fixed: ["settings"] }),
    ...named("test build run coverage query cquery aquery mod", always("project", "network")),
    ...named("clean shutdown fetch sync", always("ask")),
  },
};

export const BUILDS: Readonly<Record<string, Model>> = {
  ...named("make gmake", MAKE),
  just: JUST,
  ctest: CTEST,
  cmake: CMAKE,
  meson: MESON,
  ...named("bazel bazelisk", BAZEL),
  ...named("task go-task", { ...always("project"), tells: "--version --help -h --list -l --list-all -a" }),
  ...named(
    "ninja samu scons waf buck buck2 pants please tup mage invoke inv fab doit b2 premake5 xmake",
    builder("--version --help -h"),
  ),
  ...named(
    "configure autoreconf autoconf automake aclocal libtoolize gettextize",
    builder("--version --help -h"),
  ),
};
