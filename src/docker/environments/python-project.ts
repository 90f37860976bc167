import { asList, fieldsOf } from "../../core/raw-data.ts";
import type { Recipe } from "./recipe.ts";
import { tomlIn } from "./project-members.ts";

/** What a Python project needs: by its lock file, or by its lists, its own metadata and what its tests are set up with. */

type Folder = ReadonlyMap<string, string>;

interface PythonNeeds {
  readonly from: string;
  readonly toolchain: "python";
  readonly registries?: readonly string[];
  readonly folders?: readonly string[];
  readonly managers?: Recipe["managers"];
  readonly steps?: readonly string[];
}

const VENV = "python3 -m venv .venv";
const PIP = ".venv/bin/python -m pip install --quiet";

/** What the files of a Python project need; undefined if they say nothing of Python. */
export function pythonNeeds(folder: Folder): PythonNeeds | undefined {
  const base = { toolchain: "python", registries: ["pip"], folders: [".venv"] } as const;
  const managed = uvNeeds(folder) ?? poetryNeeds(folder) ?? pdmNeeds(folder);
  if (managed !== undefined) return { ...base, ...managed };
  if (folder.has("Pipfile.lock")) return { ...base, from: "Pipfile.lock", ...pipenv("sync --dev") };
  const lists = listsIn(folder);
  const own = installOfProject(folder, lists);
  if (lists.length === 0 && own === undefined)
    return folder.has("Pipfile")
      ? { ...base, from: "Pipfile", ...pipenv("install --dev --skip-lock") }
      : undefined;
  const from = lists[0] ?? OWN_FILES.find((name) => folder.has(name)) ?? "setup.py";
  return {
    ...base,
    from,
    steps: [
      VENV,
      `${PIP} --upgrade pip`,
      ...installOfLists(folder, lists),
      ...builders(folder),
      ...(own === undefined ? [] : [`${PIP} ${own}`]),
    ],
  };
}

type Managed = Required<Pick<PythonNeeds, "from" | "managers" | "steps">>;

function uvNeeds(folder: Folder): Managed | undefined {
  const isLocked = folder.has("uv.lock");
  const isOthers = ["poetry.lock", "pdm.lock", "Pipfile.lock"].some((name) => folder.has(name));
  if (!isLocked && (isOthers || !usesUv(folder))) return undefined;
  return {
    from: isLocked ? "uv.lock" : "pyproject.toml",
    managers: { uv: null },
    steps: [`uv sync${isLocked ? " --frozen" : ""} --all-extras --all-groups`],
  };
}

function poetryNeeds(folder: Folder): Managed | undefined {
  const isLocked = folder.has("poetry.lock");
  if (!isLocked && !hasPoetryGroups(folder)) return undefined;
  return {
    from: isLocked ? "poetry.lock" : "pyproject.toml",
    managers: { poetry: null },
    steps: ["poetry install --no-interaction"],
  };
}

function pdmNeeds(folder: Folder): Managed | undefined {
  const isLocked = folder.has("pdm.lock");
  if (!isLocked && !hasPdmGroups(folder)) return undefined;
  return {
    from: isLocked ? "pdm.lock" : "pyproject.toml",
    managers: { pdm: null },
    steps: [VENV, `pdm ${isLocked ? "sync" : "install"} --group :all`],
  };
}

/** The table `[tool.NAME]` of pyproject.toml. */
const toolTable = (folder: Folder, name: string): Readonly<Record<string, unknown>> =>
  fieldsOf(fieldsOf(tomlIn(folder.get("pyproject.toml") ?? "")["tool"])[name]);

const isFilled = (table: unknown): boolean => Object.keys(fieldsOf(table)).length > 0;

/**
 * What only uv reads. Without it, pip would look for a member of the workspace in the registry, where somebody else's
 * package may have its name.
 */
function usesUv(folder: Folder): boolean {
  const { sources, workspace, "dev-dependencies": dev } = toolTable(folder, "uv");
  return isFilled(sources) || isFilled(workspace) || asList(dev).length > 0;
}

/** Groups that only poetry reads, such as what the tests need. */
function hasPoetryGroups(folder: Folder): boolean {
  const { group, "dev-dependencies": dev } = toolTable(folder, "poetry");
  return isFilled(group) || isFilled(dev);
}

/** Groups that only pdm reads. */
const hasPdmGroups = (folder: Folder): boolean => isFilled(toolTable(folder, "pdm")["dev-dependencies"]);

const pipenv = (command: string) => ({ managers: { pipenv: null }, steps: [VENV, `pipenv ${command}`] });

const IN_TESTS = /^tests?\/requirements\.txt$/;

