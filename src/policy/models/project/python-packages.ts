import type { Model } from "../model.ts";
import { COMMAND, always, named, type Also, writesUnless } from "./parts.ts";
import { PYTHON_LINTS } from "./python-lints.ts";
import { PYTHONS } from "./python.ts";
import { PYTEST } from "./pytest.ts";

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

const MANAGER_OPTIONS = `-q -v -h --quiet --verbose --no-interaction -n --ansi --no-ansi --no-plugins --no-cache -C:in --directory=in
  --project=loads -P:loads -p:loads`;
const tells: Model = {
  options: `${MANAGER_OPTIONS} --tree -t --all -a --only= --without= --with= --no-dev --top-level -T --outdated!network -o!network --latest!network
    -l!network --path --info --json --format= --lock --strict --short -s --full-path --depth=`,
  operands: "data*",
  fixed: ["settings"],
};
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
