import { fixedEffect, roleEffects } from "./argument-roles.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";
import {
  allOf,
  type Also,
  always,
  COMMAND,
  named,
  noResponseFiles,
  shaped,
  word,
  writesUnless,
} from "./project-arguments.ts";
import { PYTHON_LINTS } from "./python-lints.ts";
import { fileEffects, inlineEffects, inputEffects } from "./shell-builtins.ts";

const FLAGS = /^-[bBdEiIOPqRsSuvx]+$/;

const TELLS = "--version -V -VV --help -h -? --help-env --help-xoptions --help-all";
/** Settings of the interpreter that neither write nor load anything. */
const SETTINGS =
  /^(?:dev|utf8(?:=[01])?|importtime|faulthandler|tracemalloc(?:=\d+)?|no_debug_ranges|frozen_modules(?:=\w+)?|int_max_str_digits=\d+|showrefcount|perf|gil=[01])$/;

/** Its options end at the program: a file, `-c text`, `-m module`, or stdin. */
function python(use: Use): readonly Found[] {
  const found: Found[] = [];
  const { args } = use;
  for (let at = 0; at < args.length;) {
    const arg = args[at] as Arg;
    // It goes on with what comes in by stdin, once the program ends.
    if (GOES_ON.test(arg.value)) found.push(...programEffects(undefined, use));
    if (ENDS.test(arg.value)) return [...found, ...programOf(arg, args.slice(at + 1), use)];
    const words = harmlessWords(arg, args[at + 1]);
    if (words === 0) found.push(use.doubt("option.unknown", arg));
    at += Math.max(words, 1);
  }
  return [...found, ...programEffects(undefined, use)];
}

/** A file, `-`, `--`, `-c` or `-m`, the last two perhaps behind flags. */
const ENDS = /^(?:[^-]|-?$|--$|-[bBdEiIOPqRsSuvx]*[cm])/;
const GOES_ON = /^-[bBdEIOPqRsSuvx]*i/;
const LAST = /^-[bBdEiIOPqRsSuvx]*([cm])([\s\S]*)$/;
const SETTING = /^-[bBdEiIOPqRsSuvx]*([WX])([\s\S]*)$/;

/** How many words an option takes; 0 for one that is not known to be harmless. */
function harmlessWords({ kind, value }: Arg, next: Arg | undefined): 0 | 1 | 2 {
  if (kind !== "literal") return 0;
  if (FLAGS.test(value)) return 1;
  if (value === "--check-hash-based-pycs") return 2;
  const [, letter, attached] = SETTING.exec(value) ?? [];
  if (letter === undefined) return 0;
  const setting = attached === "" ? next?.value : attached;
  if (letter === "X" && (setting === undefined || !SETTINGS.test(setting))) return 0;
  return attached === "" ? 2 : 1;
}

function programOf(first: Arg, rest: readonly Arg[], use: Use): readonly Found[] {
  if (first.value === "--") return programEffects(rest[0], use);
  const [, letter, attached = ""] = LAST.exec(first.value) ?? [];
  if (letter === undefined) return programEffects(first, use);
  const apart = attached === "";
  const value = (apart ? rest[0] : { ...first, value: attached }) ?? first;
  return letter === "c" ? [inlineEffects(value)] : moduleEffects(value, apart ? rest.slice(1) : rest, use);
}

/** Even a module of the language itself may import one of the same name from where it runs. */
function moduleEffects(module: Arg, rest: readonly Arg[], use: Use): readonly Found[] {
  const settings = fixedEffect("settings", use.folder, use.program);
  const known = module.kind === "literal" ? PYTHON_MODULES.get(module.value) : undefined;
  if (known !== undefined) return [settings, ...use.command([word(known, module), ...rest])];
  return [
    { kind: "code", from: "project", path: use.folder, span: module.span },
    { ...use.doubt("operand.unknown", module), ...(isOwn(module, rest) ? { inside: true } : {}) },
  ];
}