/** The lists at the top and beside the tests, and of a folder `requirements` those for tests, or else for development. */
function listsIn(folder: Folder): readonly string[] {
  const names = [...folder.keys()].toSorted();
  const top = names.filter((name) =>
    /^(?:requirements|dev-requirements|test-requirements)[\w.-]*\.txt$/.test(name),
  );
  const nested = names.filter((name) => IN_TESTS.test(name));
  const below = names.filter((name) => name.startsWith("requirements/"));
  const all = below.filter((name) => /\/[^/]*test/.test(name));
  // Others beside it are for some versions only, or newer, and contradict it.
  const exact = all.filter((name) => /\/tests?\.txt$/.test(name));
  const tests = [...(exact.length > 0 ? exact : all), ...nested];
  const further = tests.length > 0 ? tests : below.filter((name) => /\/[^/]*(?:dev|local)/.test(name));
  const main = below.filter((name) =>
    /\/(?:base|main|common|core|default|app|install|requirements)\.txt$/.test(name),
  );
  return [...top, ...(top.length > 0 ? [] : main), ...further];
}

/** What builds the project, so that a box can build it anew without a network. */
function builders(folder: Folder): readonly string[] {
  const { project, "build-system": build } = tomlIn(folder.get("pyproject.toml") ?? "");
  if (project === undefined && build === undefined && !folder.has("setup.py")) return [];
  const named = asList(fieldsOf(build)["requires"]).filter(
    (name): name is string => typeof name === "string" && REQUIREMENT.test(name),
  );
  const all = named.length === 0 ? ["setuptools"] : [...named];
  const isUsed = (builder: RegExp): boolean => all.some((name) => builder.test(name));
  // These are asked for only during a build.
  if (isUsed(/^setuptools\b/) && !isUsed(/^wheel\b/)) all.push("wheel");
  if (isUsed(/^hatchling\b/)) all.push("editables");
  return [`${PIP} ${all.map((name) => (/^[\w.-]+$/.test(name) ? name : `'${name}'`)).join(" ")}`];
}

/** What any build leaves beside the sources, and nothing needs. */
const BY_PRODUCT =
  /(?:^|\/)(?:[^/]+\.egg-info|__pycache__|build)(?:\/|$)|\.py[co]$|(?:^|\/)(?:uv|pdm|poetry)\.lock$/;

/** Files that set-up wrote beside the sources, those that something may need first. */
export const byProductsLast = (lost: readonly string[]): readonly string[] => [
  ...lost.filter((file) => !BY_PRODUCT.test(file)),
  ...lost.filter((file) => BY_PRODUCT.test(file)),
];

