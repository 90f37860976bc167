import { BOX_PATH } from "../../boxes/runner-report.ts";
import type { Recipe } from "./recipe.ts";

/** Variables for the package managers of a box: where they keep what they fetch, and what they may install. */

/** Where an environment keeps what tools fetched: not in the workspace, nor in the box's HOME, empty at each start. */
export const CACHE = "/var/cache/harness";

type Variables = Readonly<Record<string, string>>;

interface Tool {
  /** For set-up and for runs. */
  readonly always: Variables;
  /** If nothing is granted: tools use only local files, and fail with a message instead of waiting for a network. */
  readonly offline: Variables;
}

const TOOLS: Readonly<Record<string, Tool>> = {
  npm: {
    always: {
      npm_config_cache: `${CACHE}/npm`,
      npm_config_audit: "false",
      npm_config_fund: "false",
      npm_config_update_notifier: "false",
      YARN_CACHE_FOLDER: `${CACHE}/yarn`,
      YARN_GLOBAL_FOLDER: `${CACHE}/yarn-global`,
      YARN_ENABLE_TELEMETRY: "0",
      BUN_INSTALL_CACHE_DIR: `${CACHE}/bun`,
      DENO_DIR: `${CACHE}/deno`,
      DENO_NO_UPDATE_CHECK: "1",
    },
    offline: { npm_config_offline: "true", pnpm_config_offline: "true", YARN_ENABLE_NETWORK: "0" },
  },
  pip: {
    always: {
      PIP_CACHE_DIR: `${CACHE}/pip`,
      PIP_DISABLE_PIP_VERSION_CHECK: "1",
      UV_CACHE_DIR: `${CACHE}/uv`,
      UV_LINK_MODE: "copy",
      UV_PYTHON_DOWNLOADS: "never",
      POETRY_CACHE_DIR: `${CACHE}/poetry`,
      POETRY_VIRTUALENVS_IN_PROJECT: "true",
      PDM_CACHE_DIR: `${CACHE}/pdm`,
      PDM_CHECK_UPDATE: "0",
      PIPENV_CACHE_DIR: `${CACHE}/pipenv`,
      PIPENV_VENV_IN_PROJECT: "1",
    },
    // Pip reads a zero as "without build isolation": a build uses what is installed instead of fetching it.
    offline: { PIP_NO_INDEX: "1", UV_OFFLINE: "1", PIP_NO_BUILD_ISOLATION: "0" },
  },
  cargo: { always: { CARGO_HOME: `${CACHE}/cargo` }, offline: { CARGO_NET_OFFLINE: "true" } },
  go: {
    always: {
      GOPATH: `${CACHE}/go`,
      GOMODCACHE: `${CACHE}/go/mod`,
      GOCACHE: `${CACHE}/go/build`,
      GOTOOLCHAIN: "local",
    },
    // No -mod: as on the host, a project's go.sum is enforced, and its vendor folder is used.
    offline: { GOPROXY: "off" },
  },
  maven: {
    always: {
      // Files from a mirror count even if the mirror is not known, as in a box without a network.
      MAVEN_OPTS: `-Dmaven.repo.local=${CACHE}/m2 -Dmaven.legacyLocalRepo=true`,
      GRADLE_USER_HOME: `${CACHE}/gradle`,
    },
    // Versions before 3.9 do not read this variable; without a route they still end at once.
    offline: { MAVEN_ARGS: "-o" },
  },
  composer: {
    always: { COMPOSER_HOME: `${CACHE}/composer`, COMPOSER_CACHE_DIR: `${CACHE}/composer/cache` },
    offline: { COMPOSER_DISABLE_NETWORK: "1" },
  },
  bundler: { always: { BUNDLE_PATH: "vendor/bundle", BUNDLE_APP_CONFIG: `${CACHE}/bundle` }, offline: {} },
};

const TOOLCHAIN_TOOLS: Readonly<Record<string, string>> = {
  node: "npm",
  python: "pip",
  rust: "cargo",
  go: "go",
  java: "maven",
  php: "composer",
  ruby: "bundler",
};

/** For a recipe that names neither a toolchain nor a preset of these tools, as on an image that has the tool. */
const FOLDER_TOOLS: readonly (readonly [folder: RegExp, tool: string])[] = [
  [/(?:^|\/)vendor$/, "composer"],
  [/(?:^|\/)vendor\/bundle$/, "bundler"],
];

const KNOWN_TOOLS = new Set(["npm", "pip", "cargo", "go", "maven"]);

/** Before Berry runs anything, it checks what it installed, and how. */
const YARN: Variables = {
  YARN_NODE_LINKER: "node-modules",
  YARN_INSTALL_STATE_PATH: `${CACHE}/yarn-install-state.gz`,
};

/** pnpm reads npm's variables until version 10, and only its own since 11. */
const PNPM: Variables = {
  npm_config_store_dir: `${CACHE}/pnpm`,
  pnpm_config_store_dir: `${CACHE}/pnpm`,
  pnpm_config_cache_dir: `${CACHE}/pnpm-cache`,
};

/** Where node-gyp finds the headers of the installed Node. npm warns about `npm_config_nodedir`, but not about this name. */
const NODE_HEADERS: Variables = { npm_package_config_node_gyp_nodedir: "/usr/local" };

interface VariableOptions {
  readonly workspace: string;
  readonly granted: boolean;
  /** Minimum age of releases in ms; 0 for none. */
  readonly minAge: number;
}