/** Modules of the language, and well-known ones, that ask the network or run what they are told. */
const REACHING =
  /^(?:smtpd|smtplib|ftplib|telnetlib|nntplib|poplib|imaplib|webbrowser|xmlrpc|urllib|http|asyncio|code|pdb|bdb|trace|runpy|idlelib|socket\w*|ssl|twine|keyring|wheel|easy_install|playwright|nltk|spacy|huggingface_hub|awscli|ansible\w*|flit|conda|mamba|requests|httpx|speedtest|boto\w*|invoke|fabric|pyftpdlib|twisted|timeit|uvicorn|gunicorn|jupyter\w*|notebook)(?:\.|$)/;

/** A module that no other project is known for, on the project's own files. */
const isOwn = ({ kind, value }: Arg, rest: readonly Arg[]): boolean =>
  kind === "literal" &&
  /^[a-z_]\w*(?:\.\w+)*$/i.test(value) &&
  !REACHING.test(value) &&
  !rest.some((arg) => OUT.test(arg.value));

/** An address, or a path that leads out. */
const OUT = /:\/\/|(?:^|[=:,])(?:~|\/(?!tmp\/))|(?:^|[=:,/])\.\.(?:\/|$)/;

/** An interpreter with a file, or with none: then it runs what it gets on stdin. */
export const programEffects = (file: Arg | undefined, use: Use): readonly Found[] =>
  file === undefined || file.value === "-" ? inputEffects(use) : [fileEffects(file, use)];

/** Modules that are programs of their own as well. */
const PROGRAMS =
  `pytest pip mypy ruff black isort flake8 pylint pyflakes pycodestyle pydocstyle bandit coverage vulture radon tox nox
  pipx poetry pdm hatch uv pyright basedpyright autopep8 yapf codespell yamllint ansiblelint sqlfluff`.split(
    /\s+/,
  );
const ENTRIES: readonly (readonly [module: string, entry: string])[] = [
  ["py.test", "pytest"],
  ["unittest", "python -m unittest"],
  ["json.tool", "python -m json.tool"],
  ["venv", "python -m venv"],
  ["virtualenv", "python -m venv"],
  ["ensurepip", "python -m ensurepip"],
  ["http.server", "python -m http.server"],
  ["py_compile", "python -m py_compile"],
  ["compileall", "python -m compileall"],
  ["doctest", "python -m doctest"],
  ["site", "python -m site"],
  ["sysconfig", "python -m sysconfig"],
  ["platform", "python -m site"],
  ["this", "python -m site"],
  ["tokenize", "python -m tokenize"],
  ["ast", "python -m tokenize"],
  ["dis", "python -m tokenize"],
  ["tabnanny", "python -m tokenize"],
  ["calendar", "python -m calendar"],
  ["build", "python -m build"],
];

/** Which entry of the table of programs a module is. */
const PYTHON_MODULES: ReadonlyMap<string, string> = new Map([
  ...PROGRAMS.map((name) => [name, name] as const),
  ...ENTRIES,
]);

const MANAGER_OPTIONS = `-q -v -h --quiet --verbose --no-interaction -n --ansi --no-ansi --no-plugins --no-cache -C:in --directory=in
  --project=loads -P:loads -p:loads`;
const tells: Model = {
  options: `${MANAGER_OPTIONS} --tree -t --all -a --only= --without= --with= --no-dev --top-level -T --outdated!network -o!network --latest!network
    -l!network --path --info --json --format= --lock --strict --short -s --full-path --depth=`,
  operands: "data*",
  fixed: ["settings"],
};

const PYTHON: Model = { reads: python, tells: TELLS };

export const PYTHONS: Readonly<Record<string, Model>> = named(
  `python python2 python2.7 python3 python3.6 python3.7 python3.8 python3.9 python3.10 python3.11 python3.12 python3.13
   python3.14 python3.15 pypy pypy3 py`,
  PYTHON,
);

