import { fixedEffect, roleEffects } from "./argument-roles.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";
import { always, named, verbs } from "./project-arguments.ts";
import { programEffects } from "./python-programs.ts";

const LIGHT = { forced: false, recursive: false };
/** Nothing is compiled: it tells of itself, or of files that it knows. */
const TELLS =
  /^(?:-v|-V|--version|-print-[\w-]+(?:=[\w.+-]*)?|--print-[\w-]+(?:=[\w.+-]*)?|-dump(?:version|machine|fullversion|specs)|--help(?:=[\w,^]+)?|--target-help|-Q|-###)$/;
/** What is known not to write, load or run anything. */
const HARMLESS =
  /^(?:-fsyntax-only|-c|-S|-E|-g[0-3]?|-ggdb[0-3]?|-O\w?|-w|-pedantic(?:-errors)?|-ansi|-pthread|-static|-shared|-pipe|-std=[\w+:]+|-W(?![lpa],)[\w+=-]*|-D\w+(?:=[\w.]*)?|-U\w+|-m(?:32|64|arch=[\w.-]+|tune=[\w.-]+)|-f(?:no-)?(?:PIC|pic|PIE|pie|exceptions|rtti|strict-aliasing|permissive|diagnostics-color(?:=\w+)?|color-diagnostics|openmp|stack-protector(?:-\w+)?|omit-frame-pointer|sanitize=[\w,]+|visibility=\w+|max-errors=\d+|concepts|coroutines|common|char8_t|unsigned-char|signed-char|short-enums|inline-functions|fast-math|analyzer|function-sections|data-sections)|-M{1,2}|-nostdlib|-nostdinc)$/;

/** A compiler of C and its kin. Its options are many, and some of them run or load programs: only a few are known. */
function compiles(use: Use): readonly Found[] {
  const { args, folder, program } = use;
  const all = (shape: RegExp): boolean =>
    args.every(({ kind, value }) => kind === "literal" && shape.test(value));
  if (args.length > 0 && all(TELLS)) return [];
  const checks = args.some(({ kind, value }) => kind === "literal" && value === "-fsyntax-only");
  const found: Found[] = checks
    ? [fixedEffect("check", folder, program)]
    : [{ kind: "write", path: folder }, fixedEffect("project", folder, program)];
  for (const [at, arg] of args.entries())
    found.push(...(args[at - 1]?.value === "-o" ? written(arg, use) : word(arg, use)));
  return found;
}

const written = (arg: Arg, use: Use): readonly Found[] => roleEffects("write", arg, use, LIGHT);

function word(arg: Arg, use: Use): readonly Found[] {
  const { kind, value } = arg;
  if (value === "-o" && kind === "literal") return [];
  if (value.startsWith("-o")) return written({ ...arg, value: value.slice(2) }, use);
  if (/^-[IL]./.test(value)) return roleEffects("check", { ...arg, value: value.slice(2) }, use, LIGHT);
  if (value.startsWith("-"))
    return kind === "literal" && HARMLESS.test(value) ? [] : [unknownOption(arg, use)];
  if (value.startsWith("@")) return [use.doubt("option.loads-code", arg)];
  return roleEffects("check", arg, use, LIGHT);
}

/** Which library, which language: that much is known of these. */
function unknownOption(arg: Arg, use: Use): Found {
  const doubt = use.doubt("option.unknown", arg);
  return doubt.kind === "unknown" &&
    arg.kind === "literal" &&
    /^-(?:l[\w.+-]+|x(?:c|c\+\+)?|M[MDP]{1,2}|rdynamic|s|ffreestanding|)$/.test(arg.value)
    ? { ...doubt, inside: true }
    : doubt;
}

const CC: Model = { reads: compiles, tells: "--version --help -v" };

/** Linkers, assemblers and compilers of which nothing but their versions is known to be harmless. */
const compiler = (tells: string): Model => ({ ...always("ask", "project"), tells });

const CLANG_FORMAT: Model = {
  options: `-i!write -n -style= -assume-filename= -lines= -offset= -length= -cursor= -sort-includes -verbose -Werror -Wno-error= -dry-run -output-replacements-xml
    -ferror-limit= -fallback-style= -dump-config -files=loads -fail-on-incomplete-format`,
  singleDash: true,
  operands: "read*",
  tells: "--version -version --help -help -h",
};

const lint = (options: string, more: Partial<Model> = {}): Model => ({
  options,
  operands: "check*",
  fixed: ["check"],
  tells: "--version -version --help -help -h",
  ...more,
});

export const COMPILERS: Readonly<Record<string, Model>> = {
  ...named(
    `gcc g++ cc c++ clang clang++ cpp gfortran gcc-11 gcc-12 gcc-13 gcc-14 g++-11 g++-12 g++-13 g++-14 clang-14 clang-15 clang-16
     clang-17 clang-18 clang-19 clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19`,
    CC,
  ),
  "clang-format": CLANG_FORMAT,
  "clang-tidy": lint(
    "-p=check -checks= -header-filter= -quiet -warnings-as-errors= -list-checks -explain-config -dump-config -fix!write -fix-errors!write -fix-notes!write -config=loads -config-file=loads -load=loads -extra-arg=loads -export-fixes=write -store-check-profile=write -vfsoverlay=loads",
    { singleDash: true },
  ),
  cppcheck: lint(
    `-q -v -j: -I:check -D: -U: -i: --enable= --disable= --inconclusive --quiet --verbose --error-exitcode= --std= --language= --suppress= --inline-suppr --force --template=
     --xml --xml-version= --platform= --max-configs= --check-level= --output-file=write --addon=loads --cppcheck-build-dir=write --project=check --library=loads
     --rule-file=loads --plist-output=write --dump!project --clang=?loads --includes-file=loads --suppressions-list=read --file-list=loads`,
  ),
  cpplint: lint(
    "--filter= --linelength= --recursive --quiet --counting= --extensions= --exclude= --verbose= --root=check --output= --config=loads",
  ),
  ...named("cmake-lint cmakelint", lint("--filter= --quiet --config=loads --spaces= --linelength= -c:loads")),
  ...named(
    "ld ld.lld lld gold ld.gold ld.bfd mold as nasm yasm ranlib windres emcc em++ icx nvcc tcc",
    compiler("--version -v -V --help -h"),
  ),
  ...named(
    "ghc ocaml ocamlc ocamlopt dune opam nim crystal v vlang odin gleam",
    compiler("--version -version -v -V --help -h"),
  ),
  "llvm-config": {
    options:
      "--version --cflags --cxxflags --ldflags --libs --libdir --includedir --bindir --prefix --components --targets-built --host-target --system-libs --build-mode",
    operands: "data*",
  },
  ...named("pkg-config pkgconf", {
    options: `--modversion --cflags --libs --libs-only-l --libs-only-L --libs-only-other --cflags-only-I --cflags-only-other --exists --list-all --list-package-names
      --variable= --print-variables --print-requires --print-requires-private --print-provides --print-errors --short-errors --silence-errors
      --static --shared --atleast-version= --exact-version= --max-version= --uninstalled --errors-to-stdout --path --validate --digraph
      --with-path=loads --define-variable=loads --log-file=write`,
    operands: "data*",
    fixed: ["settings"],
  }),
};

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

/** Options of maven that choose, print, or keep from the network, and those of them whose value is the next word. */
const MAVEN_FLAGS = new Set(
  `-q -X -e -o -B -U -N -V -am -amd -fae -ff -fn -nsu -ntp --quiet --debug --errors --offline --batch-mode --non-recursive
   --no-transfer-progress --fail-at-end --fail-fast --fail-never --also-make --also-make-dependents --show-version --no-snapshot-updates`.split(
    /\s+/,
  ),
);
const MAVEN_VALUES = new Set(["-pl", "-P", "-T", "--projects", "--threads", "--activate-profiles", "-rf"]);
/** Properties that choose among tests; others name programs, files and addresses. */
const MAVEN_PROPERTY =
  /^-D(?:test|it\.test|groups|excludedGroups|skipITs|skipTests|skipUTs|maven\.test\.skip|checkstyle\.skip|surefire\.failIfNoSpecifiedTests|failIfNoTests|style\.color)(?:=[\w.*#,$+!-]*)?$/;

function maven(use: Use): readonly Found[] {
  const found: Found[] = [];
  const goals: Arg[] = [];
  const { args, folder, program } = use;
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] as Arg;
    if (!arg.value.startsWith("-")) goals.push(arg);
    else if (
      arg.kind === "literal" &&
      MAVEN_VALUES.has(arg.value) &&
      args[at + 1]?.value.startsWith("-") === false
    )
      at += 1;
    else if (arg.kind !== "literal" || !(MAVEN_FLAGS.has(arg.value) || MAVEN_PROPERTY.test(arg.value)))
      found.push(use.doubt("option.unknown", arg));
  }
  return [...found, fixedEffect(areTests(goals, /^test$/) ? "check" : "project", folder, program)];
}

const areTests = (targets: readonly Arg[], shape: RegExp): boolean =>
  targets.length > 0 && targets.every(({ kind, value }) => kind === "literal" && shape.test(value));

/** Its targets are tests, or any other code of the project. */
const jvmTargets =
  (shape: RegExp) =>
  ({ operands, folder, program }: Use): readonly Found[] => [
    fixedEffect(areTests(operands, shape) ? "check" : "project", folder, program),
  ];

const GRADLE: Model = {
  options: `-q -i -d -s -S -w -t!ask -x: --quiet --info --debug --warn --stacktrace --full-stacktrace --offline --no-daemon --daemon --console= --continue
    --no-continue --rerun-tasks --rerun --parallel --no-parallel --max-workers= --build-cache --no-build-cache --configuration-cache
    --no-configuration-cache --warning-mode= --tests= --exclude-task= --dry-run -m --fail-fast --no-watch-fs --configure-on-demand
    --profile!project --scan!network --continuous!ask --refresh-dependencies!network -p:loads --project-dir=loads -I:loads
    --init-script=loads -b:loads --build-file=loads -c:loads --settings-file=loads -g:loads --gradle-user-home=loads -D:loads
    --system-prop=loads -P:loads --project-prop=loads --include-build=loads --write-locks!project`,
  operands: "data*",
  tells: "--version -v -V --help -h -?",
  also: jvmTargets(/^(?::[\w-]+)*:?test$/),
};

const SBT: Model = {
  options: "-v -d --no-colors --java-home=loads --sbt-dir=loads",
  operands: "data*",
  tells: "--version -version -V --help -h --script-version",
  also: jvmTargets(/^test$/),
};

const isVersion = ({ kind, value }: Arg): boolean =>
  kind === "literal" && /^(?:-{1,2}version|-XshowSettings(?::\w+)?)$/.test(value);

/** A source file or an archive is code of the project; a class may lie anywhere. */
const JAVA: Model = {
  tells: "--version -version -fullversion --help -help -h -? -X --list-modules",
  reads: (use) => {
    const [first, second] = use.args;
    if (first?.kind === "literal" && first.value.endsWith(".java")) return programEffects(first, use);
    if (first?.value === "-jar" && second !== undefined) return programEffects(second, use);
    if (first !== undefined && use.args.every(isVersion)) return [];
    return [fixedEffect("project", use.folder, use.program), fixedEffect("ask", use.folder, use.program)];
  },
};

const runner = (tells: string): Model => ({ ...always("project"), tells });
const LEIN: Model = {
  options: "-o",
  tells: "version --version -v help --help -h",
  commands: {
    test: { operands: "", fixed: ["check"] },
    ...named("version help classpath", { operands: "data*", fixed: ["check"] }),
    ...named("deps install upgrade deploy", always("install")),
  },
  otherwise: always("project"),
};

const jvmLint = (options: string): Model => ({
  options,
  operands: "check*",
  fixed: ["check"],
  tells: "--version --help -h",
});

export const JVM: Readonly<Record<string, Model>> = {
  ...named("mvn mvnw mvnd", { reads: maven, tells: "--version -v -version --help -h" }),
  ...named("gradle gradlew", GRADLE),
  sbt: SBT,
  ...named("java javaw", JAVA),
  ...named("javac jar jshell javadoc kotlin kotlinc scalac scala-cli groovyc clojure clj ant mill bloop", {
    ...always("ask", "project"),
    tells: "--version -version -fullversion --help -help -h",
  }),
  ...named("jps jinfo jmap jstack jcmd", always("process")),
  lein: LEIN,
  ktlint: {
    ...jvmLint(
      "-F!project --format!project --color --color-name= --limit= --relative --reporter=loads -R:loads --ruleset=loads --editorconfig=loads --baseline=write --stdin --log-level=",
    ),
    also: verbs(
      "installGitPreCommitHook installGitPrePushHook generateEditorConfig applyToIDEA applyToIDEAProject",
    ),
  },
  detekt: jvmLint(
    "-i:check --input=check --all-rules --build-upon-default-config --max-issues= --parallel --excludes= --config=loads -c:loads --plugins=loads -p:loads --report=loads -r:loads --auto-correct!project --create-baseline!project --base-path=check",
  ),
  ...named("jbang sdk coursier cs", { ...always("install", "project"), tells: "--version --help version" }),
  ...named("checkstyle pmd spotbugs", runner("--version -V --help -h")),
};
