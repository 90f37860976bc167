import { type SettingKey, type Settings } from "./settings-schema.ts";

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

export type Change = "same" | "tightens" | "loosens";

/** The effect of setting this key from `from` to `to`. A change that does not surely tighten loosens. */
export function changeOf<K extends SettingKey>(key: K, from: Settings[K], to: Settings[K]): Change {
  if (JSON.stringify(from) === JSON.stringify(to)) return "same";
  return isTighter(DIRECTIONS[key], from, to) ? "tightens" : "loosens";
}

function isTighter(direction: Direction, from: unknown, to: unknown): boolean {
  switch (direction.by) {
    case "less":
      return bound(to) < bound(from);
    case "more":
      return bound(to) > bound(from) && bound(to) !== Number.POSITIVE_INFINITY;
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
const bound = (value: unknown): number => (typeof value === "number" ? value : Number.POSITIVE_INFINITY);