const PYTEST: Model = {
  options: `-x -v -q -s -l -h -k: -m: -r: -n: -d -W: -c:loads -p: -o:loads --tb= --lf --last-failed --ff --failed-first --nf --new-first --sw
    --stepwise --sw-skip --stepwise-skip --sw-reset --stepwise-reset --lfnf= --last-failed-no-failures= --maxfail=
    --exitfirst --co --collect-only --durations= --durations-min= --no-header --no-summary --disable-warnings
    --disable-pytest-warnings --pythonwarnings= --showlocals --no-showlocals --show-capture= --capture= --color=
    --code-highlight= --full-trace --force-short-summary --strict --strict-markers --strict-config --markers --fixtures --funcargs
    --fixtures-per-test --ignore= --ignore-glob= --deselect= --setup-show --setup-only --setup-plan --verbose --quiet
    --verbosity= --xfail-tb --runxfail --noconftest --keep-duplicates --collect-in-virtualenv --cache-clear --cache-show=?
    --doctest-modules --doctest-glob= --doctest-report= --doctest-ignore-import-errors --doctest-continue-on-failure
    --no-fold-skipped --assert= --import-mode= --log-level= --log-cli-level= --log-format= --log-date-format=
    --log-cli-format= --log-disable= --log-file=write --debug=?write!ask --junitxml=write --junit-xml=write --junit-prefix=
    --junitprefix= --report-log=write --html=write --self-contained-html --json-report --json-report-file=write
    --basetemp=tree --rootdir=check --confcutdir=check --config-file=loads --override-ini=loads --pastebin=!network
    --pdb!ask --pdbcls=loads --trace!ask --pyargs!project --plugin=loads --version
    --numprocesses= --dist= --maxprocesses= --cov=? --cov-report= --cov-branch --cov-append --cov-fail-under= --no-cov
    --no-cov-on-fail --cov-context= --cov-config=loads --timeout= --timeout-method= --session-timeout= --asyncio-mode=
    --anyio-mode= --reruns= --reruns-delay= --only-rerun= --rerun-except= --randomly-seed= --randomly-dont-reorganize
    --random-order --random-order-seed= --benchmark-skip --benchmark-only --benchmark-disable --benchmark-enable
    --benchmark-columns= --benchmark-sort= --benchmark-min-rounds= --runslow --run-slow --slow --integration
    --snapshot-update!project --snapshot-details --inline-snapshot=!project --hypothesis-seed= --hypothesis-show-statistics
    --hypothesis-profile= --count= --repeat-scope= --picked=? --testmon --forked --instafail --sugar --no-sugar --ds=
    --reuse-db --create-db --nomigrations --no-migrations --mypy --ruff --flake8 --black --isort --pylint --nbval-lax`,
  operands: "check*",
  tells: "--version -V --help -h",
  fixed: ["check"],
  also: allOf(noResponseFiles, shaped({ "-p": /^no:[\w.]+$/ }), reports),
};

/** `--cov-report=html:folder` names where it goes. */
function reports(use: Use): readonly Found[] {
  return use.options.flatMap(({ name, value }) => {
    const cut = value?.value.indexOf(":") ?? -1;
    if (name !== "--cov-report" || value === null || cut === -1) return [];
    const tail = value.value.slice(cut + 1);
    return tail === "skip-covered"
      ? []
      : roleEffects("write", { ...value, value: tail }, use, { forced: false, recursive: false });
  });
}

/** What `coverage run` takes is a program again. */
const COVERAGE: Model = {
  options: "--version --rcfile=loads",
  commands: {
    ...named("report debug", {
      options: `-m -i --show-missing --include= --omit= --skip-covered --no-skip-covered --skip-empty --sort= --format= --fail-under=
        --precision= --ignore-errors --contexts= --data-file=read --rcfile=loads -q --quiet`,
      operands: "data*",
      fixed: ["check"],
    }),
    ...named("run combine html xml json lcov annotate erase", always("project")),
  },
};

