/** Every setting with its default. The accepted values are in setting-rules.ts, loaded only to read a source. */
import { writtenDuration, writtenSize } from "../core/wording.ts";
import type { SettingsLayer } from "./setting-rules.ts";
import type { STORES } from "./setting-words.ts";

const MINUTE_MS = 60_000;
const MiB = 2 ** 20;

type AllSettings = { readonly [Key in keyof SettingsLayer]-?: Exclude<SettingsLayer[Key], undefined> };

export type Settings = Omit<AllSettings, "search"> & {
  readonly search: {
    readonly store: (typeof STORES)[number];
    readonly url: string;
    /** Further nodes of the same cluster. */
    readonly nodes: readonly string[];
    readonly shard_number: number | null;
    readonly replication_factor: number | null;
    readonly write_consistency_factor: number | null;
  };
};
export type SettingKey = keyof Settings;

export const DEFAULTS: Settings = {
  provider: "ollama",
  base_url: null,
  chat_model: "qwen3:8b",
  embed_model: "nomic-embed-text",
  max_context_tokens: null,
  stream: true,
  plain: false,
  notify: "bell",
  mode: "workspace-write",
  on_ask: "contained",
  park_timeout: 24 * 60 * MINUTE_MS,
  engine: null,
  isolation: "bind",
  image: null,
  env: null,
  canaries: false,
  history: true,
  memory: 2048 * MiB,
  cpus: null,
  pids: 512,
  timeout: 2 * MINUTE_MS,
  connect_timeout: MINUTE_MS / 6,
  first_token_timeout: 10 * MINUTE_MS,
  idle_timeout: 10 * MINUTE_MS,
  max_turns: 40,
  check: null,
  attempts: 1,
  temperature: null,
  allow_domains: [],
  deny_domains: [],
  network_upload: 50 * MiB,
  network_download: 2048 * MiB,
  network_idle_timeout: 2 * MINUTE_MS,
  secrets: {},
  install_scripts: [],
  min_release_age: 0,
  hooks: [],
  tools: {},
  search: {
    store: "auto",
    url: "http://127.0.0.1:6333",
    nodes: [],
    shard_number: null,
    replication_factor: null,
    write_consistency_factor: null,
  },
  web: { fetch: false, search: null },
  kubernetes: {
    image: null,
    registry: null,
    pull_policy: "IfNotPresent",
    pull_secret: null,
    runtime_class: null,
    seccomp: "RuntimeDefault",
    node_selector: {},
    sandbox_resource: "auto",
    warm_pool: null,
    deadline: 8 * 60 * MINUTE_MS,
    start_timeout: 5 * MINUTE_MS,
    schedule_timeout: 2 * MINUTE_MS,
    probe: null,
    loop_image: null,
    results_claim: null,
    results_bucket: null,
    model_secret: null,
    queue: null,
    service_account: null,
    disk: 4096 * MiB,
  },
  mcp: {},
  prices: [],
  capabilities: [],
};

export const SETTING_KEYS = Object.keys(DEFAULTS) as SettingKey[];

/**
 * Settings that only the user can set, even if a project is trusted: they start programs on the host, watch over what
 * others do, or determine where the whole folder, images and results are sent.
 */
export const USERS_OWN: ReadonlySet<SettingKey> = new Set(["hooks", "tools", "engine", "kubernetes"]);

const SIZES: ReadonlySet<string> = new Set(["memory", "network_upload", "network_download"]);

const inClusterWords = ([key, value]: readonly [string, unknown]): readonly [string, unknown] =>
  typeof value === "number"
    ? [key, key === "disk" ? writtenSize(value) : writtenDuration(value)]
    : [key, value];

