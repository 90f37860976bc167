import { writtenDuration, writtenSize } from "../core/text/bounds.ts";
import type { Layer } from "./setting-rules.ts";
import type { STORES } from "./setting-words.ts";

/** Every setting with its default. The accepted values are in setting-rules.ts, loaded only to read a source. */

const MINUTE = 60_000;
const MiB = 2 ** 20;

type AllSettings = { readonly [Key in keyof Layer]-?: Exclude<Layer[Key], undefined> };

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
  park_timeout: 24 * 60 * MINUTE,
  engine: null,
  isolation: "bind",
  image: null,
  env: null,
  canaries: false,
  history: true,
  memory: 2048 * MiB,
  cpus: null,
  pids: 512,
  timeout: 2 * MINUTE,
  connect_timeout: MINUTE / 6,
  first_token_timeout: 10 * MINUTE,
  idle_timeout: 10 * MINUTE,
  max_turns: 40,
  check: null,
  attempts: 1,
  temperature: null,
  allow_domains: [],
  deny_domains: [],
  network_upload: 50 * MiB,
  network_download: 2048 * MiB,
  network_idle_timeout: 2 * MINUTE,
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
    deadline: 8 * 60 * MINUTE,
    start_timeout: 5 * MINUTE,
    schedule_timeout: 2 * MINUTE,
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

/** Other names of a setting. */
export const ALIASES: Readonly<Record<string, SettingKey>> = { max_steps: "max_turns" };

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
