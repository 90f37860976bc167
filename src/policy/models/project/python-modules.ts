import type { Model } from "../model.ts";
import { always } from "./parts.ts";

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
export const PYTHON_MODULES: ReadonlyMap<string, string> = new Map([
  ...PROGRAMS.map((name) => [name, name] as const),
  ...ENTRIES,
]);

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