/** Variables for a box with this recipe. Of a `.venv` at the top in `folders`, or else of the only one, Python is found first. */
export function toolVariables(recipe: Recipe, { workspace, granted, minAge }: VariableOptions): Variables {
  const { yarn, pnpm } = recipe.managers;
  const names = [
    ...Object.keys(recipe.toolchains).map((name) => TOOLCHAIN_TOOLS[name] ?? ""),
    ...recipe.registries.filter((name) => KNOWN_TOOLS.has(name)),
    ...FOLDER_TOOLS.flatMap(([kept, tool]) => (recipe.folders.some((each) => kept.test(each)) ? [tool] : [])),
  ];
  const tools = [...new Set(names)].flatMap((name) => TOOLS[name] ?? []);
  const venvs = recipe.folders.filter((folder) => /(?:^|\/)\.venv$/.test(folder));
  const found =
    venvs.includes(".venv") || venvs.length > 1 ? venvs.find((folder) => folder === ".venv") : venvs[0];
  const venv = found === undefined ? undefined : `${workspace}/${found}`;
  return {
    ...(Object.assign(
      {},
      ...tools.map(({ always, offline }) => ({ ...always, ...(granted ? {} : offline) })),
    ) as Variables),
    ...(yarn === undefined ? {} : { ...YARN, ...(granted ? yarnAge(yarn, minAge) : {}) }),
    ...(pnpm === undefined ? {} : PNPM),
    ...(typeof recipe.toolchains.node === "string" ? NODE_HEADERS : {}),
    ...(venv === undefined ? {} : { VIRTUAL_ENV: venv, PATH: `${venv}/bin:${BOX_PATH}` }),
    ...recipe.env,
  };
}

/**
 * Rules that make installations from granted registries safer, as far as package managers take them from the
 * environment. A command may set its own: the box contains what then runs, as it contains the project's tests.
 */

interface InstallRules {
  /** Packages whose own scripts may run. */
  readonly install_scripts: readonly string[];
  /** In ms; 0 for none. */
  readonly min_release_age: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** `presets`: the granted ones. */
export function installVariables(
  presets: ReadonlySet<string>,
  { install_scripts, min_release_age }: InstallRules,
  now: number,
): Variables {
  return {
    ...(presets.has("npm") ? NPM : {}),
    // A source distribution is built by its own code, and pip takes no list of those that may.
    ...(presets.has("pip")
      ? install_scripts.length === 0
        ? { PIP_ONLY_BINARY: ":all:" }
        : { PIP_PREFER_BINARY: "1" }
      : {}),
    ...ageVariables(presets, min_release_age, now),
  };
}

/**
 * Allows only releases of at least this age; managers that take no age install new releases as usual (`withoutAge`).
 * Yarns that do not know their own variable refuse to do anything, so it is set only if the version of yarn is known
 * (`yarnAge`).
 */
export function ageVariables(presets: ReadonlySet<string>, age: number, now: number): Variables {
  if (age === 0) return {};
  const before = new Date(now - age).toISOString();
  const minutes = inMinutes(age);
  // pnpm reads npm_config_minimum_release_age until version 10, and pnpm_config_minimum_release_age since 11.
  const npm = {
    npm_config_before: before,
    npm_config_minimum_release_age: minutes,
    pnpm_config_minimum_release_age: minutes,
  };
  const pip = {
    UV_EXCLUDE_NEWER: before,
    PIP_UPLOADED_PRIOR_TO: before,
    POETRY_SOLVER_MIN_RELEASE_AGE: String(Math.ceil(age / DAY_MS)),
  };
  return { ...(presets.has("npm") ? npm : {}), ...(presets.has("pip") ? pip : {}) };
}

const inMinutes = (age: number): string => String(Math.ceil(age / MINUTE_MS));

/** For a yarn of this version. */
export const yarnAge = (version: string | null, age: number): Variables =>
  age > 0 && takesAge("yarn", version) ? { YARN_NPM_MINIMAL_AGE_GATE: inMinutes(age) } : {};

/** The first releases that take an age. */
const FIRST = { pnpm: [10, 16], yarn: [4, 10], uv: [0, 1], poetry: [2, 4] } as const;

/** `version` is the wanted one: for a part that it leaves out the newest is installed; null: the newest, or yarn 1. */
function takesAge(manager: keyof typeof FIRST, version: string | null): boolean {
  if (version === null) return manager !== "yarn";
  const [major = 0, minor = Infinity] = version.split(".").map(Number);
  const [first, second] = FIRST[manager];
  return major > first || (major === first && minor >= second);
}

/** Managers that take no age from their environment, in any version. */
const NEVER = ["bun", "deno", "pdm", "pipenv"] as const;

/** Those of these managers, in these versions, that install new releases as usual. */
export const managersWithoutAge = (managers: Recipe["managers"]): readonly string[] => [
  ...(Object.keys(FIRST) as (keyof typeof FIRST)[]).flatMap((name) => {
    const version = managers[name];
    if (version === undefined || takesAge(name, version)) return [];
    return [version === null ? `${name} 1` : `${name} ${version}`];
  }),
  ...NEVER.filter((name) => managers[name] !== undefined),
];

/** For npm, pnpm and both yarns; this also turns off the scripts before and after one that is run by its name. */
const NPM = {
  npm_config_ignore_scripts: "true",
  pnpm_config_ignore_scripts: "true",
  YARN_IGNORE_SCRIPTS: "true",
  YARN_ENABLE_SCRIPTS: "false",
  YARN_ENABLE_IMMUTABLE_INSTALLS: "true",
} as const;

/** Presets whose managers take no age: they install new releases as usual. */
export const withoutAge = (presets: readonly string[]): readonly string[] =>
  presets.filter((preset) => ["cargo", "go", "maven", "apt"].includes(preset));

/** The note about these names; undefined if there are none. */
export const ageNote = (names: readonly string[]): string | undefined =>
  names.length === 0
    ? undefined
    : `min_release_age has no effect on ${names.join(", ")}: new releases are installed there as usual`;
