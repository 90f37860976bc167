import type { Found, GivenOption, Model, Use } from "../model.ts";
import { fixedEffect, roleEffects } from "../roles.ts";
import { inlineEffects } from "../shell/code.ts";
import { programEffects } from "./interpreters.ts";
import { always, forwards, named, only, word } from "./parts.ts";
import { TEST_WORDS } from "./scripts.ts";

const OPTIONS = `--test --test-only --test-force-exit --test-name-pattern= --test-skip-pattern= --test-reporter= --test-reporter-destination=
  --test-concurrency= --test-timeout= --test-shard= --test-isolation= --experimental-test-isolation=
  --test-coverage-include= --test-coverage-exclude= --test-coverage-lines= --test-coverage-branches=
  --test-coverage-functions= --experimental-test-coverage --experimental-test-module-mocks
  --experimental-test-snapshots --test-update-snapshots!project --test-global-setup=loads
  --test-rerun-failures=write --watch!ask --watch-path=check --watch-preserve-output --run= --check -c
  --experimental-strip-types --no-experimental-strip-types --no-strip-types --strip-types --experimental-transform-types --enable-source-maps
  --no-warnings --trace-warnings --disable-warning= --no-deprecation --trace-deprecation --throw-deprecation
  --pending-deprecation --unhandled-rejections= --stack-trace-limit= --stack-size= --max-old-space-size= --max-semi-space-size=
  --expose-gc --expose_gc --trace-uncaught --trace-exit --trace-sigint --preserve-symlinks --preserve-symlinks-main
  --input-type= --experimental-default-type= --experimental-vm-modules --experimental-sqlite --no-experimental-sqlite
  --experimental-json-modules --experimental-import-meta-resolve --experimental-require-module --experimental-wasm-modules
  --no-experimental-fetch --no-global-search-paths --frozen-intrinsics --zero-fill-buffers --title= -C= --conditions=
  --abort-on-uncaught-exception --interpreted-frames-native-stack --jitless --no-addons --dns-result-order= --harmony
  -e= --eval= -p= -pe --print= -i --interactive -r=loads --require=loads --import=loads --loader=loads
  --experimental-loader=loads --env-file=loads --env-file-if-exists=loads --icu-data-dir=loads
  --openssl-config=loads --snapshot-blob=loads --build-snapshot!project --build-sea=loads --experimental-config-file=?loads
  --experimental-default-config-file!project --inspect=?!network --inspect-brk=?!network --inspect-wait=?!network
  --inspect-port=!network --debug-port=!network --cpu-prof!project --heap-prof!project --prof!project
  --cpu-prof-dir=write --heap-prof-dir=write --diagnostic-dir=write --redirect-warnings=write --trace-event-file-pattern=write
  --report-dir=write --report-directory=write --report-on-signal!project --tls-keylog=write --disable-wasm-trap-handler`;

const NODE: Model = {
  options: OPTIONS,
  singleDash: true,
  strict: true,
  operands: "data*",
  tells: "--version -v --help -h --v8-options --completion-bash -V",
  also: node,
};

const INLINE: ReadonlySet<string> = new Set(["-e", "--eval", "-p", "--print", "-pe"]);
const handsOn = forwards(TEST_WORDS);
const reporters = only({
  "--test-reporter": "spec tap dot junit lcov",
});

function node(use: Use): readonly Found[] {
  return [...reporters(use), ...destinations(use), ...programs(use)];
}

function programs(use: Use): readonly Found[] {
  const { options, operands, folder, program } = use;
  const has = (...names: readonly string[]): boolean => options.some(({ name }) => names.includes(name));
  const texts = options.filter(({ name }) => INLINE.has(name));
  const [file] = operands;
  if (has("--test"))
    return [
      fixedEffect("check", folder, program),
      ...inlines(texts, use),
      ...operands.flatMap((arg) => roleEffects("check", arg, use, LIGHT)),
    ];
  if (texts.length > 0) return inlines(texts, use);
  if (has("--run")) return [...scripts(use), ...handsOn(use)];
  return has("--check", "-c")
    ? operands.flatMap((arg) => roleEffects("read", arg, use, LIGHT))
    : programEffects(file, use);
}

const inlines = (texts: readonly GivenOption[], use: Use): readonly Found[] =>
  texts.map(({ name, value }) => inlineEffects((name === "-pe" ? use.operands[0] : value) ?? word("", use)));

/** `--run` starts a script of the package. */
const scripts = ({ options, folder, program }: Use): readonly Found[] =>
  options
    .filter(({ name }) => name === "--run")
    .map(({ value }) =>
      fixedEffect(value?.kind === "literal" && value.value === "test" ? "check" : "project", folder, program),
    );

const LIGHT = { forced: false, recursive: false };

/** Where reports go: a stream by its name, or a file. */
function destinations(use: Use): readonly Found[] {
  return use.options.flatMap(({ name, value }) =>
    name !== "--test-reporter-destination" ||
    value === null ||
    value.value === "stdout" ||
    value.value === "stderr"
      ? []
      : roleEffects("write", value, use, LIGHT),
  );
}

/** Runners of TypeScript files: what node does, and their own options are not known. */
const RUNNER: Model = {
  options:
    "-h -e:code -p:code --eval=code -r:loads --require=loads --import=loads --tsconfig=loads -P:loads --project=loads -T --transpile-only --test!project",
  tells: "--version -v --help -h",
  strict: true,
  operands: "data*",
  also: (use) => programEffects(use.operands[0], use),
};

export const NODES: Readonly<Record<string, Model>> = {
  ...named("node nodejs", NODE),
  ...named("tsx ts-node ts-node-esm ts-node-transpile-only babel-node vite-node jiti esno", RUNNER),
  ...named(
    "nodemon ts-node-dev pm2 forever live-server http-server serve",
    always("ask", "project", "network"),
  ),
};