const IN_PLACE: readonly (readonly [setUp: RegExp, command: string])[] = [
  [/^\.venv\/bin\/python -m pip install .*-e '?\./, ".venv/bin/python -m pip install --no-deps -e ."],
  [/^uv sync /, "uv pip install --no-deps -e ."],
];

/**
 * A project's own build may write files beside its sources, such as compiled extensions or its version. Set-up cannot
 * keep them: this line makes them in the workspace, without a network.
 */
export function buildInPlace({ setup }: Pick<Recipe, "setup">, lost: readonly string[]): string | undefined {
  if (lost.every((file) => BY_PRODUCT.test(file))) return undefined;
  for (const { run, folder } of setup) {
    const command = IN_PLACE.find(([setUp]) => setUp.test(run))?.[1];
    if (command === undefined || !/^[\w./-]+$/.test(folder)) continue;
    return `harness sandbox exec -- ${folder === "." ? command : `sh -c 'cd ${folder} && ${command}'`}`;
  }
  return undefined;
}

const OWN_FILES = ["pyproject.toml", "setup.py", "tox.ini", "pytest.ini", "setup.cfg"];

/** Lists with hashes are installed apart: pip would want hashes for everything in the same call. */
function installOfLists(folder: Folder, lists: readonly string[]): readonly string[] {
  const hashed = (name: string): boolean => /(?:^|\s)--hash=/.test(folder.get(name) ?? "");
  return [
    ...installOf(lists.filter(hashed), " --require-hashes"),
    ...installOf(lists.filter((name) => !hashed(name))),
  ];
}

const installOf = (names: readonly string[], flag = ""): readonly string[] =>
  names.length === 0 ? [] : [`${PIP}${flag} ${names.map((name) => `-r ${name}`).join(" ")}`];

const TEST_NAMES = ["test", "tests", "testing", "dev", "develop"];

/** The project itself, if it can be installed, with what its tests need. */
function installOfProject(folder: Folder, lists: readonly string[]): string | undefined {
  const text = folder.get("pyproject.toml") ?? "";
  const { project, "build-system": build, "dependency-groups": groups } = tomlIn(text);
  const named = namesIn((project as Record<string, unknown> | undefined)?.["optional-dependencies"]);
  const grouped = namesIn(groups).map((name) => `--group ${name}`);
  const isSaid = named.length > 0 || grouped.length > 0 || lists.some((name) => /test|dev/.test(name));
  const tox = isSaid ? NO_TOX : testNeeds(folder);
  const extras = [...named, ...tox.extras];
  const installable = project !== undefined || build !== undefined || folder.has("setup.py");
  const words = [
    ...(installable ? [extras.length === 0 ? "-e ." : `-e '.[${extras.join(",")}]'`] : []),
    ...grouped,
    ...tox.lists.filter((name) => !lists.includes(name)).map((name) => `-r ${name}`),
    ...tox.packages.map((name) => `'${name}'`),
    ...(isSaid || tox !== NO_TOX || !usesPytest(folder, lists) ? [] : ["pytest"]),
  ];
  return words.length === 0 ? undefined : words.join(" ");
}

/** The project sets pytest up, and no list installs it. */
const usesPytest = (folder: Folder, lists: readonly string[]): boolean =>
  (["pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"].some((name) => folder.has(name)) ||
    /^\[tool\.pytest\b/m.test(folder.get("pyproject.toml") ?? "") ||
    /^\[tool:pytest\]/m.test(folder.get("setup.cfg") ?? "") ||
    /^\[pytest\]/m.test(folder.get("tox.ini") ?? "")) &&
  !lists.some((name) => /^pytest\b/m.test(folder.get(name) ?? ""));

interface ToxNeeds {
  readonly packages: readonly string[];
  /** Requirements files. */
  readonly lists: readonly string[];
  readonly extras: readonly string[];
}

const NO_TOX: ToxNeeds = { packages: [], lists: [], extras: [] };

/** What tox or hatch installs for the project's tests. */
function testNeeds(folder: Folder): ToxNeeds {
  const tox = toxNeeds(folder.get("tox.ini") ?? "");
  return tox === NO_TOX ? hatchNeeds(tomlIn(folder.get("pyproject.toml") ?? "")) : tox;
}

/** Names of hatch's environments that run tests. The last one is hatch's own and has pytest. */
const HATCH_TESTS = ["default", "test", "tests", "testing", "dev", "hatch-test"];

function hatchNeeds({ tool }: Readonly<Record<string, unknown>>): ToxNeeds {
  const envs = fieldsOf(fieldsOf(fieldsOf(tool)["hatch"])["envs"]);
  const named = HATCH_TESTS.filter((name) => Object.hasOwn(envs, name));
  const texts = (key: string): readonly string[] =>
    named.flatMap((name) => asList(fieldsOf(envs[name])[key])).filter((each) => typeof each === "string");
  const wanted = [...texts("dependencies"), ...texts("extra-dependencies")];
  const packages = [...wanted, ...(named.includes("hatch-test") ? ["pytest"] : [])];
  const extras = texts("features").filter((entry) => EXTRA.test(entry));
  const all = {
    packages: [...new Set(packages)].filter((name) => REQUIREMENT.test(name)),
    lists: [],
    extras,
  };
  return all.packages.length + extras.length === 0 ? NO_TOX : all;
}

const EXTRA = /^[A-Za-z0-9][\w.-]*$/;

/** What tox installs for `[testenv]`. Entries for some of its environments only, and all that is not plain, are left out. */
function toxNeeds(text: string): ToxNeeds {
  const section = /^\[testenv\][ \t]*$([^]*?)(?=^\[|(?![^]))/m.exec(text)?.[1] ?? "";
  const deps = entriesOf(section, "deps").map((entry) => entry.replace(/\{(?:toxinidir|tox_root)\}\//, ""));
  const packages = deps.filter((entry) => REQUIREMENT.test(entry));
  const lists = deps.flatMap((entry) => {
    const [, name = ""] = /^(?:-r|--requirement)[ =]*([\w./-]+\.txt)$/.exec(entry) ?? [];
    return name === "" || /^[/-]|(?:^|\/)\.\.(?:\/|$)/.test(name) ? [] : [name];
  });
  const extras = entriesOf(section, "extras")
    .flatMap((entry) => entry.split(","))
    .map((entry) => entry.trim())
    .filter((entry) => EXTRA.test(entry));
  return packages.length + lists.length + extras.length === 0 ? NO_TOX : { packages, lists, extras };
}

const REQUIREMENT =
  /^[A-Za-z0-9][\w.-]*(?:\[[\w,. -]+\])?(?: *(?:===?|~=|!=|[<>]=?) *[\w.*+!-]+(?: *, *(?:===?|~=|!=|[<>]=?) *[\w.*+!-]+)*)?$/;

/** The lines of one key: behind `=`, and the indented ones that follow. */
function entriesOf(section: string, key: string): readonly string[] {
  const lines = section.split("\n");
  const at = lines.findIndex((line) => new RegExp(`^${key}[ \\t]*=`).test(line));
  if (at === -1) return [];
  const rest = lines.slice(at + 1);
  const end = rest.findIndex((line) => line.trim() !== "" && !/^[ \t#]/.test(line));
  return [(lines[at] ?? "").replace(/^[^=]*=/, ""), ...(end === -1 ? rest : rest.slice(0, end))]
    .map((line) => line.replace(/(?:^|\s)#.*/, "").trim())
    .filter((line) => line !== "");
}

const namesIn = (table: unknown): readonly string[] =>
  typeof table === "object" && table !== null ? TEST_NAMES.filter((name) => Object.hasOwn(table, name)) : [];