/** A setting's value in the form that `config set` accepts. */
export function printable(key: string, value: unknown): string {
  if (typeof value === "number" && (key.endsWith("timeout") || key === "min_release_age"))
    return writtenDuration(value);
  if (typeof value === "number" && SIZES.has(key)) return writtenSize(value);
  if (key === "kubernetes" && typeof value === "object" && value !== null)
    return JSON.stringify(Object.fromEntries(Object.entries(value).map(inClusterWords)));
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Paths of the keys of `search`, which can be set one by one. */
export const SEARCH_PATHS = (Object.keys(DEFAULTS.search) as (keyof Settings["search"])[]).map(
  (key) => `search.${key}` as const,
);
export type SearchPath = (typeof SEARCH_PATHS)[number];

/**
 * Which change of a setting only tightens, and so counts even from an untrusted project. A setting that is missing in
 * the table does not compile; a doubtful one is `never`.
 */

/** `values`: tightest first; values in the same list are equally tight, so that none tightens another. */
type Direction =
  | { readonly by: "less" }
  | { readonly by: "more" }
  | { readonly by: "fewer" }
  | { readonly by: "further" }
  | { readonly by: "values"; readonly order: readonly (readonly string[])[] }
  | { readonly by: "never"; readonly why: string };

const LESS: Direction = { by: "less" };
const never = (why: string): Direction => ({ by: "never", why });
const MODEL = "the project's text goes to whoever answers";
const SPENDING = "costs and context windows are calculated from it";

/** null means no limit, which is more than any number. */
export const DIRECTIONS: Readonly<Record<SettingKey, Direction>> = {
  provider: never(MODEL),
  base_url: never(MODEL),
  chat_model: never(MODEL),
  embed_model: never(MODEL),
  max_context_tokens: never(SPENDING),
  stream: never("it sets no limit"),
  plain: never("it is about your screen"),
  notify: never("it is about your screen"),
  mode: { by: "values", order: [["read-only"], ["workspace-write"], ["danger-full-access"]] },
  on_ask: { by: "values", order: [["refuse"], ["contained"], ["park"]] },
  park_timeout: LESS,
  engine: never("the folder is sent there, and boxes are as good as it is"),
  isolation: { by: "values", order: [["overlay", "copy"], ["bind"]] },
  image: never("everything in the box is run from it"),
  env: never("everything in the box starts from it"),
  history: { by: "values", order: [["false"], ["true"]] },
  canaries: { by: "values", order: [["true"], ["false"]] },
  memory: LESS,
  cpus: LESS,
  pids: LESS,
  timeout: LESS,
  connect_timeout: LESS,
  first_token_timeout: LESS,
  idle_timeout: LESS,
  max_turns: LESS,
  check: never("a command that always succeeds proves nothing"),
  attempts: LESS,
  temperature: never("it sets no limit"),
  allow_domains: { by: "fewer" },
  // Denials from several sources add up: none removes an entry.
  deny_domains: { by: "further" },
  network_upload: LESS,
  network_download: LESS,
  network_idle_timeout: LESS,
  secrets: never("their values are the user's own"),
  install_scripts: { by: "fewer" },
  min_release_age: { by: "more" },
  hooks: never("they run on the host; a project keeps its own in a separate file"),
  tools: never("a project keeps its own in a separate file"),
  search: never("the project's text goes to the store"),
  web: never("search queries go to whoever answers"),
  kubernetes: never("it says what a cluster runs, and where"),
  mcp: never("its servers are started, and their words go to the model"),
  prices: never(SPENDING),
  capabilities: never(SPENDING),
};

export type ChangeDirection = "same" | "tightens" | "loosens";

/** The effect of setting this key from `from` to `to`. A change that does not surely tighten loosens. */
export function changeOf<K extends SettingKey>(key: K, from: Settings[K], to: Settings[K]): ChangeDirection {
  if (JSON.stringify(from) === JSON.stringify(to)) return "same";
  return isTighter(DIRECTIONS[key], from, to) ? "tightens" : "loosens";
}

function isTighter(direction: Direction, from: unknown, to: unknown): boolean {
  switch (direction.by) {
    case "less":
      return numericLimit(to) < numericLimit(from);
    case "more":
      return numericLimit(to) > numericLimit(from) && numericLimit(to) !== Number.POSITIVE_INFINITY;
    case "fewer":
      return Array.isArray(from) && Array.isArray(to) && to.every((each) => from.includes(each));
    case "further":
      return Array.isArray(from) && Array.isArray(to) && from.every((each) => to.includes(each));
    case "values": {
      const rank = (value: unknown): number =>
        direction.order.findIndex((each) => each.includes(String(value)));
      return rank(to) !== -1 && rank(to) < rank(from);
    }
    case "never":
      return false;
  }
}

/** A value that is not a number sets no limit. */
const numericLimit = (value: unknown): number =>
  typeof value === "number" ? value : Number.POSITIVE_INFINITY;
