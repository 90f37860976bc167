import type { Recipe } from "../../../src/docker/environments/recipe.ts";

/** The files of a repository, and the recipe that must be detected from them. */
export interface Shape {
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
  readonly recipe: Partial<Recipe>;
  /** Texts that must be in the list of things not taken. */
  readonly notTaken?: readonly string[];
}

const step = (run: string, folder = "."): Recipe["setup"][number] => ({ run, folder });
const CI = "npm ci --ignore-scripts";
const INSTALL = "npm install --no-package-lock --ignore-scripts";
const VENV = ["python3 -m venv .venv", ".venv/bin/python -m pip install --quiet --upgrade pip"];
const venv = (last: string, folder = "."): Recipe["setup"] =>
  [...VENV, `.venv/bin/python -m pip install --quiet ${last}`].map((run) => step(run, folder));
/** The same for a project that is built: what builds it comes first. */
const built = (last: string, by = "setuptools wheel", lists?: string): Recipe["setup"] => {
  const steps = venv(last);
  const before = [...(lists === undefined ? [] : [lists]), by];
  const pip = before.map((words) => step(`.venv/bin/python -m pip install --quiet ${words}`));
  return [...steps.slice(0, 2), ...pip, ...steps.slice(2)];
};
/** Compiles ahead of the tests. */
const compile = (run: string, folder = "."): Recipe["setup"][number] => ({ run, folder, optional: true });
const go = (folder = "."): Recipe["setup"] => [
  step("go mod download", folder),
  compile("go test -run '^$' ./...", folder),
];
const maven = (folder = "."): Recipe["setup"] => {
  const tests = "mvn -B -ntp -Dmaven.compiler.failOnError=false -Dmaven.test.failure.ignore=true test";
  const stand =
    "echo 'public class NoTest {}' >/tmp/NoTest.java; find . -path '*/target/test-classes' -exec javac -d {} /tmp/NoTest.java ';'";
  const strict = "mvn -B -ntp -q test-compile";
  return [
    step(tests, folder),
    compile(`${strict} >/dev/null || { ${stand}; ${tests} >/dev/null; ${strict}; }`, folder),
  ];
};
const gradle = (run: string): Recipe["setup"] => [
  step(`echo '${RESOLVE}' >/tmp/resolve.gradle && ${run} --no-daemon -q -I /tmp/resolve.gradle resolveAll`),
  compile(`${run} --no-daemon testClasses`),
];
const RESOLVE =
  'allprojects { tasks.create("resolveAll") { doLast { configurations.findAll { it.canBeResolved }.each { def found = it.resolvedConfiguration; found.lenientConfiguration.artifacts*.file; if (it.name.endsWith("lasspath")) found.rethrowFailure() } } } }';
const DEPS = JSON.stringify({ dependencies: { a: "1.0.0" } });

