import type { Arg, Found, Model, Use } from "../model.ts";
import { fixedEffect } from "../roles.ts";
import { programEffects } from "./interpreters.ts";
import { always, named, verbs } from "./parts.ts";

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
const targets =
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
  also: targets(/^(?::[\w-]+)*:?test$/),
};

const SBT: Model = {
  options: "-v -d --no-colors --java-home=loads --sbt-dir=loads",
  operands: "data*",
  tells: "--version -version -V --help -h --script-version",
  also: targets(/^test$/),
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

const lint = (options: string): Model => ({
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
    ...lint(
      "-F!project --format!project --color --color-name= --limit= --relative --reporter=loads -R:loads --ruleset=loads --editorconfig=loads --baseline=write --stdin --log-level=",
    ),
    also: verbs(
      "installGitPreCommitHook installGitPrePushHook generateEditorConfig applyToIDEA applyToIDEAProject",
    ),
  },
  detekt: lint(
    "-i:check --input=check --all-rules --build-upon-default-config --max-issues= --parallel --excludes= --config=loads -c:loads --plugins=loads -p:loads --report=loads -r:loads --auto-correct!project --create-baseline!project --base-path=check",
  ),
  ...named("jbang sdk coursier cs", { ...always("install", "project"), tells: "--version --help version" }),
  ...named("checkstyle pmd spotbugs", runner("--version -V --help -h")),
};