const DJANGO: Model = {
  options: "",
  commands: { ...named("runserver", always("network", "project")) },
  otherwise: always("project"),
};

export const PYTHON_TESTS: Readonly<Record<string, Model>> = {
  ...named("pytest py.test pytest-3", PYTEST),
  coverage: COVERAGE,
  ...named("coverage3 python3-coverage", COVERAGE),
  "django-admin": DJANGO,
  ...named("tox nox", { ...always("install", "project"), tells: "--version --help -h" }),
  ...named("behave robot locust", { ...always("project"), tells: "--version --help -h" }),
};

/** Modules that are no programs: under names that no command has. */
export const MODULES: Readonly<Record<string, Model>> = {
  "python -m unittest": {
    options:
      "-v -q -f -b -c -k: -s:check -p: -t:check --verbose --quiet --failfast --buffer --catch --locals --durations= --start-directory=check --pattern= --top-level-directory=check",
    operands: "check*",
    fixed: ["check"],
  },
  "python -m json.tool": {
    options: "--sort-keys --no-ensure-ascii --json-lines --indent= --tab --no-indent --compact",
    operands: "read write",
  },
  "python -m venv": { ...always("install"), tells: "--version --help -h" },
  "python -m ensurepip": always("install"),
  "python -m build": always("install", "project"),
  // It answers whoever asks it, and asks nobody.
  "python -m http.server": { reads: () => [{ kind: "network", hosts: [], inside: true }] },
  "python -m py_compile": { options: "-q --quiet", operands: "check*", fixed: ["check"] },
  "python -m compileall": { options: "-q -f -l -r: -j: -x: -b -d:loads", operands: "write*|." },
  "python -m doctest": {
    options: "-v -o: -f --verbose --fail-fast --option=",
    operands: "check*",
    fixed: ["check"],
  },
  "python -m site": { options: "--user-base --user-site", operands: "data*" },
  "python -m sysconfig": { options: "--generate-posix-vars!project", operands: "data*" },
  "python -m tokenize": { options: "-e -m: -a -i: -v -C -O -S", operands: "read*" },
  "python -m calendar": { options: "-t: -L: -y -m", operands: "data*" },
};

const PIP_OPTIONS = `-q -v -h -V --quiet --verbose --isolated --no-color --no-input --disable-pip-version-check --no-cache-dir
  --no-python-version-warning --require-virtualenv --debug --log=write --cache-dir=write --python=loads --proxy=!network --cert=loads
  --client-cert=loads --index-url=!network -i:!network --extra-index-url=!network --trusted-host=!network --find-links=loads
  --timeout= --retries= --exists-action=`;
const pipTells: Model = {
  options: `${PIP_OPTIONS} -f -l -e --format= --local --user --not-required --editable --exclude-editable --include-editable --pre --exclude= --all --files
    --no-index --path=read -r:read --requirement=read -u!network --uptodate!network -o!network --outdated!network`,
  operands: "data*",
  fixed: ["settings"],
};

const PIP: Model = {
  options: PIP_OPTIONS,
  tells: "--version -V --help -h",
  commands: {
    ...named("list show freeze check inspect debug help completion", pipTells),
    ...named("install download wheel uninstall lock", always("install")),
    ...named("index search", always("network")),
    config: {
      options: PIP_OPTIONS,
      commands: { ...named("list get debug", pipTells), ...named("set unset edit", always("ask")) },
    },
    cache: {
      options: PIP_OPTIONS,
      commands: { ...named("dir info list", pipTells), ...named("remove purge", always("ask")) },
    },
    hash: { options: "-a: --algorithm=", operands: "read*" },
  },
};

/** Programs that a project's environment runs by these names; anything else in it is the project's own. */
const IN_ENVIRONMENT: Readonly<Record<string, Model>> = { ...PYTHON_LINTS, pytest: PYTEST, ...PYTHONS };
const run: Model = { options: "", commands: IN_ENVIRONMENT, otherwise: COMMAND };

