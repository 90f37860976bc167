import type { Found, Model, Use } from "../model.ts";
import { allOf, always, named, noSettings, only, verbs, writesUnless } from "./parts.ts";

const DOTNET_OPTIONS = `-v: -c: -f: -r: -h --verbosity= --configuration= --framework= --runtime= --nologo --no-logo --no-build --no-restore -o:write
  --output=write --property=loads -p:loads`;
const DOTNET: Model = {
  options:
    "-d --diagnostics --additionalprobingpath=loads --additional-deps=loads --fx-version=loads --roll-forward=loads",
  tells: "--version --info --list-sdks --list-runtimes --help -h",
  commands: {
    test: {
      options: `${DOTNET_OPTIONS} -t --filter= --list-tests --blame --blame-hang-timeout= --no-progress --logger= -l: --settings=loads -s:loads
        --collect=loads --test-adapter-path=loads -d:write --diag=write --results-directory=write -e:loads --environment=loads --interactive!ask`,
      operands: "check*",
      fixed: ["check"],
      // Behind `--` stand settings, among them folders of programs to load.
      also: allOf(
        noSettings,
        only({
          "--logger -l":
            "trx console html console;verbosity=normal console;verbosity=detailed console;verbosity=minimal",
        }),
      ),
    },
    format: {
      options: `-v: --verify-no-changes --severity= --no-restore --include= --exclude= --diagnostics= --include-generated --verbosity=
        --binarylog=write --report=write`,
      operands: "check*",
      fixed: ["check"],
      // A switch may be turned off by the word behind it.
      also: allOf(writesUnless("--verify-no-changes"), verbs("true false")),
    },
    list: {
      options: `${DOTNET_OPTIONS} --include-transitive --format= --outdated!network --vulnerable!network --deprecated!network`,
      operands: "data*",
      fixed: ["settings"],
    },
    ...named("build run watch clean publish pack msbuild exec vstest fsi script", always("project")),
    ...named("restore add remove tool workload new nuget sdk", always("install")),
    ...named("sln solution store user-secrets dev-certs build-server ef", always("ask", "project")),
  },
  otherwise: always("project"),
};

const SWIFT: Model = {
  fixed: ["input"],
  tells: "--version -version --help -h -help",
  commands: {
    test: {
      options: `-c: -v -q -j: --filter= --skip= --parallel --no-parallel --num-workers= --list-tests --configuration= --verbose --quiet --skip-build --show-codecov-path
        --enable-code-coverage --test-product= -l --jobs= --disable-sandbox!project --package-path=loads --scratch-path=write --build-path=write
        --xunit-output=write --toolchain=loads --swift-sdk=loads --sdk=loads`,
      fixed: ["check"],
    },
    ...named("build run repl sdk plugin experimental-sdk", always("project")),
    package: {
      options: "",
      commands: {
        ...named("describe show-dependencies dump-package tools-version", {
          options: "--type= --format=",
          fixed: ["check"],
        }),
        ...named("update resolve edit unedit add-dependency", always("install")),
        ...named("init clean reset purge-cache", always("ask")),
      },
    },
  },
  otherwise: always("project"),
};

const lint = (options: string, more: Partial<Model> = {}): Model => ({
  options,
  operands: "check*",
  fixed: ["check"],
  tells: "--version version --help -h",
  ...more,
});

const DART_LINT =
  "--fatal-infos --fatal-warnings --no-fatal-warnings --no-fatal-infos --format= --no-pub --pub!network --watch!ask --write=write --packages=loads";
const DART_TEST = `-n: -N: -t: -x: -p: -j: -r: --name= --plain-name= --tags= --exclude-tags= --platform= --concurrency= --reporter= --timeout= --ignore-timeouts
  --run-skipped --no-run-skipped --no-retry --fail-fast --coverage=?write --total-shards= --shard-index= --no-color --color --chain-stack-traces
  --test-randomize-ordering-seed= --no-pub --pub!network --machine --file-reporter=write --configuration=loads --preset= -P:
  --update-goldens!project --coverage-path=write --dart-define=loads --no-test-assets`;
const dart = (first: Readonly<Record<string, Model>>): Model => ({
  options: "-v --verbose --no-color --color --suppress-analytics --disable-analytics",
  tells: "--version --help -h -v",
  commands: {
    analyze: lint(DART_LINT),
    test: lint(DART_TEST),
    ...first,
    ...named("pub create upgrade downgrade channel precache config", always("install")),
    ...named("run build compile drive clean gen-l10n assemble doc fix devtools info", always("project")),
    ...named("doctor devices emulators attach install logs screenshot", always("network")),
  },
  otherwise: always("project"),
});

export const DOTNET_AND_SWIFT: Readonly<Record<string, Model>> = {
  dotnet: DOTNET,
  swift: SWIFT,
  ...named("swiftc xcodebuild xcrun xcode-select pod carthage fastlane msbuild nuget csc fsharpi mono", {
    ...always("ask", "project"),
    tells: "--version -version --help -h -p --print-path",
  }),
  swiftlint: lint(
    "--quiet --strict --lenient --reporter= --fix!project --config=loads --path=check --no-cache",
    {
      commands: {
        lint: lint(
          "--quiet --strict --lenient --reporter= --fix!project --config=loads --path=check --no-cache",
        ),
        ...named("rules version", { fixed: ["settings"] }),
        ...named("analyze generate-docs baseline", always("project")),
      },
      otherwise: lint("--quiet --strict"),
    },
  ),
  swiftformat: lint(
    "--lint --dryrun --quiet --verbose --strict --lenient --swiftversion= --rules= --disable= --enable= --exclude= --config=loads --baseconfig=loads --output=write --cache=write --report=write --inferoptions",
    { also: writesUnless("--lint", "--dryrun", "--inferoptions") },
  ),
  dart: dart({
    format: lint(
      "-o: --output= --set-exit-if-changed --line-length= -l: --fix!write --show= --summary= --page-width= --language-version= --trailing-commas=",
      {
        also: dartFormats,
      },
    ),
  }),
  flutter: dart({}),
};

/** It writes, unless the result goes nowhere or to the screen. */
function dartFormats(use: Use): readonly Found[] {
  const output = use.options.findLast(({ name }) => name === "-o" || name === "--output")?.value?.value;
  const shown = output === "none" || output === "show";
  return shown ? [] : writesUnless()(use);
}
