import { userInfo } from "node:os";
import path from "node:path";
import { makeFolder } from "../platform/folders.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** Where harness keeps its own files, never inside a repository. */
export interface Places {
  readonly home: string;
  /** The user's config file, and an older location. Both are read; the first takes precedence. */
  readonly configFiles: readonly [string, string];
  readonly state: string;
  readonly cache: string;
}

/** XDG base directories. A relative value is invalid and counts as unset; the same holds for HOME. */
export function placesFrom(env: Env): Places {
  const home = homeFrom(env);
  const base = (name: string, fallback: string): string => {
    const value = env[name];
    return path.join(
      value !== undefined && path.isAbsolute(value) ? value : path.join(home, fallback),
      "harness",
    );
  };
  return {
    home,
    configFiles: [
      path.join(base("XDG_CONFIG_HOME", ".config"), "config.json"),
      path.join(home, ".harness", "config.json"),
    ],
    state: base("XDG_STATE_HOME", ".local/state"),
    cache: base("XDG_CACHE_HOME", ".cache"),
  };
}

/** Makes the folder for Node's compile cache; undefined if it cannot: Node's own attempt may never end there. */
export function compiledIn(env: Env): string | undefined {
  const folder = path.join(placesFrom(env).cache, "compile");
  try {
    makeFolder(folder);
    return folder;
  } catch {
    return undefined;
  }
}

function homeFrom(env: Env): string {
  const named = env["HOME"];
  if (named !== undefined && path.isAbsolute(named)) return named;
  try {
    return path.resolve("/", userInfo().homedir);
  } catch {
    return "/";
  }
}

/** PATH without its empty and relative entries: those would start programs from the current folder. */
export const hostPath = (text = ""): string =>
  text
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder))
    .join(path.delimiter);