/** With a word it writes the new one into the project. */
const changesVersion: Also = ({ operands, folder }) =>
  operands.length === 0 ? [] : [{ kind: "write", path: folder }];

const manager = (more: Readonly<Record<string, Model>>): Model => ({
  options: MANAGER_OPTIONS,
  tells: "--version -V --help -h",
  commands: {
    run,
    ...named("show list check about graph info help where", tells),
    venv: {
      options: MANAGER_OPTIONS,
      commands: { list: tells, ...named("create remove purge activate", always("install")) },
    },
    ...named(
      "install add remove update lock sync upgrade uninstall export init new self python tool cache source",
      always("install"),
    ),
    ...named("publish login search", always("network")),
    ...named("build shell", always("project")),
    version: { ...tells, also: changesVersion },
    env: {
      options: MANAGER_OPTIONS,
      commands: {
        ...named("list info show find", tells),
        ...named("create use activate remove prune run", always("install")),
      },
    },
    ...more,
  },
});

const UV_OPTIONS = `-q -v -n -h --quiet --verbose --offline --no-progress --no-cache --no-config --color= --native-tls --frozen --locked --no-sync
  --directory=in --project=check --cache-dir=write --config-file=loads`;
const uvTells: Model = {
  options: `${UV_OPTIONS} --format= --depth= --package= --no-dev --invert --no-dedupe --universal --all-groups --group= --only-group= --short
    --exclude= -e --editable --strict --python=loads -p:loads --system --files --outdated!network`,
  operands: "data*",
  fixed: ["settings"],
};
const UV: Model = {
  options: UV_OPTIONS,
  tells: "--version -V --help -h",
  commands: {
    version: { ...uvTells, also: changesVersion },
    // It brings its lock file up to date, unless told not to.
    tree: { ...uvTells, also: writesUnless("--frozen", "--locked") },
    help: uvTells,
    pip: {
      options: UV_OPTIONS,
      commands: {
        ...named("list show freeze check tree", uvTells),
        ...named("install uninstall sync compile", always("install")),
      },
    },
    ...named("run tool build", always("install", "project")),
    ...named("sync add remove lock python venv init self cache export", always("install")),
    ...named("publish auth", always("network")),
  },
};

const CONDA: Model = {
  options: "-q -v -h --json",
  tells: "--version -V --help -h",
  commands: {
    ...named("list info", {
      options: "-n: -p:read -e -f --json --name= --export --no-pip --all -a",
      operands: "data*",
      fixed: ["settings"],
    }),
    env: {
      commands: {
        list: { options: "--json", fixed: ["settings"] },
        ...named("create update remove export config", always("install")),
      },
    },
    ...named(
      "install create update upgrade remove uninstall clean search activate deactivate init config run",
      always("install", "project"),
    ),
  },
};

export const PYTHON_PACKAGES: Readonly<Record<string, Model>> = {
  ...named("pip pip2 pip3 pip3.9 pip3.10 pip3.11 pip3.12 pip3.13 pip3.14", PIP),
  uv: UV,
  ...named("uvx pipx", { ...always("install", "project"), tells: "--version --help -h" }),
  poetry: manager({ config: always("ask"), debug: tells }),
  pipenv: manager({ check: always("network"), verify: tells }),
  pdm: manager({ show: always("network"), config: always("ask") }),
  hatch: manager({ ...named("test fmt clean config dep status", always("install", "project")) }),
  ...named("conda mamba micromamba", CONDA),
  ...named("pyenv virtualenv easy_install rye pixi", {
    ...always("install"),
    tells: "--version -V --help -h",
  }),
  pipdeptree: {
    options:
      "-p: -r -f -w: -l --packages= --reverse --json --json-tree --warn= --local-only --user-only --all --python=loads -o:",
    fixed: ["settings"],
  },
};
