import { yarnAge } from "../network/install-variables.ts";
import type { Recipe } from "./recipe.ts";

/** Where an environment keeps what tools fetched: not in the workspace, nor in the box's HOME, empty at each start. */
export const CACHE = "/var/cache/harness";
const BASE_PATH = "/usr/local/lib/harness/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

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
    },
    offline: { PIP_NO_INDEX: "1", UV_OFFLINE: "1" },
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

interface VariableOptions {
  readonly workspace: string;
  readonly granted: boolean;
  /** Minimum age of releases in ms; 0 for none. */
  readonly minAge: number;
}

/** Variables for a box with this recipe. With a `.venv` at the top in `folders`, its Python is found first. */
export function toolVariables(recipe: Recipe, { workspace, granted, minAge }: VariableOptions): Variables {
  const { yarn, pnpm } = recipe.managers;
  const names = [
    ...Object.keys(recipe.toolchains).map((name) => TOOLCHAIN_TOOLS[name] ?? ""),
    ...recipe.registries.filter((name) => KNOWN_TOOLS.has(name)),
    ...FOLDER_TOOLS.flatMap(([kept, tool]) => (recipe.folders.some((each) => kept.test(each)) ? [tool] : [])),
  ];
  const tools = [...new Set(names)].flatMap((name) => TOOLS[name] ?? []);
  const venv = recipe.folders.includes(".venv") ? `${workspace}/.venv` : undefined;
  return {
    ...(Object.assign(
      {},
      ...tools.map(({ always, offline }) => ({ ...always, ...(granted ? {} : offline) })),
    ) as Variables),
    ...(yarn === undefined ? {} : { ...YARN, ...(granted ? yarnAge(yarn, minAge) : {}) }),
    ...(pnpm === undefined ? {} : PNPM),
    ...(venv === undefined ? {} : { VIRTUAL_ENV: venv, PATH: `${venv}/bin:${BASE_PATH}` }),
    ...recipe.env,
  };
}
