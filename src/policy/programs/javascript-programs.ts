import { fixedEffect, roleEffects } from "./argument-roles.ts";
import { JAVASCRIPT_LINTS, JAVASCRIPT_TESTS } from "./javascript-checks.ts";
import { COVERED, REPORTERS, runsScript } from "./node-programs.ts";
import { type Arg, type Found, type Model, UNKNOWN, type Use } from "./program-model.ts";
import { addresses, allOf, always, named, only, writesUnless } from "./project-arguments.ts";
import { programEffects } from "./python-programs.ts";

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/** Options that are on or off, and may say so in the next word. */
const SWITCHES =
  words(`all allowarbitraryextensions allowimportingtsextensions allowjs allowsyntheticdefaultimports allowumdglobalaccess
  allowunreachablecode allowunusedlabels alwaysstrict assumechangesonlyaffectdirectdependencies checkjs composite
  declaration d declarationmap diagnostics disablereferencedprojectload disablesizelimit disablesolutionsearching
  downleveliteration emitdecoratormetadata emitdeclarationonly erasablesyntaxonly esmoduleinterop
  exactoptionalpropertytypes experimentaldecorators explainfiles extendeddiagnostics
  forceconsistentcasinginfilenames importhelpers incremental i inlinesourcemap inlinesources isolateddeclarations
  isolatedmodules keyofstringsonly libreplacement listemittedfiles listfiles listfilesonly noemit noemithelpers
  noemitonerror noerrortruncation nofallthroughcasesinswitch noimplicitany noimplicitoverride noimplicitreturns
  noimplicitthis nolib nopropertyaccessfromindexsignature noresolve nostricgenericchecks nouncheckedindexedaccess
  nouncheckedsideeffectimports nounusedlocals nounusedparameters preserveconstenums preservesymlinks
  preservewatchoutput pretty removecomments resolvejsonmodule resolvepackagejsonexports
  resolvepackagejsonimports rewriterelativeimportextensions showconfig singlethreaded skipdefaultlibcheck
  skiplibcheck sourcemap strict strictbindcallapply strictbuiltiniteratorreturn strictfunctiontypes
  strictnullchecks strictpropertyinitialization stripinternal suppressexcesspropertyerrors
  suppressimplicitanyindexerrors traceresolution usedefineforclassfields useunknownincatchvariables
  verbatimmodulesyntax verbose v force f dry build b stopbuildonerrors quiet noerrortruncation`);

const SAID: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
  ["null", false],
]);

/** What is not known may be an option. */
const isValue = ({ value }: Arg): boolean => !value.startsWith("-") && !value.startsWith(UNKNOWN);

const CHECKED = words("project p rootdir baseurl");
const WRITTEN = words(
  "outdir outfile out declarationdir tsbuildinfofile generatetrace generatecpuprofile pprofdir",
);

const VALUES =
  words(`charset customconditions ignoredeprecations jsx jsxfactory jsxfragmentfactory jsximportsource lib locale maxnodemodulejsdepth
  maproot module m moduledetection moduleresolution modulesuffixes newline reactnamespace sourceroot target t types
  checkers builders typeroots`);

/** With one of these it writes nothing beside what tells it that nothing has changed. */
const QUIET = ["noemit", "showconfig", "listfilesonly", "dry"];

const MONOREPO = `-t: -p: -F: -v --target= --targets= --projects= --filter= --scope= --ignore= --exclude= --all --parallel=? --maxParallel= --skip-nx-cache
  --skipNxCache --nxBail --no-cache --force=? --output-logs= --outputStyle= --output-style= --concurrency= --continue=? --dry=?
  --dry-run=? --only --affected --no-daemon --ui= --log-order= --log-prefix= --verbosity= --verbose --base= --head= --since=?
  --stream --no-bail --no-prefix --no-sort --summarize=? --configuration= -c: --tui=? --no-tui --json --include-dependencies
  --include-dependents --graph=write --cwd=loads --runner=loads --cache-dir=write --api=!network --token=!network
  --remote-cache-timeout=!network --profile=write`;

