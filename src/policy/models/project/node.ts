import type { Arg, Found, Model, Use } from "../model.ts";
import { fixedEffect, roleEffects } from "../roles.ts";
import { programEffects } from "./interpreters.ts";
import { always, named, only } from "./parts.ts";

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

export const NODE: Model = {
  options: OPTIONS,
  singleDash: true,
  strict: true,
  operands: "data*",
  tells: "--version -v --help -h --v8-options --completion-bash -V",
  also: node,
};

const INLINE: ReadonlySet<string> = new Set(["-e", "--eval", "-p", "--print", "-pe"]);
const reporters = only({
  "--test-reporter": "spec tap dot junit lcov",
});

function node(use: Use): readonly Found[] {
  const { options, operands, folder, program } = use;
  const has = (...names: readonly string[]): boolean => options.some(({ name }) => names.includes(name));
  const texts = options.filter(({ name }) => INLINE.has(name));
  const [file] = operands;
  const found = [...reporters(use), ...destinations(use)];
  for (const { name, value } of texts) found.push(inline(name === "-pe" ? (file ?? null) : value, use));
  const script = options.find(({ name }) => name === "--run");
  if (script !== undefined)
    found.push(
      fixedEffect(
        script.value?.value === "test" && script.value.kind === "literal" ? "check" : "project",
        folder,
        program,
      ),
    );
  if (has("--test"))
    found.push(
      fixedEffect("check", folder, program),
      ...operands.flatMap((arg) => roleEffects("check", arg, use, LIGHT)),
    );
  else if (has("--check", "-c"))
    found.push(...operands.flatMap((arg) => roleEffects("read", arg, use, LIGHT)));
  else if (texts.length === 0 && script === undefined) found.push(...programEffects(file, use));
  return found;
}

const LIGHT = { forced: false, recursive: false };

const inline = (text: Arg | null, { folder, span }: Use): Found => ({
  kind: "code",
  from: "inline",
  path: folder,
  text: text?.kind === "literal" ? text.value : "",
  span: text?.span ?? span,
});

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
