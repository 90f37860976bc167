import { parse as parseToml } from "smol-toml";

/** What a Python project needs: by its lock file, or by its lists, its own metadata and what its tests are set up with. */

type Folder = ReadonlyMap<string, string>;

interface PythonNeeds {
  readonly from: string;
  readonly toolchain: "python";
  readonly registries?: readonly string[];
  readonly folders?: readonly string[];
  readonly managers?: { readonly uv?: null; readonly poetry?: null };
  readonly steps?: readonly string[];
  readonly notTaken?: readonly string[];
}

const VENV = "python3 -m venv .venv";
const PIP = ".venv/bin/python -m pip install --quiet";

/** What the files of a Python project need; undefined if they say nothing of Python. */
export function pythonNeeds(folder: Folder): PythonNeeds | undefined {
  const base = { toolchain: "python", registries: ["pip"], folders: [".venv"] } as const;
  if (folder.has("uv.lock"))
    return {
      ...base,
      from: "uv.lock",
      managers: { uv: null },
      steps: ["uv sync --frozen --all-extras --all-groups"],
    };
  if (folder.has("poetry.lock"))
    return {
      ...base,
      from: "poetry.lock",
      managers: { poetry: null },
      steps: ["poetry install --no-interaction"],
    };
  const lists = [...folder.keys()]
    .filter((name) => /^(?:requirements|dev-requirements|test-requirements)[\w.-]*\.txt$/.test(name))
    .toSorted();
  const own = installOfProject(folder, lists);
  if (lists.length === 0 && own === undefined)
    return folder.has("Pipfile")
      ? {
          from: "Pipfile",
          toolchain: "python",
          notTaken: ["pipenv is not known here: write a recipe, .harness/env.json"],
        }
      : undefined;
  const from = lists[0] ?? OWN_FILES.find((name) => folder.has(name)) ?? "setup.py";
  return {
    ...base,
    from,
    steps: [
      VENV,
      `${PIP} --upgrade pip`,
      ...installOfLists(folder, lists),
      ...(own === undefined ? [] : [`${PIP} ${own}`]),
    ],
  };
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
  const tox = isSaid ? NO_TOX : toxNeeds(folder.get("tox.ini") ?? "");
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
  (folder.has("pytest.ini") ||
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
    .filter((entry) => /^[A-Za-z0-9][\w.-]*$/.test(entry));
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

function tomlIn(text: string): Readonly<Record<string, unknown>> {
  try {
    return parseToml(text);
  } catch {
    return {};
  }
}