const tells: Model = { options: MONOREPO, operands: "data*", fixed: ["settings"] };

const TSC: Model = { reads: typescript, tells: "--version -v -V --help -h --all -help" };

const TYPESCRIPT: Readonly<Record<string, Model>> = {
  ...named("tsc vue-tsc tsgo", TSC),
  "svelte-check": {
    options: `--output= --no-tsconfig --tsconfig=check --workspace=check --ignore= --fail-on-warnings --compiler-warnings= --diagnostic-sources=
      --threshold= --color --no-color --watch!ask --preserveWatchOutput --config=loads`,
    fixed: ["check"],
  },
  astro: {
    options: "--config=loads --root=check",
    commands: {
      check: {
        options:
          "--root=check --minimumFailingSeverity= --minimumSeverity= --noSync --tsconfig=check --watch!ask --config=loads --verbose --silent",
        fixed: ["check"],
      },
    },
  },
};

/** Tools of a JavaScript project that check it; package managers start them by the same names. */
export const CHECKERS: Readonly<Record<string, Model>> = {
  ...JAVASCRIPT_TESTS,
  ...JAVASCRIPT_LINTS,
  ...TYPESCRIPT,
};

const MEASURED = new Set(["node", ...Object.keys(CHECKERS)]);

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

/** Tasks of a repository of packages are scripts of the packages, whatever they are called. */
const runsTasks: Model = { options: MONOREPO, operands: "data*", fixed: ["project"] };

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

interface Seen {
  readonly found: Found[];
  readonly on: Map<string, boolean>;
}

/** The compiler's own grammar: names of any case, one dash or two, and switches that take `true` or `false`. */
function typescript(use: Use): readonly Found[] {
  const seen: Seen = { found: [fixedEffect("check", use.folder, use.program)], on: new Map() };
  let at = 0;
  while (at < use.args.length) at += argument(use.args[at] as Arg, use.args[at + 1], { use, seen });
  if (!QUIET.some((name) => seen.on.get(name) === true)) seen.found.push({ kind: "write", path: use.folder });
  return seen.found;
}

/** How many words it took. */
function argument(arg: Arg, next: Arg | undefined, at: At): 1 | 2 {
  const { use, seen } = at;
  if (!arg.value.startsWith("-")) {
    seen.found.push(...operand(arg, use));
    return 1;
  }
  const name = arg.value.replace(/^--?/, "").toLowerCase();
  if (arg.kind === "literal" && SWITCHES.has(name)) {
    const said = next?.kind === "literal" ? SAID.get(next.value.toLowerCase()) : undefined;
    seen.on.set(name, said ?? true);
    return said === undefined ? 1 : 2;
  }
  if (arg.kind === "literal" && next !== undefined && isValue(next) && valued(name, next, at)) return 2;
  seen.found.push(use.doubt("option.unknown", arg));
  return 1;
}

interface At {
  readonly use: Use;
  readonly seen: Seen;
}

function valued(name: string, value: Arg, { use, seen }: At): boolean {
  const role = CHECKED.has(name) ? "check" : WRITTEN.has(name) ? "write" : null;
  if (role !== null) seen.found.push(...roleEffects(role, value, use, { forced: false, recursive: false }));
  return role !== null || VALUES.has(name);
}

/** `@file` holds more arguments. */
function operand(arg: Arg, use: Use): readonly Found[] {
  if (arg.value.startsWith("@")) return [use.doubt("option.loads-code", arg)];
  const certain = arg.kind === "literal" || (arg.kind === "glob" && /^\w/.test(arg.value));
  const doubts = certain ? [] : [use.doubt("word.dynamic", arg)];
  return [...doubts, ...roleEffects("check", arg, use, { forced: false, recursive: false })];
}

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
