import type { Found, Model, Use } from "../model.ts";
import { COVERED } from "./coverage.ts";
import { CHECKERS } from "./checkers.ts";
import { allOf, always, named, only } from "./parts.ts";
import { REPORTERS } from "./runner-names.ts";

/** Measures the coverage of what it runs; only runners that are known run under it. */
const COVERAGE: Model = {
  options: `-r: -x: -n: -s -h -a --reporter= --all --no-all --check-coverage --lines= --functions= --branches= --statements= --per-file
    --include= --exclude= --extension= --src= --clean --no-clean --silent --100 --skip-full --exclude-after-remap --cache --no-cache
    --report-dir=write --reports-dir=write -o:write --temp-dir=write --temp-directory=write --cwd=loads
    --nycrc-path=loads --config=loads -c:loads -i:loads --require=loads --omit-relative --merge-async --instrument`,
  fixed: ["check"],
  strict: true,
  operands: "data*",
  also: allOf(only({ "-r --reporter": COVERED }), measured),
};

const MEASURED = new Set(["node", ...Object.keys(CHECKERS)]);

/** Runners that are known; of all else nobody knows what runs. */
function measured(use: Use): readonly Found[] {
  const [name] = use.operands;
  if (name === undefined) return [];
  const known = name.kind === "literal" && MEASURED.has(name.value);
  return known ? use.command(use.operands) : [use.doubt("operand.unknown", name)];
}

const playwright: Model = {
  options: `-g: -x -j: -u?!project -c:loads --config=loads --grep= --grep-invert= --gv= --list --project= --reporter= --retries= --workers= --timeout=
    --global-timeout= --shard= --max-failures= --last-failed --pass-with-no-tests --quiet --repeat-each= --fully-parallel
    --forbid-only --no-deps --ignore-snapshots --headed --trace= --only-changed=? --fail-on-flaky-tests --browser= --test-list=read
    --update-snapshots=?!project --update-source-method= --output=write --tsconfig=loads --ui!network --ui-host=host --ui-port=!network --debug!ask`,
  operands: "data*",
  fixed: ["check"],
  also: only({ "--reporter": REPORTERS }),
};

const CYPRESS: Model = {
  options: "--config-file=loads",
  commands: {
    run: {
      options: `-s:check -q -b: -e: -r: --spec=check --quiet --headless --headed --browser= --e2e --component --env= --reporter= --no-runner-ui --no-exit!ask
        --record!network --key=!network -P:check --project=check -C:loads --config-file=loads -c:loads --config=loads -o:loads --reporter-options=loads`,
      fixed: ["check"],
      also: only({ "-b --browser": "chrome chromium edge electron firefox", "-r --reporter": REPORTERS }),
    },
    ...named("version info", { fixed: ["settings"] }),
    ...named("install", always("install")),
    ...named("open", always("project")),
  },
};

const MONOREPO = `-t: -p: -F: -v --target= --targets= --projects= --filter= --scope= --ignore= --exclude= --all --parallel=? --maxParallel= --skip-nx-cache
  --skipNxCache --nxBail --no-cache --force=? --output-logs= --outputStyle= --output-style= --concurrency= --continue=? --dry=?
  --dry-run=? --only --affected --no-daemon --ui= --log-order= --log-prefix= --verbosity= --verbose --base= --head= --since=?
  --stream --no-bail --no-prefix --no-sort --summarize=? --configuration= -c: --tui=? --no-tui --json --include-dependencies
  --include-dependents --graph=write --cwd=loads --runner=loads --cache-dir=write --api=!network --token=!network
  --remote-cache-timeout=!network --profile=write`;

/** Tasks of a repository of packages are scripts of the packages, whatever they are called. */
const runsTasks: Model = { options: MONOREPO, operands: "data*", fixed: ["project"] };
const tells: Model = { options: MONOREPO, operands: "data*", fixed: ["settings"] };

const TURBO: Model = {
  options: MONOREPO,
  commands: {
    run: runsTasks,
    ...named("ls info", tells),
    ...named("login logout link unlink telemetry", always("network")),
    ...named("prune gen generate daemon scan watch", always("project")),
  },
  otherwise: runsTasks,
};
const NX: Model = {
  options: MONOREPO,
  commands: {
    test: runsTasks,
    ...named("run-many affected", runsTasks),
    ...named("report list show", { ...tells, fixed: ["check"] }),
    ...named("add migrate init import", always("install")),
    ...named("connect login logout", always("network")),
  },
  otherwise: always("project"),
};
const LERNA: Model = {
  options: MONOREPO,
  commands: {
    run: runsTasks,
    ...named("ls list la ll changed diff info", tells),
    ...named("bootstrap add link", always("install")),
    ...named("publish", always("network", "project")),
    ...named("exec", always("ask", "project")),
    ...named("version clean create import init repair", always("project")),
  },
};

/** Each operand is a script of the project, or a command line for a shell. */
const MANY: Model = {
  options: "-n: -c: -k -r --names= --kill-others --raw",
  operands: "shell*",
  fixed: ["project"],
};

const BUNDLERS =
  "vite webpack webpack-cli rollup parcel esbuild tsup tsdown swc babel rspack rsbuild next nuxt gatsby";

export const JAVASCRIPT: Readonly<Record<string, Model>> = {
  ...CHECKERS,
  ...named("c8 nyc", COVERAGE),
  playwright: {
    commands: {
      test: playwright,
      ...named("install install-deps uninstall", always("install")),
      ...named("codegen open show-report show-trace screenshot pdf cr ff wk", always("network", "project")),
    },
  },
  cypress: CYPRESS,
  turbo: TURBO,
  nx: NX,
  lerna: LERNA,
  ...named("concurrently", MANY),
  ...named(`${BUNDLERS} karma gulp rush moon wireit run-s run-p npm-run-all npm-run-all2 storybook`, {
    ...always("project"),
    tells: "--version -v -V --help -h",
  }),
  ...named("grunt size-limit", { ...always("project"), tells: "--version --help -h" }),
  ...named(
    "cross-env cross-env-shell dotenv dotenvx env-cmd husky lint-staged changeset semantic-release",
    always("ask", "project"),
  ),
};