export const SHAPES: readonly Shape[] = [
  {
    name: "nothing that says anything",
    files: { "README.md": "hello" },
    recipe: { setup: [], toolchains: {}, folders: [] },
  },
  {
    name: "npm with a lock file",
    files: { "package.json": DEPS, "package-lock.json": "{}" },
    recipe: { toolchains: { node: null }, registries: ["npm"], setup: [step(CI)], folders: ["node_modules"] },
  },
  {
    name: "npm with a shrinkwrap",
    files: { "package.json": DEPS, "npm-shrinkwrap.json": "{}" },
    recipe: { setup: [step(CI)] },
  },
  { name: "npm without a lock file", files: { "package.json": DEPS }, recipe: { setup: [step(INSTALL)] } },
  {
    name: "a package.json without dependencies",
    files: { "package.json": '{"scripts":{"test":"node --test"}}' },
    recipe: { setup: [], folders: [], toolchains: { node: null } },
  },
  {
    name: "a package.json that is no JSON",
    files: { "package.json": "{", "package-lock.json": "{}" },
    recipe: { setup: [step(CI)] },
  },
  {
    name: "a native addon of npm",
    files: { "package.json": DEPS, "package-lock.json": "{}", "binding.gyp": "{}" },
    recipe: {
      packages: ["g++"],
      setup: [step(CI)],
      folders: ["node_modules"],
    },
    notTaken: ["npm exec -c 'node-gyp rebuild'"],
  },
  {
    name: "a native addon without dependencies",
    files: { "package.json": "{}", "binding.gyp": "{}" },
    recipe: { packages: ["g++"], setup: [] },
    notTaken: ["npm exec -c 'node-gyp rebuild'"],
  },
  {
    name: "pnpm, its version pinned",
    files: { "package.json": '{"packageManager":"pnpm@9.15.0"}', "pnpm-lock.yaml": "lockfileVersion: 9" },
    recipe: {
      managers: { pnpm: "9.15.0" },
      setup: [step("pnpm install --frozen-lockfile --ignore-scripts")],
      registries: ["npm"],
    },
  },
  {
    name: "yarn of the first kind",
    files: { "package.json": DEPS, "yarn.lock": "# yarn lockfile v1" },
    recipe: {
      managers: { yarn: null },
      setup: [step("yarn install --frozen-lockfile --ignore-scripts --non-interactive")],
    },
  },
  {
    name: "yarn of today without a lock file",
    files: { "package.json": '{"packageManager":"yarn@4.5.0"}' },
    recipe: { managers: { yarn: "4.5.0" }, setup: [step("YARN_ENABLE_SCRIPTS=0 yarn install")] },
  },
  {
    name: "yarn of today",
    files: {
      "package.json": '{"packageManager":"yarn@4.5.0+sha512.abc"}',
      "yarn.lock": "__metadata:\n  version: 8",
    },
    recipe: {
      managers: { yarn: "4.5.0" },
      setup: [step("YARN_ENABLE_SCRIPTS=0 yarn install --immutable")],
    },
  },
  {
    name: "a lock file of Berry's alone: the release that wrote it",
    files: { "package.json": DEPS, "yarn.lock": "# by yarn\n\n__metadata:\n  version: 6\n" },
    recipe: { managers: { yarn: "3" } },
  },
  {
    name: "bun",
    files: { "package.json": DEPS, "bun.lock": "{}" },
    recipe: {
      managers: { bun: null },
      setup: [step("bun install --frozen-lockfile --ignore-scripts")],
      registries: ["npm"],
      folders: ["node_modules"],
    },
  },
  {
    name: "bun, named by the manifest",
    files: { "package.json": '{"packageManager":"bun@1.2.0"}' },
    recipe: { managers: { bun: "1.2.0" }, setup: [step("bun install --ignore-scripts")] },
  },
  {
    name: "deno",
    files: { "deno.json": '{"imports":{"a":"npm:a@1"}}', "deno.lock": '{"version":"5"}' },
    recipe: {
      managers: { deno: null },
      toolchains: {},
      registries: ["npm"],
      setup: [step("deno install --frozen")],
      folders: [],
    },
  },
  {
    name: "deno with modules from elsewhere",
    files: {
      "deno.json": '{"imports":{"a":"https://mods.example.org/a.ts","b":"jsr:@a/b"}}',
      "package.json": "{}",
    },
    recipe: { toolchains: {}, setup: [step("deno install")], folders: ["node_modules"] },
    notTaken: ["--allow-domain mods.example.org"],
  },
  {
    name: "deno's settings beside a lock file of npm",
    files: { "deno.json": "{}", "package.json": DEPS, "package-lock.json": "{}" },
    recipe: { managers: {}, setup: [step(CI)] },
  },
  {
    name: "scripts that an installation would run are named, except those that only set up hooks",
    files: {
      "package.json": JSON.stringify({
        scripts: { postinstall: "patch-package", prepare: "husky", test: "a" },
      }),
      "package-lock.json": `{
  "packages": {
    "node_modules/sqlite": {
      "hasInstallScript": true
    },
    "node_modules/fsevents": {
      "hasInstallScript": true,
      "optional": true
    },
    "node_modules/plain": {
      "version": "1.0.0"
    }
  }
}`,
    },
    recipe: { setup: [step(CI)] },
    notTaken: [
      "the project's postinstall script is not run (patch-package)",
      'install scripts of packages are not run: sqlite. If the tests need one, write a recipe, .harness/env.json: {"detected": true, "packages": ["g++"], "setup": [{"run": "npm rebuild sqlite"}]}',
    ],
  },
  {
    name: "npm workspaces: one installation, a folder for each member",
    files: {
      "package.json": '{"workspaces":["packages/*"]}',
      "package-lock.json": "{}",
      "packages/a/package.json": DEPS,
      "packages/b/package.json": DEPS,
    },
    recipe: {
      setup: [step(CI)],
      folders: ["node_modules", "packages/a/node_modules", "packages/b/node_modules"],
    },
  },
  {
    name: "npm workspaces: a lock file names the members that have a folder of their own",
    files: {
      "package.json": '{"workspaces":{"packages":["./packages/*/"]}}',
      "package-lock.json": `{
  "packages": {
    "packages/a/node_modules/x": {
      "version": "1.0.0"
    }
  }
}`,
      "packages/a/package.json": DEPS,
      "packages/b/package.json": DEPS,
    },
    recipe: { setup: [step(CI)], folders: ["node_modules", "packages/a/node_modules"] },
  },
  {
    name: "a project with its own lock file below a workspace, of which it is no member",
    files: {
      "package.json": "{}",
      "pnpm-lock.yaml": "lockfileVersion: 9",
      "pnpm-workspace.yaml":
        "packages:\n  # all\n  - 'packages/*'\n  - \"{apps,tools}/*\"\n  - '!packages/old'\n\ncatalog:\n  - x\n",
      "packages/a/package.json": DEPS,
      "packages/old/package.json": DEPS,
      "packages/old/package-lock.json": "{}",
      "apps/b/package.json": DEPS,
      "apps/b/package-lock.json": "{}",
      "site/package.json": DEPS,
      "site/package-lock.json": "{}",
      "template/package.json": DEPS,
    },
    recipe: {
      setup: [
        step("pnpm install --frozen-lockfile --ignore-scripts"),
        step(CI, "site"),
        step(CI, "packages/old"),
      ],
      folders: [
        "node_modules",
        "site/node_modules",
        "apps/b/node_modules",
        "packages/a/node_modules",
        "packages/old/node_modules",
      ],
    },
  },
  {
    name: "two projects side by side, each with its own lock file",
    files: { "web/package.json": DEPS, "web/package-lock.json": "{}", "api/go.mod": "module a\ngo 1.22" },
    recipe: {
      toolchains: { node: null, go: null },
      setup: [...go("api"), step(CI, "web")],
      folders: ["web/node_modules"],
    },
  },
  {
    name: ".nvmrc",
    files: { "package.json": DEPS, ".nvmrc": "v20.11.1\n" },
    recipe: { toolchains: { node: "20.11.1" } },
  },
  {
    name: ".nvmrc with a name",
    files: { "package.json": DEPS, ".nvmrc": "lts/*" },
    recipe: { toolchains: { node: null } },
  },
  {
    name: ".node-version",
    files: { "package.json": DEPS, ".node-version": "22" },
    recipe: { toolchains: { node: "22" } },
  },
  {
    name: "engines with an upper end",
    files: { "package.json": '{"engines":{"node":">=18 <21"},"dependencies":{"a":"1"}}' },
    recipe: { toolchains: { node: "20" } },
  },
  {
    name: "engines without one bind nothing",
    files: { "package.json": '{"engines":{"node":">=18"},"dependencies":{"a":"1"}}' },
    recipe: { toolchains: { node: null } },
  },
  {
    name: ".tool-versions of several languages",
    files: {
      ".tool-versions": "nodejs 20.1.0 18.0.0\npython 3.11.2 # ours\ngolang 1.22.3\nterraform 1.5",
      "package.json": DEPS,
      "requirements.txt": "flask",
      "go.mod": "module a",
    },
    recipe: { toolchains: { node: "20.1.0", python: "3.11.2", go: "1.22.3" } },
  },
  {
    name: "requirements files, those of the tests too",
    files: { "requirements.txt": "a", "requirements-dev.txt": "b" },
    recipe: {
      toolchains: { python: null },
      packages: ["python3-venv", "python3-dev", "g++"],
      registries: ["pip"],
      setup: venv("-r requirements-dev.txt -r requirements.txt"),
      folders: [".venv"],
    },
  },
  {
    name: "requirements with hashes, which are kept to, beside others without",
    files: { "requirements.txt": "a==1 \\\n    --hash=sha256:00", "requirements-dev.txt": "b" },
    recipe: {
      setup: [
        ...venv("--require-hashes -r requirements.txt"),
        step(".venv/bin/python -m pip install --quiet -r requirements-dev.txt"),
      ],
    },
  },
  {
    name: "pyproject.toml with extras for tests",
    files: {
      "pyproject.toml":
        '[project]\nname="a"\n[project.optional-dependencies]\ntest=["pytest"]\ngpu=["torch"]\n[build-system]\nrequires=[]',
      ".python-version": "3.11",
    },
    recipe: { toolchains: { python: "3.11" }, setup: built("-e '.[test]'") },
  },
  {
    name: "pyproject.toml with a group",
    files: { "pyproject.toml": '[project]\nname="a"\n[dependency-groups]\ndev=["pytest"]' },
    recipe: { setup: built("-e . --group dev") },
  },
  {
    name: "a build and what it is made with",
    files: {
      "pyproject.toml":
        '[project]\nname="a"\n[build-system]\nrequires=["setuptools>=64", "setuptools-scm[toml]>=8", "x; touch y"]',
    },
    recipe: { setup: built("-e .", "'setuptools>=64' 'setuptools-scm[toml]>=8' wheel") },
  },
  {
    name: "hatch's environments for tests",
    files: {
      "pyproject.toml":
        '[project]\nname="a"\n[build-system]\nrequires=["hatchling"]\n[tool.hatch.envs.default]\ndependencies=["mock>=5", "x; touch y"]\nfeatures=["cli"]\n[tool.hatch.envs.hatch-test]\nextra-dependencies=["anyio"]\n[tool.hatch.envs.docs]\ndependencies=["sphinx"]',
    },
    recipe: { setup: built("-e '.[cli]' 'mock>=5' 'anyio' 'pytest'", "hatchling editables") },
  },
  {
    name: "lists in a folder of their own: the main one, and that of the tests",
    files: {
      "requirements/base.txt": "flask",
      "requirements/prod.txt": "gunicorn",
      "requirements/dev.txt": "-r test.txt\nmypy",
      "requirements/test.txt": "pytest",
    },
    recipe: { setup: venv("-r requirements/base.txt -r requirements/test.txt"), folders: [".venv"] },
  },
  {
    name: "lists in a folder of their own beside one at the top",
    files: {
      "requirements.txt": "flask",
      "requirements/base.txt": "flask",
      "requirements/local.txt": "pytest",
    },
    recipe: { setup: venv("-r requirements.txt -r requirements/local.txt") },
  },
  {
    name: "tests of pytest, and nothing installs it",
    files: { "requirements.txt": "flask", "tests/conftest.py": "" },
    recipe: {
      setup: [...venv("-r requirements.txt"), step(".venv/bin/python -m pip install --quiet pytest")],
    },
  },
  {
    name: "pyproject.toml that only sets up tools",
    files: { "pyproject.toml": "[tool.ruff]\nline-length = 100" },
    recipe: { setup: [], toolchains: {} },
  },
  {
    name: "tests that tox sets up",
    files: {
      "setup.py": "",
      "tox.ini": `[tox]
env_list = py3
[testenv]
extras = cli
deps =
    pytest>=7, <9  # the runner
    -r{toxinidir}/requirements/tests.txt
    py27: mock
    -r ../elsewhere.txt
    x; touch y
commands = pytest
[testenv:docs]
deps = sphinx
`,
    },
    recipe: { setup: built("-e '.[cli]' -r requirements/tests.txt 'pytest>=7, <9'") },
  },
  {
    name: "an extra for tests comes before tox",
    files: {
      "pyproject.toml": '[project]\nname="x"\n[project.optional-dependencies]\ntest=["pytest"]',
      "tox.ini": "[testenv]\ndeps = nose",
    },
    recipe: { setup: built("-e '.[test]'") },
  },
  {
    name: "pytest is set up, and nothing installs it",
    files: { "requirements.txt": "flask", "pytest.ini": "[pytest]" },
    recipe: {
      setup: [...venv("-r requirements.txt"), step(".venv/bin/python -m pip install --quiet pytest")],
    },
  },
  {
    name: "pytest is set up, and a list installs it",
    files: { "requirements.txt": "flask\npytest==8.1", "pytest.ini": "[pytest]" },
    recipe: { setup: venv("-r requirements.txt") },
  },
  {
    name: "lists for the tests of some versions beside the list for tests",
    files: {
      "pyproject.toml": '[project]\nname="a"\n[tool.pytest.ini_options]\n',
      "requirements/tests.txt": "pytest==8.3.2",
      "requirements/tests37.txt": "pytest==7.4.4",
      "requirements/tests-dev.txt": "https://git.example/main.tar.gz",
    },
    recipe: { setup: built("-e .", undefined, "-r requirements/tests.txt") },
  },
  {
    name: "a list beside the tests",
    files: { "pyproject.toml": '[project]\nname="a"\n', "tests/requirements.txt": "pytest" },
    recipe: { setup: built("-e .", undefined, "-r tests/requirements.txt") },
  },
  {
    name: "setup.py",
    files: { "setup.py": "from setuptools import setup" },
    recipe: { setup: built("-e .") },
  },
  {
    name: "uv",
    files: { "pyproject.toml": '[project]\nname="a"', "uv.lock": "version = 1" },
    recipe: {
      managers: { uv: null },
      setup: [step("uv sync --frozen --all-extras --all-groups")],
      folders: [".venv"],
    },
  },
  {
    name: "a workspace of uv without a lock file: its members are in no registry",
    files: {
      "pyproject.toml":
        '[project]\nname="a"\ndependencies=["b"]\n[tool.uv.sources]\nb = { workspace = true }\n[tool.uv.workspace]\nmembers=["packages/*"]',
      "packages/b/pyproject.toml": '[project]\nname="b"\n',
    },
    recipe: { managers: { uv: null }, setup: [step("uv sync --all-extras --all-groups")] },
  },
  {
    name: "groups that only uv reads",
    files: { "pyproject.toml": '[project]\nname="a"\n[tool.uv]\ndev-dependencies = ["pytest"]\n' },
    recipe: { managers: { uv: null }, setup: [step("uv sync --all-extras --all-groups")] },
  },
  {
    name: "a project of poetry that tells uv where to find a package",
    files: {
      "pyproject.toml": '[project]\nname="a"\n[tool.uv.sources]\nb = { path = "b" }\n',
      "poetry.lock": "",
    },
    recipe: { managers: { poetry: null } },
  },
  {
    name: "groups that only pdm reads",
    files: {
      "pyproject.toml": '[project]\nname="a"\n[tool.pdm.dev-dependencies]\ntest = ["pytest"]\n',
    },
    recipe: {
      managers: { pdm: null },
      setup: [step("python3 -m venv .venv"), step("pdm install --group :all")],
    },
  },
  {
    name: "poetry",
    files: { "pyproject.toml": "[tool.poetry]", "poetry.lock": "" },
    recipe: { managers: { poetry: null }, setup: [step("poetry install --no-interaction")] },
  },
  {
    name: "pipenv",
    files: { Pipfile: "", "Pipfile.lock": "{}" },
    recipe: {
      managers: { pipenv: null },
      setup: [step("python3 -m venv .venv"), step("pipenv sync --dev")],
      registries: ["pip"],
    },
  },
  {
    name: "pipenv without a lock file",
    files: { Pipfile: "" },
    recipe: { setup: [step("python3 -m venv .venv"), step("pipenv install --dev --skip-lock")] },
  },
  {
    name: "pdm",
    files: { "pyproject.toml": '[project]\nname="a"', "pdm.lock": "" },
    recipe: {
      managers: { pdm: null },
      setup: [step("python3 -m venv .venv"), step("pdm sync --group :all")],
    },
  },
  {
    name: "poetry without a lock file, with groups that only poetry reads",
    files: { "pyproject.toml": '[tool.poetry]\n[tool.poetry.group.dev.dependencies]\npytest = "8"\n' },
    recipe: { managers: { poetry: null }, setup: [step("poetry install --no-interaction")] },
  },
  {
    name: "poetry's old group of its own project",
    files: { "pyproject.toml": '[tool.poetry]\n[tool.poetry.dev-dependencies]\npytest = "8"\n' },
    recipe: { managers: { poetry: null }, setup: [step("poetry install --no-interaction")] },
  },
  {
    name: "hooks of pre-commit",
    files: { ".pre-commit-config.yaml": "repos: []" },
    recipe: { setup: [], packages: [] },
    notTaken: ["hooks of pre-commit are not installed"],
  },
  {
    name: "a project of poetry below one of uv",
    files: {
      "pyproject.toml": '[project]\nname="a"\n[tool.uv.workspace]\nmembers=["packages/*"]',
      "uv.lock": "",
      "packages/b/pyproject.toml": '[project]\nname="b"',
      "tools/poetry.lock": "",
    },
    recipe: {
      setup: [
        step("uv sync --frozen --all-extras --all-groups"),
        step("poetry install --no-interaction", "tools"),
      ],
    },
  },
  {
    name: "go, its toolchain named",
    files: { "go.mod": "module a\n\ngo 1.21\n\ntoolchain go1.22.3\n", "go.sum": "" },
    recipe: {
      toolchains: { go: "1.22.3" },
      registries: ["go"],
      setup: go(),
      folders: [],
      env: {},
    },
  },
  {
    name: "go: the least version that it needs is no wish for an old one",
    files: { "go.mod": "module a\ngo 1.15\n" },
    recipe: {
      toolchains: { go: null },
      registries: ["go"],
      setup: go(),
      env: { GOFLAGS: "-mod=mod" },
    },
  },
  {
    name: "a workspace of go modules: one set-up for all that it uses",
    files: {
      "go.work": 'go 1.22\n\nuse ./a // first\nuse (\n\t./b\n\t"./c"\n)\n',
      "a/go.mod": "module a\ngo 1.22",
      "a/go.sum": "x",
      "b/go.mod": "module b\ngo 1.22",
      "other/go.mod": "module o\ngo 1.22",
    },
    recipe: {
      toolchains: { go: null },
      registries: ["go"],
      setup: [step("go mod download"), compile("go list -f '{{.Dir}}/...' -m | xargs go test -run '^$'")],
      env: {},
    },
  },
  {
    name: "go with its modules in the repository",
    files: { "go.mod": "module a\ngo 1.22", "vendor/modules.txt": "# b" },
    recipe: { registries: [], setup: go().slice(1), env: {} },
  },
  {
    name: "cargo with a lock file and a channel",
    files: {
      "Cargo.toml": "[package]",
      "Cargo.lock": "",
      "rust-toolchain.toml": '[toolchain]\nchannel = "1.75"\n',
    },
    recipe: {
      toolchains: { rust: "1.75" },
      registries: ["cargo"],
      setup: [step("cargo fetch --locked"), compile("cargo test --no-run --workspace --locked")],
      folders: ["target"],
    },
  },
  {
    name: "a cargo workspace: members are part of it",
    files: {
      "Cargo.toml": "[workspace]\nmembers=['a']",
      "a/Cargo.toml": "[package]",
      "rust-toolchain": "stable",
    },
    recipe: {
      toolchains: { rust: null },
      setup: [step("cargo fetch"), compile("cargo test --no-run --workspace")],
      folders: ["target"],
    },
  },
  {
    name: "a crate that a workspace excludes, with its own lock file",
    files: {
      "Cargo.toml": "[workspace]\nmembers=['a']\nexclude=['tools']",
      "Cargo.lock": "",
      "a/Cargo.toml": "[package]",
      "a/Cargo.lock": "",
      "tools/Cargo.toml": "[package]",
      "tools/Cargo.lock": "",
    },
    recipe: { folders: ["target", "tools/target"] },
  },
  {
    name: "maven",
    files: {
      "pom.xml":
        "<project><properties><maven.compiler.release>17</maven.compiler.release></properties></project>",
    },
    recipe: {
      toolchains: { java: "17" },
      packages: ["maven"],
      registries: ["maven"],
      setup: maven(),
    },
  },
  {
    name: "maven with modules",
    files: {
      "pom.xml": "<project><modules><module>a</module></modules></project>",
      "a/pom.xml": "<project/>",
    },
    recipe: { setup: maven() },
  },
  {
    name: "gradle with its wrapper",
    files: {
      "build.gradle.kts": "",
      "gradle/wrapper/gradle-wrapper.properties": String.raw`distributionUrl=https\://dist.example.org/gradle-8.5-bin.zip`,
    },
    recipe: { toolchains: { java: null }, setup: gradle("sh ./gradlew") },
    notTaken: ["--allow-domain dist.example.org"],
  },
  {
    name: "gradle without one",
    files: { "build.gradle": "" },
    recipe: { packages: ["gradle"], setup: gradle("gradle") },
  },
  {
    name: "gradle, with projects below a top that has none itself",
    files: { "settings.gradle": "include 'a'", "a/build.gradle": "" },
    recipe: { packages: ["gradle"], setup: gradle("gradle") },
  },
  {
    name: "composer",
    files: { "composer.json": "{}", "composer.lock": "{}" },
    recipe: {
      toolchains: { php: null },
      setup: [step("composer install --no-interaction --no-progress --no-scripts --no-plugins")],
      folders: ["vendor"],
    },
    notTaken: ["registry is in no preset"],
  },
  {
    name: "composer with registries of its own",
    files: {
      "composer.json": '{"repositories": [{"type": "composer", "url": "https:\\/\\/php.example.org\\/a"}]}',
      "composer.lock":
        '{"packages": [{"dist": {"url": "https://bad host/x"}}, {"dist": {"url": "https://me:key@files.example.org/x.zip"}}]}',
    },
    recipe: {
      toolchains: { php: null },
      setup: [step("composer install --no-interaction --no-progress --no-scripts --no-plugins")],
      folders: ["vendor"],
    },
    notTaken: ["registry is in no preset: --allow-domain php.example.org,files.example.org"],
  },
  {
    name: "bundler with a source of its own",
    files: {
      Gemfile: 'source "https://gems.example.org"\n',
      "Gemfile.lock": "GEM\n  remote: https://gems.example.org/\n",
    },
    recipe: {
      toolchains: { ruby: null },
      setup: [step("BUNDLE_FROZEN=true bundle install")],
      folders: ["vendor/bundle"],
    },
    notTaken: ["registry is in no preset: --allow-domain gems.example.org"],
  },
  {
    name: "bundler",
    files: { Gemfile: "", "Gemfile.lock": "", ".ruby-version": "ruby-3.1.2" },
    recipe: {
      toolchains: { ruby: "3.1.2" },
      setup: [step("BUNDLE_FROZEN=true bundle install")],
      folders: ["vendor/bundle"],
    },
    notTaken: ["registry is in no preset"],
  },
  {
    name: "cmake",
    files: { "CMakeLists.txt": "" },
    recipe: { packages: ["cmake", "g++", "pkg-config"], setup: [] },
  },
  {
    name: "meson",
    files: { "meson.build": "", "src/meson.build": "" },
    recipe: { packages: ["meson", "ninja-build", "g++", "pkg-config"], setup: [] },
  },
  {
    name: "autotools",
    files: { "configure.ac": "" },
    recipe: { packages: ["autoconf", "automake", "libtool", "pkg-config"], setup: [] },
  },
  {
    name: "libraries that cmake looks for, as far as they are known",
    files: {
      "CMakeLists.txt":
        'find_package(GTest REQUIRED)\nfind_package( ZLIB )\nfind_package(Own; "touch")\npkg_check_modules(X REQUIRED libcurl>=7 sqlite3)\n# constructor\n',
    },
    recipe: {
      packages:
        "cmake g++ pkg-config libcurl4-openssl-dev libgmock-dev libgtest-dev libsqlite3-dev zlib1g-dev".split(
          " ",
        ),
      setup: [],
    },
  },
  {
    name: "libraries that meson and autoconf look for",
    files: {
      "a/meson.build": "dependency('zlib')\ndependency('constructor')\n",
      "b/configure.ac": "PKG_CHECK_MODULES([XML], [libxml-2.0 >= 2.9])\n",
    },
    recipe: {
      packages: "meson ninja-build g++ pkg-config zlib1g-dev autoconf automake libtool libxml2-dev".split(
        " ",
      ),
    },
  },
  {
    name: "sources that cmake fetches",
    files: {
      "CMakeLists.txt":
        "include(FetchContent)\nFetchContent_Declare(a URL https://Git.example/a.zip)\nExternalProject_Add(b GIT_REPOSITORY https://b.example/b.git)\n",
    },
    recipe: { packages: ["cmake", "g++", "pkg-config"] },
    notTaken: ["cmake fetches sources when it configures", "--allow-domain git.example,b.example"],
  },
  {
    name: "toolchains that are not offered, and servers of compose: reported once each",
    files: {
      "a/A.csproj": "",
      "b/B.csproj": "",
      "All.sln": "",
      "mix.exs": "",
      "environment.yml": "",
      "docker-compose.yml": "",
    },
    recipe: { setup: [], toolchains: {}, packages: [] },
    notTaken: [
      "the .NET SDK is not offered",
      '"packages": ["elixir"',
      "conda is not offered",
      "compose files",
    ],
  },
  {
    name: "modules of perl, and a package of R",
    files: { cpanfile: "requires 'Try::Tiny';", DESCRIPTION: "Package: own" },
    recipe: { setup: [], packages: [] },
    notTaken: [
      '{"detected": true, "packages": ["libtry-tiny-perl"]}',
      '{"detected": true, "packages": ["r-base-dev","r-cran-testthat"]}',
    ],
  },
  {
    name: "two versions of one language",
    files: { ".nvmrc": "20", "package.json": DEPS, "old/.nvmrc": "16", "old/package.json": DEPS },
    recipe: { toolchains: { node: "20" }, setup: [step(INSTALL), step(INSTALL, "old")] },
    notTaken: ["node 16: an environment has one version, 20 from .nvmrc"],
  },
];
